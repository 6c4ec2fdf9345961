// Transcoding of generated video, frame by frame: render, scale, then encode in blocks of 8 x 8: transform, quantise,
// count bits, and decode again to measure the loss.
#include "fairlead/device.h"
#include "ffmpeg/codec.h"

constexpr int kBlock = 8;
constexpr int kPixels = kBlock * kBlock;

// blockIdx.y is the row of the target, here and in scale; gridDim.y the number of rows.
extern "C" __global__ void render(unsigned char* picture, int width, int frame, unsigned seed) {
  const int column = global_thread();
  const int row = blockIdx.y;
  if (column < width) picture[row * width + column] = (unsigned char)generated_pixel(column, row, frame, seed);
}

extern "C" __global__ void scale(const unsigned char* source, int source_width, int source_height,
                                 unsigned char* target, int width) {
  const int column = global_thread();
  if (column >= width) return;
  const int x = source_position(column, source_width, width);
  const int y = source_position(blockIdx.y, source_height, gridDim.y);
  const unsigned char* row = source + (y >> 8) * source_width;
  const unsigned char* below = source + min((y >> 8) + 1, source_height - 1) * source_width;
  const int left = x >> 8;
  const int right = min(left + 1, source_width - 1);
  target[(int)blockIdx.y * width + column] =
      (unsigned char)bilinear(row[left], row[right], below[left], below[right], x & 0xff, y & 0xff);
}

// One block of 64 threads for each block of pixels. `matrix` is the 8 x 8 cosine matrix. Writes the quantised levels and
// adds this block's bits and squared error to the frame's sums.
extern "C" __global__ void __launch_bounds__(kPixels)
    encode(const unsigned char* picture, int width, const int* matrix, int quality, int* levels, int* bits,
           long long* squared_error) {
  __shared__ int cosine[kBlock][kBlock];
  __shared__ int a[kBlock][kBlock];
  __shared__ int b[kBlock][kBlock];
  const int u = threadIdx.x;
  const int v = threadIdx.y;
  const int at = ((int)blockIdx.y * kBlock + v) * width + (int)blockIdx.x * kBlock + u;
  const int pixel = picture[at] - 128;
  cosine[v][u] = matrix[v * kBlock + u];
  a[v][u] = pixel;
  __syncthreads();

  int sum = 0;
  for (int k = 0; k < kBlock; ++k) sum += cosine[v][k] * a[k][u];
  b[v][u] = sum;
  __syncthreads();
  sum = 0;
  for (int k = 0; k < kBlock; ++k) sum += b[v][k] * cosine[u][k];

  const int step = quantiser_step(u, v, quality);
  const int level = quantise(sum, step);
  levels[at] = level;
  atomicAdd(bits, level_bits(level));

  a[v][u] = level * step;
  __syncthreads();
  sum = 0;
  for (int k = 0; k < kBlock; ++k) sum += cosine[k][v] * a[k][u];
  b[v][u] = sum;
  __syncthreads();
  sum = 0;
  for (int k = 0; k < kBlock; ++k) sum += b[v][k] * cosine[k][u];
  const int error = ((sum + (1 << (kCoefficientShift - 1))) >> kCoefficientShift) - pixel;
  atomicAdd(squared_error, (long long)(error * error));
}
