// Memory that kernels take themselves.
#include "softgpu/conformance/kernels/common.h"

extern "C" __device__ void* malloc(unsigned long bytes);
extern "C" __device__ void free(void* memory);

__device__ void* operator new(unsigned long bytes) {
  return malloc(bytes);
}
__device__ void operator delete(void* memory) noexcept {
  free(memory);
}
__device__ void operator delete(void* memory, unsigned long) noexcept {
  free(memory);
}

struct Node {
  int value;
  Node* next;
};

// Every thread builds a list, sums it and frees it.
KERNEL heap_lists(int length, long long* out) {
  Node* first = nullptr;
  for (int i = 0; i < length; ++i) {
    Node* node = new Node{(int)threadIdx.x * i, first};
    first = node;
  }
  long long sum = 0;
  while (first != nullptr) {
    sum += first->value;
    Node* next = first->next;
    delete first;
    first = next;
  }
  out[global_index()] = sum;
}

// One thread per block takes memory; the whole block uses it; a later kernel sees it and frees it.
KERNEL heap_take(unsigned** pieces) {
  __shared__ unsigned* piece;
  if (threadIdx.x == 0) pieces[blockIdx.x] = piece = (unsigned*)malloc(blockDim.x * sizeof(unsigned));
  __syncthreads();
  piece[threadIdx.x] = blockIdx.x * 1000 + threadIdx.x;
}
KERNEL heap_give_back(unsigned** pieces, unsigned* out) {
  out[global_index()] = pieces[blockIdx.x][threadIdx.x];
  __syncthreads();
  if (threadIdx.x == 0) free(pieces[blockIdx.x]);
}

// More than the heap has: null, not a fault. The address leaves the kernel, or the compiler would drop the allocation.
KERNEL heap_exhausted(unsigned long bytes, void** address) {
  void* memory = malloc(bytes);
  *address = memory;
  free(memory);
  free(nullptr);
}
