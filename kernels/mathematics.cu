// One thread per element: functions whose precision is a float's own (mathematics.h), and activations with a parameter.
#include "mathematics.h"

struct Shape6 {
  int size[6];
};
struct Strides6 {
  int of[6];
};

#define UNARY(name, expression)                                             \
  extern "C" __global__ void name(float* out, const float* in, int count) { \
    const int i = global_thread();                                          \
    if (i >= count) return;                                                 \
    const double x = in[i];                                                 \
    out[i] = (float)(expression);                                           \
  }
UNARY(sin_f32, sin_f64(x))
UNARY(cos_f32, cos_f64(x))
UNARY(tan_f32, tan_f64(x))
UNARY(asin_f32, asin_f64(x))
UNARY(acos_f32, acos_f64(x))
UNARY(atan_f32, atan_f64(x))
UNARY(sinh_f32, sinh_f64(x))
UNARY(cosh_f32, cosh_f64(x))
UNARY(asinh_f32, asinh_f64(x))
UNARY(acosh_f32, acosh_f64(x))
UNARY(atanh_f32, atanh_f64(x))
UNARY(erf_f32, erf_f64(x))
UNARY(expm1_f32, expm1_f64(x))
UNARY(exp_precise_f32, exp_f64(x))
UNARY(log_precise_f32, log_f64(x))
UNARY(log1p_f32, log1p_f64(x))
UNARY(log2_f32, log_f64(x) * 1.44269504088896340736)
UNARY(log10_f32, log_f64(x) * 0.43429448190325182765)
UNARY(sigmoid_precise_f32, 1 / (1 + exp_f64(-x)))
UNARY(tanh_precise_f32, fabs(x) < 1e-2 ? x * (1 - x * x / 3 * (1 - x * x * 2 / 5)) : 1 - 2 / (exp_f64(2 * x) + 1))
UNARY(floor_f32, floor_f64(x))
UNARY(ceil_f32, -floor_f64(-x))
UNARY(round_f32, __builtin_copysign(nearest(x), x))
UNARY(trunc_f32, truncated(x))
UNARY(sign_f32, is_nan(x) ? x : x > 0 ? 1 : x < 0 ? -1 : 0)
UNARY(reciprocal_f32, 1 / x)

// Two tensors read with strides (0 repeats).
#define BINARY(name, expression)                                                                                \
  extern "C" __global__ void name(float* out, const float* a, const float* b, Shape6 shape, Strides6 a_strides, \
                                  Strides6 b_strides, int count) {                                              \
    const int i = global_thread();                                                                              \
    if (i >= count) return;                                                                                     \
    long long at_a = 0;                                                                                         \
    long long at_b = 0;                                                                                         \
    int element = i;                                                                                            \
    for (int dimension = 5; dimension >= 0; --dimension) {                                                      \
      const int index = element % shape.size[dimension];                                                        \
      element /= shape.size[dimension];                                                                         \
      at_a += (long long)index * a_strides.of[dimension];                                                       \
      at_b += (long long)index * b_strides.of[dimension];                                                       \
    }                                                                                                           \
    const double x = a[at_a];                                                                                   \
    const double y = b[at_b];                                                                                   \
    out[i] = (float)(expression);                                                                               \
  }
BINARY(pow_f32_strided, pow_f64(x, y))
BINARY(atan2_f32_strided, atan2_f64(x, y))
BINARY(fmod_f32_strided, fmod_f64(x, y))
BINARY(remainder_f32_strided, remainder_f64(x, y))
BINARY(prelu_f32_strided, x > 0 ? x : x * y)
// The larger and the smaller; NaN if one is NaN, as NumPy's maximum.
BINARY(maximum_f32_strided, is_nan(x) ? x : is_nan(y) ? y : x > y ? x : y)
BINARY(minimum_f32_strided, is_nan(x) ? x : is_nan(y) ? y : x < y ? x : y)

extern "C" __global__ void leaky_relu_f32(float* out, const float* in, float slope, int count) {
  const int i = global_thread();
  if (i < count) out[i] = in[i] > 0 ? in[i] : in[i] * slope;
}
// scale * x above 0, alpha * scale * (exp(input_scale * x) - 1) below.
extern "C" __global__ void elu_f32(float* out, const float* in, float alpha, float scale, float input_scale,
                                   int count) {
  const int i = global_thread();
  if (i >= count) return;
  const double x = in[i];
  out[i] = (float)(x > 0 ? scale * x : (double)alpha * scale * expm1_f64(x * input_scale));
}
// x, not below low, not above high; NaN stays.
extern "C" __global__ void clamp_nan_f32(float* out, const float* in, float low, float high, int count) {
  const int i = global_thread();
  if (i >= count) return;
  float x = in[i];
  if (x < low) x = low;
  if (x > high) x = high;
  out[i] = x;
}
// x * weight[channel] + bias[channel] of [outer][channels][inner]; null: 1 and 0.
extern "C" __global__ void channel_affine_f32(float* out, const float* in, const float* weight, const float* bias,
                                              int channels, int inner, int count) {
  const int i = global_thread();
  if (i >= count) return;
  const int channel = i / inner % channels;
  out[i] = in[i] * (weight ? weight[channel] : 1.0f) + (bias ? bias[channel] : 0.0f);
}
