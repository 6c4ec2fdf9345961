// Comparisons, choices, and places that are computed: truth is a byte, 0 or 1.
#include "element.h"

struct Shape6 {
  int size[6];
};
struct Strides6 {
  int of[6];
};
using Truth = unsigned char;

FAIRLEAD_DEVICE long long place(const Shape6& shape, int element, const Strides6& strides) {
  long long at = 0;
  for (int dimension = 5; dimension >= 0; --dimension) {
    at += (long long)(element % shape.size[dimension]) * strides.of[dimension];
    element /= shape.size[dimension];
  }
  return at;
}

// Two tensors read with strides (0 repeats).
#define BINARY(name, Out, T, expression)                                                              \
  extern "C" __global__ void name(Out* out, const T* a, const T* b, Shape6 shape, Strides6 a_strides, \
                                  Strides6 b_strides, int count) {                                    \
    const int i = global_thread();                                                                    \
    if (i >= count) return;                                                                           \
    const T x = a[place(shape, i, a_strides)];                                                        \
    const T y = b[place(shape, i, b_strides)];                                                        \
    out[i] = (Out)(expression);                                                                       \
  }
#define COMPARE(suffix, T)                        \
  BINARY(eq_##suffix##_strided, Truth, T, x == y) \
  BINARY(ne_##suffix##_strided, Truth, T, x != y) \
  BINARY(lt_##suffix##_strided, Truth, T, x < y)  \
  BINARY(le_##suffix##_strided, Truth, T, x <= y) \
  BINARY(gt_##suffix##_strided, Truth, T, x > y)  \
  BINARY(ge_##suffix##_strided, Truth, T, x >= y)
COMPARE(f32, float)
COMPARE(f64, double)
COMPARE(s32, int)
COMPARE(s64, long long)
COMPARE(u8, unsigned char)

// remainder and quotient as Python has them: rounded down; 0 by 0.
#define WHOLE(suffix, T)                                                                                            \
  BINARY(add_##suffix##_strided, T, T, x + y)                                                                       \
  BINARY(sub_##suffix##_strided, T, T, x - y)                                                                       \
  BINARY(mul_##suffix##_strided, T, T, x* y)                                                                        \
  BINARY(max_##suffix##_strided, T, T, x > y ? x : y)                                                               \
  BINARY(min_##suffix##_strided, T, T, x < y ? x : y)                                                               \
  BINARY(remainder_##suffix##_strided, T, T, y == 0 ? 0 : x % y != 0 && (x % y < 0) != (y < 0) ? x % y + y : x % y) \
  BINARY(quotient_##suffix##_strided, T, T, y == 0 ? 0 : x / y - (x % y != 0 && (x % y < 0) != (y < 0)))
WHOLE(s32, int)
WHOLE(s64, long long)
#define BITS(suffix, T)                      \
  BINARY(and_##suffix##_strided, T, T, x& y) \
  BINARY(or_##suffix##_strided, T, T, x | y) \
  BINARY(xor_##suffix##_strided, T, T, x ^ y)
BITS(u8, unsigned char)
BITS(s32, int)
BITS(s64, long long)

// condition ? a : b, all three read with strides; by the size of the elements.
#define WHERE(T, bytes)                                                                                              \
  extern "C" __global__ void where_b##bytes(T* out, const Truth* condition, const T* a, const T* b, Shape6 shape,    \
                                            Strides6 c_strides, Strides6 a_strides, Strides6 b_strides, int count) { \
    const int i = global_thread();                                                                                   \
    if (i >= count) return;                                                                                          \
    out[i] = condition[place(shape, i, c_strides)] ? a[place(shape, i, a_strides)] : b[place(shape, i, b_strides)];  \
  }
WHERE(unsigned char, 1)
WHERE(unsigned short, 2)
WHERE(unsigned, 4)
WHERE(unsigned long long, 8)

// out[i] = in[place of i by strides + index * stride], index counted from the back where it is negative; 0 bits where it is
// out of range. `index` is of out's shape.
#define GATHER(T, bytes)                                                                                \
  extern "C" __global__ void gather_b##bytes(T* out, const T* in, const long long* index, Shape6 shape, \
                                             Strides6 in_strides, int limit, int stride, int count) {   \
    const int i = global_thread();                                                                      \
    if (i >= count) return;                                                                             \
    long long at = index[i];                                                                            \
    if (at < 0) at += limit;                                                                            \
    out[i] = at >= 0 && at < limit ? in[place(shape, i, in_strides) + at * stride] : (T)0;              \
  }
GATHER(unsigned char, 1)
GATHER(unsigned short, 2)
GATHER(unsigned, 4)
GATHER(unsigned long long, 8)

// The inverse along the middle of [outer][limit][inner]: out is `in`, but where index [outer][length][inner] names a place it is
// the source's element of that index; of several the last. Every element of the result asks who writes it, so two runs agree.
#define SCATTER(T, bytes)                                                                                   \
  extern "C" __global__ void scatter_b##bytes(T* out, const T* in, const long long* index, const T* source, \
                                              int length, int limit, int inner, int count) {                \
    const int i = global_thread();                                                                          \
    if (i >= count) return;                                                                                 \
    const int own = i / inner % limit;                                                                      \
    const long long first = (long long)(i / inner / limit) * length * inner + i % inner;                    \
    T value = in[i];                                                                                        \
    for (int k = 0; k < length; ++k) {                                                                      \
      const long long at = index[first + (long long)k * inner];                                             \
      if ((at < 0 ? at + limit : at) == own) value = source[first + (long long)k * inner];                  \
    }                                                                                                       \
    out[i] = value;                                                                                         \
  }
SCATTER(unsigned char, 1)
SCATTER(unsigned short, 2)
SCATTER(unsigned, 4)
SCATTER(unsigned long long, 8)

// The same, but elements of one place are put together: mode 0 sum, 1 product, 2 largest, 3 smallest, 4 mean. include: with
// what `in` has there.
extern "C" __global__ void scatter_reduce_f32(float* out, const float* in, const long long* index, const float* source,
                                              int length, int limit, int inner, int mode, int include, int count) {
  const int i = global_thread();
  if (i >= count) return;
  const int own = i / inner % limit;
  const long long first = (long long)(i / inner / limit) * length * inner + i % inner;
  double value = in[i];
  int values = include ? 1 : 0;
  for (int k = 0; k < length; ++k) {
    const long long at = index[first + (long long)k * inner];
    if ((at < 0 ? at + limit : at) != own) continue;
    const double x = source[first + (long long)k * inner];
    if (values++ == 0) {
      value = x;
    } else if (mode == 0 || mode == 4) {
      value += x;
    } else if (mode == 1) {
      value *= x;
    } else if (x != x || (mode == 2 ? x > value : x < value)) {
      value = x;
    }
  }
  out[i] = (float)(mode == 4 && values > 1 ? value / values : value);
}

// Running sums along the middle of [outer][length][inner]; one thread for each line.
extern "C" __global__ void cumsum_f32(float* out, const float* in, int length, int inner, int count) {
  const int i = global_thread();
  if (i >= count) return;
  const long long first = (long long)(i / inner) * length * inner + i % inner;
  double total = 0;
  for (int k = 0; k < length; ++k) {
    total += in[first + (long long)k * inner];
    out[first + (long long)k * inner] = (float)total;
  }
}
extern "C" __global__ void cumsum_s64(long long* out, const long long* in, int length, int inner, int count) {
  const int i = global_thread();
  if (i >= count) return;
  const long long first = (long long)(i / inner) * length * inner + i % inner;
  long long total = 0;
  for (int k = 0; k < length; ++k) {
    total += in[first + (long long)k * inner];
    out[first + (long long)k * inner] = total;
  }
}

// Sorts rows of `length`: each element counts those before it, which is its place. Equal ones keep their order; NaN is the
// largest.
FAIRLEAD_DEVICE bool comes_before(float a, int at_a, float b, int at_b, int descending) {
  const bool nan_a = a != a;
  const bool nan_b = b != b;
  const bool less = nan_a ? false : nan_b ? true : a < b;
  const bool more = nan_b ? false : nan_a ? true : a > b;
  if (!less && !more) return at_a < at_b;
  return descending ? more : less;
}
extern "C" __global__ void sort_f32(float* out, long long* indices, const float* in, int length, int descending,
                                    int count) {
  const int i = global_thread();
  if (i >= count) return;
  const long long first = (long long)(i / length) * length;
  const int own = i % length;
  const float value = in[i];
  int rank = 0;
  for (int k = 0; k < length; ++k) rank += comes_before(in[first + k], k, value, own, descending);
  out[first + rank] = value;
  indices[first + rank] = own;
}

// The product over the middle of [outer][length][inner], and the place of the largest (s64; of equal ones the first, NaN before
// all); one thread for each line.
extern "C" __global__ void product_f32(float* out, const float* in, int length, int inner, int count) {
  const int i = global_thread();
  if (i >= count) return;
  const long long first = (long long)(i / inner) * length * inner + i % inner;
  double product = 1;
  for (int k = 0; k < length; ++k) product *= in[first + (long long)k * inner];
  out[i] = (float)product;
}
// The largest (sign 1) or smallest (sign -1) and its place; NaN wins, of equal ones the first.
extern "C" __global__ void extreme_f32(float* out, long long* indices, const float* in, int length, int inner,
                                       float sign, int count) {
  const int i = global_thread();
  if (i >= count) return;
  const long long first = (long long)(i / inner) * length * inner + i % inner;
  float best = in[first];
  int at = 0;
  for (int k = 1; k < length && best == best; ++k) {
    const float x = in[first + (long long)k * inner];
    if (x * sign > best * sign || x != x) {
      best = x;
      at = k;
    }
  }
  out[i] = best;
  indices[i] = at;
}
// Whether one of the middle of [outer][length][inner] is true.
extern "C" __global__ void any_u8(Truth* out, const Truth* in, int length, int inner, int count) {
  const int i = global_thread();
  if (i >= count) return;
  const long long first = (long long)(i / inner) * length * inner + i % inner;
  Truth found = 0;
  for (int k = 0; k < length; ++k) found |= in[first + (long long)k * inner] != 0;
  out[i] = found;
}
