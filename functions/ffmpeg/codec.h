// The arithmetic of the encoder that the kernels and the host reference share. All of it is in integers, so both produce
// the same bits.
#pragma once

#include "fairlead/random.h"

// Luminance of a pixel of the generated video: a moving wave, a fixed texture and a square that crosses the picture.
FAIRLEAD_HOST_DEVICE int generated_pixel(int x, int y, int frame, unsigned seed) {
  const int wave = ((x + 3 * frame) ^ (y + frame)) & 0x7f;
  const int texture = (int)(random_bits(seed, (unsigned)(y * 65536 + x)) & 0x1f);
  const int dx = x - 4 * frame % 256;
  const int dy = y - 40;
  const bool in_square = dx >= 0 && dx < 32 && dy >= 0 && dy < 32;
  return in_square ? 235 : 40 + wave + texture;
}

// Position in the source of the target's pixel `i`, in 1/256 of a pixel, pixel centres aligned.
FAIRLEAD_HOST_DEVICE int source_position(int i, int source_size, int target_size) {
  const int position = ((2 * i + 1) * source_size * 128) / target_size - 128;
  const int last = (source_size - 1) * 256;
  return position < 0 ? 0 : position > last ? last : position;
}

// The weighted mean of four neighbours; `fx` and `fy` are the fractions of 256.
FAIRLEAD_HOST_DEVICE int bilinear(int p00, int p01, int p10, int p11, int fx, int fy) {
  const int top = p00 * (256 - fx) + p01 * fx;
  const int bottom = p10 * (256 - fx) + p11 * fx;
  return (top * (256 - fy) + bottom * fy + 32768) >> 16;
}

// The transform's matrix is scaled by 2^7, so coefficients carry 2^14.
constexpr int kCoefficientShift = 14;

// The coarser the higher the frequency, as eyes are.
FAIRLEAD_HOST_DEVICE int quantiser_step(int u, int v, int quality) {
  return quality + (quality * (u + v)) / 4;
}

FAIRLEAD_HOST_DEVICE int quantise(int coefficient, int step) {
  const int magnitude = coefficient < 0 ? -coefficient : coefficient;
  const int level = (magnitude + (step << (kCoefficientShift - 1))) / (step << kCoefficientShift);
  return coefficient < 0 ? -level : level;
}

// Bits of a level in an exponential Golomb code: 1 for zero, 2 floor(log2 |level|) + 3 otherwise.
FAIRLEAD_HOST_DEVICE int level_bits(int level) {
  if (level == 0) return 1;
  const unsigned magnitude = (unsigned)(level < 0 ? -level : level);
  return 2 * (31 - __builtin_clz(magnitude)) + 3;
}
