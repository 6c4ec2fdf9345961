// Random numbers as a pure function of (seed, index): host and device compute the same bits, in any order, so generated
// inputs need neither a state nor an upload.
#pragma once

#ifdef __CUDA_ARCH__
#define FAIRLEAD_HOST_DEVICE static __attribute__((device)) inline __attribute__((always_inline))
#else
#define FAIRLEAD_HOST_DEVICE inline
#endif

// A well-mixed 32-bit number: two rounds of multiply and xor-shift over both words.
FAIRLEAD_HOST_DEVICE unsigned random_bits(unsigned seed, unsigned index) {
  unsigned x = index * 0x9e3779b9u + (seed ^ 0x85ebca6bu);
  x = (x ^ (x >> 16)) * 0x7feb352du;
  x = (x ^ (x >> 15)) * 0x846ca68bu;
  return x ^ (x >> 16);
}

// Uniform in 0 .. bound - 1, without a division: the high word of a product.
FAIRLEAD_HOST_DEVICE int random_below(unsigned bound, unsigned seed, unsigned index) {
  return (int)(((unsigned long long)random_bits(seed, index) * bound) >> 32);
}

// Uniform in [-1, 1). Exact on both sides: an integer conversion and a multiplication by a power of two.
FAIRLEAD_HOST_DEVICE float random_uniform(unsigned seed, unsigned index) {
  return (float)(int)random_bits(seed, index) * (1.0f / 2147483648.0f);
}
