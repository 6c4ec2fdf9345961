// Reductions over the middle dimension of [outer][length][inner], one block for each result, [outer][inner]; a block
// adds in a fixed order, so two runs give the same bits.
#include "element.h"

template <typename T>
struct Line {  // the elements that one block reduces
  const T* first;
  int length;
  int stride;
  __device__ T operator[](int i) const { return first[(long long)i * stride]; }
};
template <typename T>
__device__ inline Line<T> line_of_block(const T* in, int length, int inner) {
  const long long outer_index = (long long)blockIdx.x / inner;
  return {in + outer_index * length * inner + (int)blockIdx.x % inner, length, inner};
}

// out = scale * sum; scale is 1 / length for a mean.
template <typename T>
__device__ inline void sum(T* out, const T* in, int length, int inner, T scale) {
  const Line<T> line = line_of_block(in, length, inner);
  T total = {};
  for (int i = threadIdx.x; i < length; i += (int)blockDim.x) total = total + line[i];
  total = reduce_block<Sum>(total);
  if (threadIdx.x == 0) out[blockIdx.x] = scale * total;
}
#define SUM(name, T)                                                                     \
  extern "C" __global__ void name(T* out, const T* in, int length, int inner, T scale) { \
    sum(out, in, length, inner, scale);                                                  \
  }
SUM(sum_f32, float)
SUM(sum_f64, double)
SUM(sum_c64, Complex)

template <typename T>
__device__ inline void maximum(T* out, const T* in, int length, int inner) {
  const Line<T> line = line_of_block(in, length, inner);
  T largest = line[0];
  for (int i = threadIdx.x; i < length; i += (int)blockDim.x) largest = Maximum::apply(largest, line[i]);
  largest = reduce_block<Maximum>(largest);
  if (threadIdx.x == 0) out[blockIdx.x] = largest;
}
extern "C" __global__ void max_reduce_f32(float* out, const float* in, int length, int inner) {
  maximum(out, in, length, inner);
}
extern "C" __global__ void max_reduce_f64(double* out, const double* in, int length, int inner) {
  maximum(out, in, length, inner);
}

// The index of the largest; of equal ones the first.
extern "C" __global__ void argmax_f32(int* out, const float* in, int length, int inner) {
  __shared__ float values[256];
  __shared__ int indices[256];
  const Line<float> line = line_of_block(in, length, inner);
  int best = (int)threadIdx.x < length ? (int)threadIdx.x : 0;
  for (int i = best; i < length; i += (int)blockDim.x) {
    if (line[i] > line[best]) best = i;
  }
  values[threadIdx.x] = line[best];
  indices[threadIdx.x] = best;
  __syncthreads();
  if (threadIdx.x != 0) return;
  for (int t = 1; t < (int)blockDim.x; ++t) {
    if (values[t] > values[0] || (values[t] == values[0] && indices[t] < indices[0])) {
      values[0] = values[t];
      indices[0] = indices[t];
    }
  }
  out[blockIdx.x] = indices[0];
}

// Partial sums of x * y: block b of `gridDim.x` blocks writes out[b]. sum_* over them is the scalar product.
template <typename T>
__device__ inline void dot(T* out, const T* x, const T* y, int count) {
  T total = {};
  for (int i = global_thread(); i < count; i += (int)(gridDim.x * blockDim.x)) total = multiply_add(x[i], y[i], total);
  total = reduce_block<Sum>(total);
  if (threadIdx.x == 0) out[blockIdx.x] = total;
}
extern "C" __global__ void dot_f32(float* out, const float* x, const float* y, int count) {
  dot(out, x, y, count);
}
extern "C" __global__ void dot_f64(double* out, const double* x, const double* y, int count) {
  dot(out, x, y, count);
}
extern "C" __global__ void dot_c64(Complex* out, const Complex* x, const Complex* y, int count) {
  dot(out, x, y, count);
}
