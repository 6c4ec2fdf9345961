// Pooling of pictures, [image and channel][y][x]; one thread per pixel of the result.
#include "element.h"

struct Range {
  int first, last;  // without last
};
FAIRLEAD_DEVICE Range inside(int first, int count, int limit) {
  return {max(first, 0), min(first + count, limit)};
}

// Outside of the picture there is nothing.
extern "C" __global__ void max_pool2d_f32(float* out, const float* in, int height, int width, int out_height,
                                          int out_width, int kernel_height, int kernel_width, int stride_y,
                                          int stride_x, int pad_y, int pad_x, int count) {
  const int i = global_thread();
  if (i >= count) return;
  const float* plane = in + (long long)(i / (out_height * out_width)) * height * width;
  const Range rows = inside(i / out_width % out_height * stride_y - pad_y, kernel_height, height);
  const Range columns = inside(i % out_width * stride_x - pad_x, kernel_width, width);
  float largest = -__builtin_inff();
  for (int y = rows.first; y < rows.last; ++y) {
    for (int x = columns.first; x < columns.last; ++x) largest = fmaxf(largest, plane[y * width + x]);
  }
  out[i] = largest;
}

// Divides by the pixels of the kernel that are in the picture, or with `count_padding` by all of them.
extern "C" __global__ void avg_pool2d_f32(float* out, const float* in, int height, int width, int out_height,
                                          int out_width, int kernel_height, int kernel_width, int stride_y,
                                          int stride_x, int pad_y, int pad_x, int count_padding, int count) {
  const int i = global_thread();
  if (i >= count) return;
  const float* plane = in + (long long)(i / (out_height * out_width)) * height * width;
  const Range rows = inside(i / out_width % out_height * stride_y - pad_y, kernel_height, height);
  const Range columns = inside(i % out_width * stride_x - pad_x, kernel_width, width);
  float total = 0;
  for (int y = rows.first; y < rows.last; ++y) {
    for (int x = columns.first; x < columns.last; ++x) total += plane[y * width + x];
  }
  const int pixels =
      count_padding ? kernel_height * kernel_width : (rows.last - rows.first) * (columns.last - columns.first);
  out[i] = total / (float)pixels;
}

// Pixel y of `out_height` is the mean of rows floor(y * height / out_height) to ceil((y + 1) * height / out_height);
// the same of columns.
extern "C" __global__ void adaptive_avg_pool2d_f32(float* out, const float* in, int height, int width, int out_height,
                                                   int out_width, int count) {
  const int i = global_thread();
  if (i >= count) return;
  const float* plane = in + (long long)(i / (out_height * out_width)) * height * width;
  const int out_y = i / out_width % out_height;
  const int out_x = i % out_width;
  const int last_y = ((out_y + 1) * height + out_height - 1) / out_height;
  const int last_x = ((out_x + 1) * width + out_width - 1) / out_width;
  const int first_y = out_y * height / out_height;
  const int first_x = out_x * width / out_width;
  float total = 0;
  for (int y = first_y; y < last_y; ++y) {
    for (int x = first_x; x < last_x; ++x) total += plane[y * width + x];
  }
  out[i] = total / (float)((last_y - first_y) * (last_x - first_x));
}
