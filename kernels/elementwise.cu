// One thread per element of the result.
#include "element.h"

// A place in a tensor of up to six dimensions from the number of its element. Dimensions that are not there have
// size 1.
struct Shape6 {
  int size[6];
};
struct Strides6 {
  int of[6];
};

FAIRLEAD_DEVICE void places(const Shape6& shape, int element, const Strides6& first, const Strides6& second,
                            long long& at_first, long long& at_second) {
  at_first = at_second = 0;
  for (int dimension = 5; dimension >= 0; --dimension) {
    const int index = element % shape.size[dimension];
    element /= shape.size[dimension];
    at_first += (long long)index * first.of[dimension];
    at_second += (long long)index * second.of[dimension];
  }
}

#define UNARY(name, T, expression)                                  \
  extern "C" __global__ void name(T* out, const T* in, int count) { \
    const int i = global_thread();                                  \
    if (i >= count) return;                                         \
    const T x = in[i];                                              \
    out[i] = expression;                                            \
  }
UNARY(relu_f32, float, x < 0.0f ? 0.0f : x)
UNARY(gelu_f32, float, gelu(x))
UNARY(gelu_tanh_f32, float, gelu_tanh(x))
UNARY(tanh_f32, float, tanhf(x))
UNARY(sigmoid_f32, float, sigmoid(x))
UNARY(silu_f32, float, x* sigmoid(x))
UNARY(exp_f32, float, expf(x))
UNARY(log_f32, float, logf(x))
UNARY(sqrt_f32, float, sqrtf(x))
UNARY(rsqrt_f32, float, 1.0f / sqrtf(x))
UNARY(abs_f32, float, fabsf(x))
UNARY(square_f32, float, x* x)

// x and y have the result's shape.
#define BINARY(name, T, expression)                                                                           \
  extern "C" __global__ void name(T* out, const T* a, const T* b, int count) {                                \
    const int i = global_thread();                                                                            \
    if (i >= count) return;                                                                                   \
    const T x = a[i];                                                                                         \
    const T y = b[i];                                                                                         \
    out[i] = expression;                                                                                      \
  }                                                                                                           \
  extern "C" __global__ void name##_strided(T* out, const T* a, const T* b, Shape6 shape, Strides6 a_strides, \
                                            Strides6 b_strides, int count) {                                  \
    const int i = global_thread();                                                                            \
    if (i >= count) return;                                                                                   \
    long long at_a, at_b;                                                                                     \
    places(shape, i, a_strides, b_strides, at_a, at_b);                                                       \
    const T x = a[at_a];                                                                                      \
    const T y = b[at_b];                                                                                      \
    out[i] = expression;                                                                                      \
  }
#define BINARY_ALL(name, expression)    \
  BINARY(name##_f32, float, expression) \
  BINARY(name##_f64, double, expression)
BINARY_ALL(add, x + y)
BINARY_ALL(sub, x - y)
BINARY_ALL(mul, x* y)
BINARY_ALL(div, x / y)
BINARY(max_f32, float, fmaxf(x, y))
BINARY(min_f32, float, fminf(x, y))
BINARY(add_c64, Complex, x + y)
BINARY(sub_c64, Complex, x - y)
BINARY(mul_c64, Complex, x* y)

// out = alpha * x + beta
#define SCALE(name, T)                                                              \
  extern "C" __global__ void name(T* out, const T* x, T alpha, T beta, int count) { \
    const int i = global_thread();                                                  \
    if (i < count) out[i] = alpha * x[i] + beta;                                    \
  }
SCALE(scale_f32, float)
SCALE(scale_f64, double)
SCALE(scale_c64, Complex)

// out = alpha * x + y
#define AXPY(name, T)                                                                   \
  extern "C" __global__ void name(T* out, const T* x, const T* y, T alpha, int count) { \
    const int i = global_thread();                                                      \
    if (i < count) out[i] = multiply_add(alpha, x[i], y[i]);                            \
  }
AXPY(axpy_f32, float)
AXPY(axpy_f64, double)
AXPY(axpy_c64, Complex)

extern "C" __global__ void clamp_f32(float* out, const float* x, float low, float high, int count) {
  const int i = global_thread();
  if (i < count) out[i] = fminf(fmaxf(x[i], low), high);
}

// out[i] = in[i / inner % channels] of a vector added to x: one bias for each channel of [outer][channels][inner].
extern "C" __global__ void bias_add_f32(float* out, const float* x, const float* bias, int channels, int inner,
                                        int count) {
  const int i = global_thread();
  if (i < count) out[i] = x[i] + bias[i / inner % channels];
}

// f16 and bf16 have two bytes and are computed with in float; a float becomes the nearest of them, ties to even.
struct Half {
  unsigned short bits;
  Half() = default;
  __device__ explicit Half(float x) { asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x)); }
  __device__ explicit operator float() const {
    float x;
    asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(bits));
    return x;
  }
};
struct Brain {
  unsigned short bits;
  Brain() = default;
  __device__ explicit Brain(float x) {
    unsigned all;
    __builtin_memcpy(&all, &x, sizeof all);
    const bool is_nan = x != x;
    bits = is_nan ? 0x7fc0 : (unsigned short)((all + 0x7fff + (all >> 16 & 1)) >> 16);
  }
  __device__ explicit operator float() const {
    const unsigned all = (unsigned)bits << 16;
    float x;
    __builtin_memcpy(&x, &all, sizeof x);
    return x;
  }
};

// Whole numbers of a float that has a fraction are cut towards zero.
#define CONVERT(name, From, To)                                         \
  extern "C" __global__ void name(To* out, const From* in, int count) { \
    const int i = global_thread();                                      \
    if (i < count) out[i] = (To)in[i];                                  \
  }
CONVERT(convert_f32_f64, float, double)
CONVERT(convert_f64_f32, double, float)
CONVERT(convert_f16_f32, Half, float)
CONVERT(convert_f32_f16, float, Half)
CONVERT(convert_bf16_f32, Brain, float)
CONVERT(convert_f32_bf16, float, Brain)
CONVERT(convert_s32_f32, int, float)
CONVERT(convert_s64_f32, long long, float)
CONVERT(convert_u8_f32, unsigned char, float)
CONVERT(convert_f32_s32, float, int)
CONVERT(convert_f32_s64, float, long long)
CONVERT(convert_f32_u8, float, unsigned char)
CONVERT(convert_s64_s32, long long, int)
CONVERT(convert_s32_s64, int, long long)
CONVERT(convert_u8_s32, unsigned char, int)
CONVERT(convert_u8_s64, unsigned char, long long)
CONVERT(convert_s64_f64, long long, double)
CONVERT(convert_u8_f64, unsigned char, double)
