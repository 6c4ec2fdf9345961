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
    for (int x = columns.first; x < columns.last; ++x) {
      const float value = plane[y * width + x];
      if (value > largest || value != value) largest = value;
    }
  }
  out[i] = largest;
}

// Divides by the pixels of the kernel that are in the picture, with `count_padding` 1 by all of them, or below 0 by -count_padding.
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
  const Range all_rows = inside(i / out_width % out_height * stride_y, kernel_height, height + 2 * pad_y);
  const Range all_columns = inside(i % out_width * stride_x, kernel_width, width + 2 * pad_x);
  const int pixels = count_padding < 0 ? -count_padding
                     : count_padding   ? (all_rows.last - all_rows.first) * (all_columns.last - all_columns.first)
                                       : (rows.last - rows.first) * (columns.last - columns.first);
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

// With dilation, and with the place y * width + x of the largest; NaN wins, of equal ones the first.
extern "C" __global__ void max_pool2d_indices_f32(float* out, long long* indices, const float* in, int height,
                                                  int width, int out_height, int out_width, int kernel_height,
                                                  int kernel_width, int stride_y, int stride_x, int pad_y, int pad_x,
                                                  int dilation_y, int dilation_x, int count) {
  const int i = global_thread();
  if (i >= count) return;
  const float* plane = in + (long long)(i / (out_height * out_width)) * height * width;
  const int first_y = i / out_width % out_height * stride_y - pad_y;
  const int first_x = i % out_width * stride_x - pad_x;
  float largest = -__builtin_inff();
  int at = -1;
  for (int ky = 0; ky < kernel_height; ++ky) {
    const int y = first_y + ky * dilation_y;
    if (y < 0 || y >= height) continue;
    for (int kx = 0; kx < kernel_width; ++kx) {
      const int x = first_x + kx * dilation_x;
      if (x < 0 || x >= width) continue;
      const float value = plane[y * width + x];
      if (at >= 0 && !(value > largest) && value == value) continue;
      largest = value;
      at = y * width + x;
    }
  }
  out[i] = largest;
  indices[i] = at;
}
