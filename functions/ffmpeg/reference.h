// Host reference: the same encoder, one pixel and one block at a time.
#pragma once

#include <vector>

namespace fairlead::sample::ffmpeg {

struct Video {
  int source_width;
  int source_height;
  int width;  // multiples of 8
  int height;
  int frames;
  int quality;  // 1 is nearly lossless, 50 coarse
  unsigned seed;
};

struct EncodedFrame {
  std::vector<int> levels;  // width x height quantised coefficients, in their blocks
  int bits = 0;
  long long squared_error = 0;
};

// The orthonormal 8 x 8 cosine matrix, times 2^7, rounded.
std::vector<int> cosine_matrix();

EncodedFrame encode_frame(const Video& video, int frame);

}  // namespace fairlead::sample::ffmpeg
