// Fetches from texture objects and accesses to surface objects, a thread per coordinate, four channels per result.
#include "softgpu/conformance/kernels/common.h"

using Object = unsigned long long;
struct alignas(16) Texel {
  float x, y, z, w;
};
struct alignas(16) Words {
  int x, y, z, w;
};

KERNEL fetch_index(Object texture, int n, const int* x, Texel* out) {
  const int i = global_index();
  if (i >= n) return;
  Texel& t = out[i];
  asm volatile("tex.1d.v4.f32.s32 {%0, %1, %2, %3}, [%4, {%5}];"
               : "=f"(t.x), "=f"(t.y), "=f"(t.z), "=f"(t.w)
               : "l"(texture), "r"(x[i]));
}

KERNEL fetch_words(Object texture, int n, const int* x, Words* out) {
  const int i = global_index();
  if (i >= n) return;
  Words& t = out[i];
  asm volatile("tex.1d.v4.s32.s32 {%0, %1, %2, %3}, [%4, {%5}];"
               : "=r"(t.x), "=r"(t.y), "=r"(t.z), "=r"(t.w)
               : "l"(texture), "r"(x[i]));
}

KERNEL fetch_1d(Object texture, int n, const float* x, Texel* out) {
  const int i = global_index();
  if (i >= n) return;
  Texel& t = out[i];
  asm volatile("tex.1d.v4.f32.f32 {%0, %1, %2, %3}, [%4, {%5}];"
               : "=f"(t.x), "=f"(t.y), "=f"(t.z), "=f"(t.w)
               : "l"(texture), "f"(x[i]));
}

KERNEL fetch_2d(Object texture, int n, const float* x, const float* y, Texel* out) {
  const int i = global_index();
  if (i >= n) return;
  Texel& t = out[i];
  asm volatile("tex.2d.v4.f32.f32 {%0, %1, %2, %3}, [%4, {%5, %6}];"
               : "=f"(t.x), "=f"(t.y), "=f"(t.z), "=f"(t.w)
               : "l"(texture), "f"(x[i]), "f"(y[i]));
}

KERNEL fetch_3d(Object texture, int n, const float* x, const float* y, const float* z, Texel* out) {
  const int i = global_index();
  if (i >= n) return;
  Texel& t = out[i];
  asm volatile("tex.3d.v4.f32.f32 {%0, %1, %2, %3}, [%4, {%5, %6, %7, %7}];"
               : "=f"(t.x), "=f"(t.y), "=f"(t.z), "=f"(t.w)
               : "l"(texture), "f"(x[i]), "f"(y[i]), "f"(z[i]));
}

KERNEL fetch_layer(Object texture, int n, const int* layer, const float* x, const float* y, Texel* out) {
  const int i = global_index();
  if (i >= n) return;
  Texel& t = out[i];
  asm volatile("tex.a2d.v4.f32.f32 {%0, %1, %2, %3}, [%4, {%5, %6, %7, %7}];"
               : "=f"(t.x), "=f"(t.y), "=f"(t.z), "=f"(t.w)
               : "l"(texture), "r"(layer[i]), "f"(x[i]), "f"(y[i]));
}

// A surface's x counts bytes. out[y * width + x] becomes 3 * in[y * width + x] + 1.
KERNEL surface_map(Object in, Object out, int width, int height) {
  const int x = (int)(blockIdx.x * blockDim.x + threadIdx.x), y = (int)blockIdx.y;
  if (x >= width || y >= height) return;
  int value;
  asm volatile("suld.b.2d.b32.trap {%0}, [%1, {%2, %3}];" : "=r"(value) : "l"(in), "r"(4 * x), "r"(y));
  value = 3 * value + 1;
  asm volatile("sust.b.2d.b32.trap [%0, {%1, %2}], {%3};" ::"l"(out), "r"(4 * x), "r"(y), "r"(value) : "memory");
}

// Reads outside: zeros with .zero, the nearest element with .clamp; writes outside with .zero vanish.
KERNEL surface_edges(Object surface, int n, const int* x, const int* y, int* zero, int* clamp) {
  const int i = global_index();
  if (i >= n) return;
  asm volatile("suld.b.2d.b32.zero {%0}, [%1, {%2, %3}];" : "=r"(zero[i]) : "l"(surface), "r"(4 * x[i]), "r"(y[i]));
  asm volatile("suld.b.2d.b32.clamp {%0}, [%1, {%2, %3}];" : "=r"(clamp[i]) : "l"(surface), "r"(4 * x[i]), "r"(y[i]));
  asm volatile("sust.b.2d.b32.zero [%0, {%1, %2}], {%3};" ::"l"(surface), "r"(4 * x[i]), "r"(y[i]), "r"(1000 + i)
               : "memory");
}
