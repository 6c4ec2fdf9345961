// Hash functions, checksums, encodings.
#include "softgpu/conformance/kernels/common.h"

CUDA_DEVICE_INLINE unsigned rotated_right(unsigned x, int by) {
  return x >> by | x << (32 - by);
}

// SHA-256 of messages of one length, a thread each.
__constant__ unsigned sha_constants[64];
__device__ void sha_block(unsigned* state, const unsigned char* bytes) {
  unsigned w[64];
  for (int i = 0; i < 16; ++i) {
    w[i] = (unsigned)bytes[4 * i] << 24 | bytes[4 * i + 1] << 16 | bytes[4 * i + 2] << 8 | bytes[4 * i + 3];
  }
  for (int i = 16; i < 64; ++i) {
    const unsigned s0 = rotated_right(w[i - 15], 7) ^ rotated_right(w[i - 15], 18) ^ w[i - 15] >> 3;
    const unsigned s1 = rotated_right(w[i - 2], 17) ^ rotated_right(w[i - 2], 19) ^ w[i - 2] >> 10;
    w[i] = w[i - 16] + s0 + w[i - 7] + s1;
  }
  unsigned v[8];
  for (int i = 0; i < 8; ++i) v[i] = state[i];
  for (int i = 0; i < 64; ++i) {
    const unsigned s1 = rotated_right(v[4], 6) ^ rotated_right(v[4], 11) ^ rotated_right(v[4], 25);
    const unsigned choice = (v[4] & v[5]) ^ (~v[4] & v[6]);
    const unsigned first = v[7] + s1 + choice + sha_constants[i] + w[i];
    const unsigned s0 = rotated_right(v[0], 2) ^ rotated_right(v[0], 13) ^ rotated_right(v[0], 22);
    const unsigned majority = (v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]);
    for (int j = 7; j > 0; --j) v[j] = v[j - 1];
    v[4] += first;
    v[0] = first + s0 + majority;
  }
  for (int i = 0; i < 8; ++i) state[i] += v[i];
}
KERNEL sha256(int length, const unsigned char* messages, unsigned* digests) {
  const unsigned char* message = messages + global_index() * length;
  unsigned state[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  int at = 0;
  for (; at + 64 <= length; at += 64) sha_block(state, message + at);
  unsigned char last[128] = {};
  for (int i = at; i < length; ++i) last[i - at] = message[i];
  last[length - at] = 0x80;
  const int end = length - at < 56 ? 64 : 128;
  for (int i = 0; i < 8; ++i) last[end - 1 - i] = (unsigned char)((unsigned long long)length * 8 >> 8 * i);
  for (int i = 0; i < end; i += 64) sha_block(state, last + i);
  for (int i = 0; i < 8; ++i) digests[global_index() * 8 + i] = state[i];
}

// CRC-32 with a table that the block builds in shared memory.
KERNEL crc32(int length, const unsigned char* messages, unsigned* sums) {
  __shared__ unsigned table[256];
  for (unsigned i = threadIdx.x; i < 256; i += blockDim.x) {
    unsigned c = i;
    for (int bit = 0; bit < 8; ++bit) c = (c & 1) != 0 ? c >> 1 ^ 0xedb88320u : c >> 1;
    table[i] = c;
  }
  __syncthreads();
  unsigned c = ~0u;
  for (int i = 0; i < length; ++i) c = table[(c ^ messages[global_index() * length + i]) & 255] ^ c >> 8;
  sums[global_index()] = ~c;
}

KERNEL xorshift(int rounds, const unsigned long long* seeds, unsigned long long* out) {
  unsigned long long x = seeds[global_index()];
  for (int i = 0; i < rounds; ++i) {
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
  }
  out[global_index()] = x * 0x2545f4914f6cdd1dull;
}

// SipHash-2-4 of 16 bytes.
struct SipState {
  unsigned long long v0, v1, v2, v3;
};
CUDA_DEVICE_INLINE unsigned long long rotated_left(unsigned long long x, int by) {
  return x << by | x >> (64 - by);
}
__device__ __noinline__ void sip_round(SipState& s) {
  s.v0 += s.v1, s.v1 = rotated_left(s.v1, 13) ^ s.v0, s.v0 = rotated_left(s.v0, 32);
  s.v2 += s.v3, s.v3 = rotated_left(s.v3, 16) ^ s.v2;
  s.v0 += s.v3, s.v3 = rotated_left(s.v3, 21) ^ s.v0;
  s.v2 += s.v1, s.v1 = rotated_left(s.v1, 17) ^ s.v2, s.v2 = rotated_left(s.v2, 32);
}
KERNEL siphash(unsigned long long k0, unsigned long long k1, const unsigned long long* words, unsigned long long* out) {
  SipState s = {k0 ^ 0x736f6d6570736575ull, k1 ^ 0x646f72616e646f6dull, k0 ^ 0x6c7967656e657261ull,
                k1 ^ 0x7465646279746573ull};
  const unsigned long long blocks[] = {words[2 * global_index()], words[2 * global_index() + 1], 16ull << 56};
  for (const unsigned long long m : blocks) {
    s.v3 ^= m;
    sip_round(s);
    sip_round(s);
    s.v0 ^= m;
  }
  s.v2 ^= 0xff;
  for (int i = 0; i < 4; ++i) sip_round(s);
  out[global_index()] = s.v0 ^ s.v1 ^ s.v2 ^ s.v3;
}

// Base64, three bytes to four letters; the length is a multiple of three.
__constant__ char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
KERNEL base64(int groups, const unsigned char* in, char* out) {
  const int i = global_index();
  if (i >= groups) return;
  const unsigned word = (unsigned)in[3 * i] << 16 | in[3 * i + 1] << 8 | in[3 * i + 2];
  for (int j = 0; j < 4; ++j) out[4 * i + j] = letters[word >> (18 - 6 * j) & 63];
}

// Run lengths of one block's input: heads by comparison, places by a scan, lengths by the next head.
KERNEL run_lengths(int n, const int* in, int* values, int* lengths, int* count) {
  __shared__ int warps[32], heads[1025];
  const int i = threadIdx.x;
  const int is_head = i < n && (i == 0 || in[i] != in[i - 1]);
  int place = warp_inclusive_sum(is_head);
  if (i % warpSize == warpSize - 1) warps[i / warpSize] = place;
  __syncthreads();
  for (int warp = 0; warp < i / warpSize; ++warp) place += warps[warp];
  if (is_head != 0) heads[place - 1] = i;
  if (i == (int)blockDim.x - 1) {
    heads[place] = n;
    *count = place;
  }
  __syncthreads();
  if (is_head == 0) return;
  values[place - 1] = in[i];
  lengths[place - 1] = heads[place] - i;
}
