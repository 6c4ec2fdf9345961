// What C++ needs from a machine: calls through pointers and tables, recursion, memory in all its spaces.
#include "softgpu/conformance/kernels/common.h"

// ---- Calls ----
__device__ __noinline__ int add_numbers(int a, int b) {
  return a + b;
}
__device__ __noinline__ int subtract_numbers(int a, int b) {
  return a - b;
}
__device__ __noinline__ int multiply_numbers(int a, int b) {
  return a * b;
}
using Operation = int (*)(int, int);
__device__ Operation operations[3] = {add_numbers, subtract_numbers, multiply_numbers};

KERNEL function_pointers(const int* a, const int* b, int* out) {
  const int i = global_index();
  out[i] = operations[i % 3](a[i], b[i]);
}

struct Shape {
  __device__ virtual float area() const = 0;
  __device__ virtual int sides() const { return 0; }
};
struct Circle final : Shape {
  float radius;
  __device__ explicit Circle(float r) : radius(r) {}
  __device__ float area() const override { return 3.0f * radius * radius; }
};
struct Rectangle : Shape {
  float width, height;
  __device__ Rectangle(float w, float h) : width(w), height(h) {}
  __device__ float area() const override { return width * height; }
  __device__ int sides() const override { return 4; }
};
struct Square final : Rectangle {
  __device__ explicit Square(float s) : Rectangle(s, s) {}
  __device__ float area() const override { return width * width + 0.5f; }
};
extern "C" __device__ void __cxa_pure_virtual() {
  __builtin_trap();
}
__device__ __noinline__ float measure(const Shape& shape) {
  return shape.area() + (float)shape.sides();
}
KERNEL virtual_calls(float* out) {
  const int i = global_index();
  const float size = (float)i;
  const Circle circle(size);
  const Rectangle rectangle(size, 2.0f);
  const Square square(size);
  const Shape* shapes[] = {&circle, &rectangle, &square};
  out[i] = measure(*shapes[i % 3]) + measure(*shapes[(i + 1) % 3]);
}

// Deep recursion, different for every lane, and two functions that call each other.
__device__ __noinline__ unsigned ackermann_of(unsigned m, unsigned n) {
  if (m == 0) return n + 1;
  return ackermann_of(m - 1, n == 0 ? 1 : ackermann_of(m, n - 1));
}
__device__ int is_even(int n);
__device__ __noinline__ int is_odd(int n) {
  return n == 0 ? 0 : is_even(n - 1);
}
__device__ __noinline__ int is_even(int n) {
  return n == 0 ? 1 : is_odd(n - 1);
}
KERNEL recursion(unsigned* out) {
  const unsigned i = threadIdx.x;
  out[2 * i] = ackermann_of(1 + i % 2, i % 6);
  out[2 * i + 1] = (unsigned)is_even((int)i % 9);
}

// Quicksort with an explicit partition, recursive on both sides, of each thread's own array.
__device__ void quicksort(int* values, int low, int high) {
  if (low >= high) return;
  const int pivot = values[(low + high) / 2];
  int i = low, j = high;
  while (i <= j) {
    while (values[i] < pivot) ++i;
    while (values[j] > pivot) --j;
    if (i > j) break;
    const int swap = values[i];
    values[i++] = values[j];
    values[j--] = swap;
  }
  quicksort(values, low, j);
  quicksort(values, i, high);
}
KERNEL thread_quicksort(const int* in, int* out) {
  int values[24];
  for (int i = 0; i < 24; ++i) values[i] = in[global_index() * 24 + i];
  quicksort(values, 0, 23);
  for (int i = 0; i < 24; ++i) out[global_index() * 24 + i] = values[i];
}

// ---- Memory ----
__constant__ int table[64] = {3, 1, 4, 1, 5, 9, 2, 6};
__device__ long long counter = 1000;
__device__ float grid[4][4] = {{1, 2, 3, 4}, {5, 6, 7, 8}};
__device__ const char* message = "a pointer in an initial value";
KERNEL variables(int index, int* out) {
  const int i = threadIdx.x;
  out[4 * i] = table[i] * 10 + table[index];
  atomicAdd(&counter, (long long)i);
  grid[2][i % 4] = 0.5f;
  out[4 * i + 1] = (int)grid[i % 2][i % 4];
  out[4 * i + 2] = message[i % 29];
  out[4 * i + 3] = (int)sizeof(grid);
}

// More live values than registers, and an array that is indexed by data.
KERNEL spills(const float* in, const int* order, float* out) {
  float values[96];
  for (int i = 0; i < 96; ++i) values[i] = in[i] * (float)(threadIdx.x + 1);
  for (int round = 0; round < 4; ++round) {
    for (int i = 0; i < 96; ++i) {
      const int j = order[(i + (int)threadIdx.x * 5) % 96];
      const float swap = values[i];
      values[i] = values[j] + 1.0f;
      values[j] = swap - 1.0f;
    }
  }
  float sum = 0;
  for (int i = 0; i < 96; ++i) sum += values[i] * (float)i;
  out[threadIdx.x] = sum;
}

// Parameters of all sizes and alignments, by value.
struct Inner {
  double d;
  short s[3];
};
struct Packet {
  char tag;
  Inner inner[2];
  unsigned long long big;
  float f;
};
KERNEL structure_parameters(char c, Packet packet, short s, double d, const int* in, double* out) {
  const int i = threadIdx.x;
  out[i] = c + packet.tag + packet.inner[i % 2].d * packet.inner[1 - i % 2].s[i % 3] + (double)packet.big + packet.f +
           s + d * in[i];
}

// Generic pointers: one load that meets shared, local and global memory in different lanes.
KERNEL generic_pointers(const int* in, int* out) {
  __shared__ int shared_values[32];
  int local_values[4];
  const int i = threadIdx.x;
  shared_values[i] = in[i] + 1;
  for (int j = 0; j < 4; ++j) local_values[j] = in[i] * (j + 2);
  __syncthreads();
  const int* pointers[] = {&in[i], &shared_values[31 - i], &local_values[i % 4]};
  out[i] = *pointers[i % 3] * 2;
}

// Unions, bytes, bit fields and unaligned structures through memcpy.
KERNEL bytes(const unsigned char* in, unsigned long long* out) {
  struct Fields {
    unsigned low : 5, middle : 13, high : 14;
  };
  const int i = threadIdx.x;
  unsigned long long word;
  __builtin_memcpy(&word, in + i * 3 + 1, sizeof word);
  const Fields fields = __builtin_bit_cast(Fields, (unsigned)word);
  const unsigned long long swapped = __builtin_bswap64(word);
  out[i] = swapped ^ ((unsigned long long)fields.low << 48 | (unsigned long long)fields.high << 20 | fields.middle);
}

// Special registers of a three-dimensional launch.
KERNEL indices(unsigned* out) {
  const unsigned block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
  const unsigned thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  const unsigned i = block * blockDim.x * blockDim.y * blockDim.z + thread;
  unsigned lane;
  asm("mov.u32 %0, %%laneid;" : "=r"(lane));
  out[i] = block * 10000 + thread * 100 + lane;
}
KERNEL clocks(unsigned long long* out) {
  unsigned long long clock0, clock1, time0, time1;
  asm volatile("mov.u64 %0, %%clock64;" : "=l"(clock0));
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(time0));
  unsigned x = threadIdx.x;
  for (int i = 0; i < 1000; ++i) x = x * 1664525u + 1013904223u;
  asm volatile("mov.u64 %0, %%clock64;" : "=l"(clock1));
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(time1));
  out[0] = clock1 > clock0;
  out[1] = time1 >= time0;
  out[2] = x;
}

// ---- Output ----
extern "C" __device__ int printf(const char* format, ...);
KERNEL print(int n, const char* word) {
  printf("block %d of %s: %5.2f %lld %c %x%%\n", n, word, 1.5 * n, -5000000000ll, 'z', 255);
  if (n == 2) printf("[%-6s|%06d|%e|%u]\n", "ab", -42, 12345.678, 4000000000u);
}

extern "C" __device__ void __assertfail(const char* message, const char* file, unsigned line, const char* function,
                                        unsigned long character_bytes);
KERNEL assert_positive(const int* in) {
  if (in[threadIdx.x] <= 0) __assertfail("in[i] > 0", "language.cu", 7, "assert_positive", 1);
}

// ---- Faults ----
KERNEL read_at(const unsigned* address, unsigned* out) {
  out[threadIdx.x] = address[threadIdx.x];
}
KERNEL write_at(unsigned* address, unsigned value) {
  address[threadIdx.x] = value;
}
KERNEL misaligned(char* address) {
  *(volatile unsigned*)(address + 2) = 1;
}
KERNEL trap() {
  __builtin_trap();
}
