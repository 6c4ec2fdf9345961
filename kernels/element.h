// What the kernels of the built-in library share: element types, activations, reductions over a block.
//
// Every kernel is `extern "C"`, named OPERATION_TYPE, and writes its result to its first argument. Arguments and
// geometry of each stand in python/fairlead/ktask/library.py, and from there in docs/reference/kernel-library.md. Tensors are
// dense and row-major unless strides are arguments; counts are ints, so a tensor has fewer than 2^31 elements.
#pragma once

#include "fairlead/device.h"

struct Complex {  // c64: NumPy's complex64
  float re, im;
};
FAIRLEAD_DEVICE Complex operator+(Complex a, Complex b) {
  return {a.re + b.re, a.im + b.im};
}
FAIRLEAD_DEVICE Complex operator-(Complex a, Complex b) {
  return {a.re - b.re, a.im - b.im};
}
FAIRLEAD_DEVICE Complex operator*(Complex a, Complex b) {
  return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}

// sum + a * b
FAIRLEAD_DEVICE float multiply_add(float a, float b, float sum) {
  return fmaf(a, b, sum);
}
FAIRLEAD_DEVICE double multiply_add(double a, double b, double sum) {
  return fma(a, b, sum);
}
FAIRLEAD_DEVICE Complex multiply_add(Complex a, Complex b, Complex sum) {
  return {fmaf(a.re, b.re, fmaf(-a.im, b.im, sum.re)), fmaf(a.re, b.im, fmaf(a.im, b.re, sum.im))};
}

FAIRLEAD_DEVICE double fabs(double x) {
  return __builtin_fabs(x);
}
FAIRLEAD_DEVICE double fmax(double a, double b) {
  return __builtin_fmax(a, b);
}

// The error function; Abramowitz and Stegun, Handbook of Mathematical Functions, 7.1.26. Absolute error below 2e-7.
FAIRLEAD_DEVICE float erff(float x) {
  const float t = 1.0f / (1.0f + 0.3275911f * fabsf(x));
  const float series =
      t * (0.254829592f + t * (-0.284496736f + t * (1.421413741f + t * (-1.453152027f + t * 1.061405429f))));
  return __builtin_copysignf(1.0f - series * expf(-x * x), x);
}
FAIRLEAD_DEVICE float gelu(float x) {
  return 0.5f * x * (1.0f + erff(x * 0.707106781f));
}
FAIRLEAD_DEVICE float gelu_tanh(float x) {
  return 0.5f * x * (1.0f + tanhf(0.797884561f * (x + 0.044715f * x * x * x)));
}
FAIRLEAD_DEVICE float sigmoid(float x) {
  return 1.0f / (1.0f + expf(-x));
}

// What matrix products and convolutions may do to a result before they store it.
enum Activation { kNoActivation = 0, kRelu = 1, kGelu = 2, kGeluTanh = 3, kTanh = 4, kSigmoid = 5 };

FAIRLEAD_DEVICE float activate(float x, int activation) {
  switch (activation) {
    case kRelu: return x < 0.0f ? 0.0f : x;  // NaN stays
    case kGelu: return gelu(x);
    case kGeluTanh: return gelu_tanh(x);
    case kTanh: return tanhf(x);
    case kSigmoid: return sigmoid(x);
    default: return x;
  }
}
// Of other types there is none; the argument is there so that all types share one parameter list.
FAIRLEAD_DEVICE double activate(double x, int) {
  return x;
}
FAIRLEAD_DEVICE Complex activate(Complex x, int) {
  return x;
}

struct Sum {
  template <typename T>
  static __device__ T apply(T a, T b) {
    return a + b;
  }
};
struct Maximum {  // NaN is larger than all
  template <typename T>
  static __device__ T apply(T a, T b) {
    return a > b || a != a ? a : b;
  }
};

FAIRLEAD_DEVICE float exchange(float value, int mask) {
  return shuffle_xor(value, mask);
}
FAIRLEAD_DEVICE double exchange(double value, int mask) {
  return __shfl_xor_sync(kFullMask, value, mask);
}
FAIRLEAD_DEVICE Complex exchange(Complex value, int mask) {
  return {shuffle_xor(value.re, mask), shuffle_xor(value.im, mask)};
}

// Combines one value of each thread; every thread receives the result. All threads of the block take part, in whole
// warps. Always in the same order: two runs give the same bits.
template <typename Operation, typename T>
__device__ inline T reduce_block(T value) {
  __shared__ T of_warp[32];
  for (int mask = warpSize / 2; mask > 0; mask /= 2) value = Operation::apply(value, exchange(value, mask));
  const int warps = (int)blockDim.x / warpSize;
  if (warps == 1) return value;
  __syncthreads();  // of an earlier reduction's readers
  if (threadIdx.x % warpSize == 0) of_warp[threadIdx.x / warpSize] = value;
  __syncthreads();
  value = of_warp[0];
  for (int warp = 1; warp < warps; ++warp) value = Operation::apply(value, of_warp[warp]);
  return value;
}
