// Philox4x32-10, a counter-based random generator: ten rounds of multiplication and exclusive-or turn (counter, key) into
// 128 random bits. Host and device compute the same bits in any order. Known answer: counter 0, key 0 gives 6627e8d5
// e169c58d bc57ac4c 9b00dbd8.
#pragma once

#ifdef __CUDA_ARCH__
#define CONFORMANCE_BOTH static __attribute__((device)) inline
#else
#define CONFORMANCE_BOTH inline
#endif

struct Philox {
  unsigned word[4];
};

CONFORMANCE_BOTH Philox philox(unsigned long long counter, unsigned long long key) {
  Philox x = {{(unsigned)counter, (unsigned)(counter >> 32), 0, 0}};
  unsigned key0 = (unsigned)key, key1 = (unsigned)(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const unsigned long long a = 0xD2511F53ull * x.word[0], b = 0xCD9E8D57ull * x.word[2];
    x = {{(unsigned)(b >> 32) ^ x.word[1] ^ key0, (unsigned)b, (unsigned)(a >> 32) ^ x.word[3] ^ key1, (unsigned)a}};
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  return x;
}

// Uniform in [0, 1), exact in single precision.
CONFORMANCE_BOTH float unit_float(unsigned bits) {
  return (float)(bits >> 8) * (1.0f / 16777216.0f);
}
