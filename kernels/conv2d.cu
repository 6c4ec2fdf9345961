// Convolution of pictures, [image][channel][y][x], as a product of matrices: the weights, [out channel][in channel, ky,
// kx], by the picture's patches, [in channel, ky, kx][y, x], which are gathered while they are read and never stored.
// blockIdx.z is the image and the group.
#include "tile.h"

struct Convolution {
  float* out;
  const float* in;
  const float* weights;
  const float* bias;    // of each output channel; null: none
  const float* addend;  // of out's shape, added before the activation; null: none
  int channels, height, width, out_channels, out_height, out_width;
  int kernel_height, kernel_width, stride_y, stride_x, pad_y, pad_x, dilation_y, dilation_x;
  int groups, activation;
};

template <int kTile>
__device__ inline __attribute__((always_inline)) void convolve(const Convolution& v) {
  using Product = TileProduct<float, kTile>;
  __shared__ typename Product::Strips strips;
  const int image = (int)blockIdx.z / v.groups;
  const int group = (int)blockIdx.z % v.groups;
  const int rows = v.out_channels / v.groups;
  const int channels = v.channels / v.groups;
  const int taps = v.kernel_height * v.kernel_width;
  const int pixels = v.out_height * v.out_width;
  const int depth = channels * taps;
  const float* in = v.in + ((long long)image * v.channels + group * channels) * v.height * v.width;
  const float* weights = v.weights + (long long)group * rows * depth;
  const long long out_first = ((long long)image * v.out_channels + group * rows) * pixels;
  Product::run(
      depth, true, false, strips,
      [&](int row, int k) { return row < rows && k < depth ? weights[(long long)row * depth + k] : 0.0f; },
      [&](int k, int pixel) {
        if (pixel >= pixels || k >= depth) return 0.0f;
        const int tap = k % taps;
        const int y = pixel / v.out_width * v.stride_y - v.pad_y + tap / v.kernel_width * v.dilation_y;
        const int x = pixel % v.out_width * v.stride_x - v.pad_x + tap % v.kernel_width * v.dilation_x;
        if (y < 0 || y >= v.height || x < 0 || x >= v.width) return 0.0f;
        return in[((long long)(k / taps) * v.height + y) * v.width + x];
      },
      [&](int row, int pixel, float value) {
        if (row >= rows || pixel >= pixels) return;
        const long long at = out_first + (long long)row * pixels + pixel;
        if (v.bias) value += v.bias[group * rows + row];
        if (v.addend) value += v.addend[at];
        v.out[at] = activate(value, v.activation);
      });
}

#define CONV2D(name, tile)                                                                                            \
  extern "C" __global__ void __launch_bounds__(TileProduct<float, tile>::kThreads) name(                              \
      float* out, const float* in, const float* weights, const float* bias, const float* addend, int channels,        \
      int height, int width, int out_channels, int out_height, int out_width, int kernel_height, int kernel_width,    \
      int stride_y, int stride_x, int pad_y, int pad_x, int dilation_y, int dilation_x, int groups, int activation) { \
    convolve<tile>({out,      in,           weights,    bias,       addend,        channels,     height,              \
                    width,    out_channels, out_height, out_width,  kernel_height, kernel_width, stride_y,            \
                    stride_x, pad_y,        pad_x,      dilation_y, dilation_x,    groups,       activation});        \
  }
CONV2D(conv2d_f32, 64)
CONV2D(conv2d_f32_small, 32)
