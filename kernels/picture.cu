// What pictures need beside convolution and pooling: transposed convolution, resizing, padding. One thread per element of the
// result.
#include "element.h"

// out[o][y][x] = bias[o] + sum of in[c][i][j] w[c][o][ky][kx] over every place with i stride + ky dilation - pad = y, the same of
// x: each pixel of the result asks which pixels of the picture reach it. weights [channel][out channel of the group][ky][kx].
extern "C" __global__ void conv_transpose2d_f32(float* out, const float* in, const float* weights, const float* bias,
                                                int channels, int height, int width, int out_channels, int out_height,
                                                int out_width, int kernel_height, int kernel_width, int stride_y,
                                                int stride_x, int pad_y, int pad_x, int dilation_y, int dilation_x,
                                                int groups, int count) {
  const int i = global_thread();
  if (i >= count) return;
  const int x = i % out_width;
  const int y = i / out_width % out_height;
  const int out_channel = i / (out_width * out_height) % out_channels;
  const int image = i / (out_width * out_height) / out_channels;
  const int outs = out_channels / groups;
  const int ins = channels / groups;
  const int group = out_channel / outs;
  float sum = 0;
  for (int ky = 0; ky < kernel_height; ++ky) {
    const int from_y = y + pad_y - ky * dilation_y;
    if (from_y < 0 || from_y % stride_y != 0 || from_y / stride_y >= height) continue;
    for (int kx = 0; kx < kernel_width; ++kx) {
      const int from_x = x + pad_x - kx * dilation_x;
      if (from_x < 0 || from_x % stride_x != 0 || from_x / stride_x >= width) continue;
      const long long pixel = (long long)(from_y / stride_y) * width + from_x / stride_x;
      for (int c = group * ins; c < (group + 1) * ins; ++c) {
        const long long plane = (long long)image * channels + c;
        const long long weight = (((long long)c * outs + out_channel % outs) * kernel_height + ky) * kernel_width + kx;
        sum = fmaf(in[plane * height * width + pixel], weights[weight], sum);
      }
    }
  }
  out[i] = sum + (bias ? bias[out_channel] : 0.0f);
}

// Where pixel `at` of the result lies in the picture, for a bilinear resize.
FAIRLEAD_DEVICE float source(int at, float scale, int align_corners) {
  return align_corners ? (float)at * scale : fmaxf(((float)at + 0.5f) * scale - 0.5f, 0.0f);
}
// scale: pixels of the picture for one of the result.
extern "C" __global__ void resize_bilinear_f32(float* out, const float* in, int height, int width, int out_height,
                                               int out_width, float scale_y, float scale_x, int align_corners,
                                               int count) {
  const int i = global_thread();
  if (i >= count) return;
  const float* plane = in + (long long)(i / (out_height * out_width)) * height * width;
  const float y = source(i / out_width % out_height, scale_y, align_corners);
  const float x = source(i % out_width, scale_x, align_corners);
  const int top = min((int)y, height - 1);
  const int left = min((int)x, width - 1);
  const int bottom = min(top + 1, height - 1);
  const int right = min(left + 1, width - 1);
  const float down = y - (float)top;
  const float across = x - (float)left;
  const float above = plane[top * width + left] * (1 - across) + plane[top * width + right] * across;
  const float below = plane[bottom * width + left] * (1 - across) + plane[bottom * width + right] * across;
  out[i] = above * (1 - down) + below * down;
}
extern "C" __global__ void resize_nearest_f32(float* out, const float* in, int height, int width, int out_height,
                                              int out_width, float scale_y, float scale_x, int count) {
  const int i = global_thread();
  if (i >= count) return;
  const float* plane = in + (long long)(i / (out_height * out_width)) * height * width;
  const int y = min((int)((float)(i / out_width % out_height) * scale_y), height - 1);
  const int x = min((int)((float)(i % out_width) * scale_x), width - 1);
  out[i] = plane[y * width + x];
}

// Along the middle of [outer][length][inner], `before` elements in front: mirrored at the edges without repeating them
// (reflect) or the edge again and again.
#define PAD(T, bytes)                                                                                        \
  extern "C" __global__ void pad_mirror_b##bytes(T* out, const T* in, int length, int out_length, int inner, \
                                                 int before, int reflect, int count) {                       \
    const int i = global_thread();                                                                           \
    if (i >= count) return;                                                                                  \
    int at = i / inner % out_length - before;                                                                \
    if (reflect && at < 0) at = -at;                                                                         \
    if (reflect && at >= length) at = 2 * (length - 1) - at;                                                 \
    at = max(0, min(at, length - 1));                                                                        \
    out[i] = in[((long long)(i / inner / out_length) * length + at) * inner + i % inner];                    \
  }
PAD(unsigned short, 2)
PAD(unsigned, 4)
