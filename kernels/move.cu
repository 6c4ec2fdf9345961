// Elements that change their place and not their value; by their size in bytes, whatever they mean.
#include "element.h"

struct Sizes6 {
  int of[6];
};

// out[sum of index * out_stride] = in[sum of index * in_stride] for every index below `size`: transposes, slices,
// broadcasts (stride 0), and parts of a concatenation (the buffer argument's offset says where).
template <typename T>
__device__ inline void copy_strided(T* out, const T* in, const Sizes6& size, const Sizes6& out_stride,
                                    const Sizes6& in_stride, int count) {
  int element = global_thread();
  if (element >= count) return;
  long long to = 0;
  long long from = 0;
  for (int dimension = 5; dimension >= 0; --dimension) {
    const int index = element % size.of[dimension];
    element /= size.of[dimension];
    to += (long long)index * out_stride.of[dimension];
    from += (long long)index * in_stride.of[dimension];
  }
  out[to] = in[from];
}

// in [rows][columns], out [columns][rows], for each matrix of a batch; a 32 x 32 tile goes through shared memory so
// that both sides are read and written in whole lines.
template <typename T>
__device__ inline void transpose(T* out, const T* in, int rows, int columns) {
  __shared__ T tile[32][33];
  const long long first = (long long)blockIdx.z * rows * columns;
  const int x = threadIdx.x;
  for (int y = threadIdx.y; y < 32; y += 8) {
    const int row = (int)blockIdx.y * 32 + y;
    const int column = (int)blockIdx.x * 32 + x;
    if (row < rows && column < columns) tile[y][x] = in[first + (long long)row * columns + column];
  }
  __syncthreads();
  for (int y = threadIdx.y; y < 32; y += 8) {
    const int row = (int)blockIdx.x * 32 + y;
    const int column = (int)blockIdx.y * 32 + x;
    if (row < columns && column < rows) out[first + (long long)row * rows + column] = tile[x][y];
  }
}

#define MOVE(T, bytes)                                                                                  \
  extern "C" __global__ void copy_b##bytes(T* out, const T* in, int count) {                            \
    const int i = global_thread();                                                                      \
    if (i < count) out[i] = in[i];                                                                      \
  }                                                                                                     \
  extern "C" __global__ void copy_strided_b##bytes(T* out, const T* in, Sizes6 size, Sizes6 out_stride, \
                                                   Sizes6 in_stride, int count) {                       \
    copy_strided(out, in, size, out_stride, in_stride, count);                                          \
  }                                                                                                     \
  extern "C" __global__ void transpose_b##bytes(T* out, const T* in, int rows, int columns) {           \
    transpose(out, in, rows, columns);                                                                  \
  }                                                                                                     \
  extern "C" __global__ void fill_b##bytes(T* out, T value, int count) {                                \
    const int i = global_thread();                                                                      \
    if (i < count) out[i] = value;                                                                      \
  }
MOVE(unsigned char, 1)
MOVE(unsigned short, 2)
MOVE(unsigned, 4)
MOVE(unsigned long long, 8)

// out[i] = table[indices[i]], rows of `width` elements; a row of NaN where there is no such row.
template <typename Index>
__device__ inline void embed(float* out, const float* table, const Index* indices, int rows, int width, int count) {
  const int i = global_thread();
  if (i >= count) return;
  const Index row = indices[i / width];
  out[i] = row >= 0 && row < rows ? table[(long long)row * width + i % width] : __builtin_nanf("");
}
extern "C" __global__ void embedding_f32_s32(float* out, const float* table, const int* indices, int rows, int width,
                                             int count) {
  embed(out, table, indices, rows, width, count);
}
extern "C" __global__ void embedding_f32_s64(float* out, const float* table, const long long* indices, int rows,
                                             int width, int count) {
  embed(out, table, indices, rows, width, count);
}
