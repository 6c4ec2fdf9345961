// Softmax and normalisations.
#include "element.h"

// Softmax of each row of `length`; one block per row. The row's maximum is taken off first, so nothing overflows.
extern "C" __global__ void softmax_f32(float* out, const float* in, int length) {
  const float* row = in + (long long)blockIdx.x * length;
  float* result = out + (long long)blockIdx.x * length;
  float largest = -__builtin_inff();
  for (int i = threadIdx.x; i < length; i += (int)blockDim.x) largest = fmaxf(largest, row[i]);
  largest = reduce_block<Maximum>(largest);
  float total = 0;
  for (int i = threadIdx.x; i < length; i += (int)blockDim.x) {
    const float power = expf(row[i] - largest);
    result[i] = power;
    total += power;
  }
  const float scale = 1.0f / reduce_block<Sum>(total);
  for (int i = threadIdx.x; i < length; i += (int)blockDim.x) result[i] *= scale;
}

// Each row of `length` is brought to mean 0 and variance 1, times weight, plus bias (null: 1 and 0); one block per row.
extern "C" __global__ void layer_norm_f32(float* out, const float* in, const float* weight, const float* bias,
                                          int length, float epsilon) {
  const float* row = in + (long long)blockIdx.x * length;
  float* result = out + (long long)blockIdx.x * length;
  float total = 0;
  for (int i = threadIdx.x; i < length; i += (int)blockDim.x) total += row[i];
  const float mean = reduce_block<Sum>(total) / (float)length;
  float squares = 0;
  for (int i = threadIdx.x; i < length; i += (int)blockDim.x) squares += (row[i] - mean) * (row[i] - mean);
  const float scale = 1.0f / sqrtf(reduce_block<Sum>(squares) / (float)length + epsilon);
  for (int i = threadIdx.x; i < length; i += (int)blockDim.x) {
    const float value = (row[i] - mean) * scale;
    result[i] = value * (weight ? weight[i] : 1.0f) + (bias ? bias[i] : 0.0f);
  }
}

// Inference with the means and variances of training, one for each channel of [outer][channels][inner].
extern "C" __global__ void batch_norm_f32(float* out, const float* in, const float* weight, const float* bias,
                                          const float* mean, const float* variance, float epsilon, int channels,
                                          int inner, int activation, int count) {
  const int i = global_thread();
  if (i >= count) return;
  const int channel = i / inner % channels;
  const float scale = weight[channel] / sqrtf(variance[channel] + epsilon);
  out[i] = activate((in[i] - mean[channel]) * scale + bias[channel], activation);
}
