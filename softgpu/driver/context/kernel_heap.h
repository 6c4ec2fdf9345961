// Where malloc in the kernels of a context takes memory: CU_LIMIT_MALLOC_HEAP_SIZE bytes of the context's own.
#pragma once

#include <memory>

#include "softgpu/driver/context/context.h"
#include "softgpu/mutex.h"
#include "softgpu/ptx/heap.h"

namespace softgpu {

// Thread-safe.
class KernelHeap final : public ContextPart {
 public:
  static constexpr Kind kKind = Kind::kKernelHeap;
  explicit KernelHeap(CUctx_st& context) : context_(context) {}

  // Made when first asked for. Null when the device is full.
  ptx::DeviceHeap* get();
  // Whether it is there: its size can no longer be changed.
  bool made();
  void close() override;

 private:
  CUctx_st& context_;
  Mutex mutex_;
  std::unique_ptr<ptx::DeviceHeap> heap_ SOFTGPU_GUARDED_BY(mutex_);  // in memory of the context's heap
};

}  // namespace softgpu
