// Hints about managed memory: the driver's, once the memory they speak of is there.
#include "shim/hooks/hook.h"
#include "shim/memory/memory.h"

namespace {

// What cuMemAlloc gave is not managed memory to the program, whatever it is to the driver.
template <typename Hint>
CUresult hint(CUdeviceptr address, Hint real) {
  const fairlead::shim::Passage passage;
  fairlead::shim::memory::Range range;
  const bool ours = passage.slot() != nullptr && fairlead::shim::memory::find(address, &range);
  return ours ? CUDA_ERROR_INVALID_VALUE : real(passage);
}

}  // namespace

#define ADVISE(name, where_type)                                                     \
  HOOK name(CUdeviceptr a, size_t n, CUmem_advise advice, where_type where) {        \
    return hint(a, [&](auto&) { return FAIRLEAD_REAL(name)(a, n, advice, where); }); \
  }
ADVISE(cuMemAdvise, CUdevice)
ADVISE(cuMemAdvise_v2, CUmemLocation)

#define PREFETCH(name, on_stream, parameters, arguments) \
  HOOK name parameters {                                 \
    return hint(a, [&](auto& passage) {                  \
      fairlead::shim::pass_work(passage, on_stream);     \
      return FAIRLEAD_REAL(name) arguments;              \
    });                                                  \
  }
#define PREFETCH_BOTH(name, parameters, arguments) \
  PREFETCH(name, stream, parameters, arguments)    \
  PREFETCH(name##_ptsz, fairlead::shim::per_thread(stream), parameters, arguments)
PREFETCH_BOTH(cuMemPrefetchAsync, (CUdeviceptr a, size_t n, CUdevice device, CUstream stream), (a, n, device, stream))
PREFETCH_BOTH(cuMemPrefetchAsync_v2,
              (CUdeviceptr a, size_t n, CUmemLocation where, unsigned int flags, CUstream stream),
              (a, n, where, flags, stream))

QUEUED_BOTH(cuMemPrefetchBatchAsync,
            (CUdeviceptr * addresses, size_t* bytes, size_t count, CUmemLocation* locations, size_t* indices,
             size_t location_count, unsigned long long flags, CUstream stream),
            (addresses, bytes, count, locations, indices, location_count, flags, stream))
QUEUED_BOTH(cuMemDiscardBatchAsync,
            (CUdeviceptr * addresses, size_t* bytes, size_t count, unsigned long long flags, CUstream stream),
            (addresses, bytes, count, flags, stream))
QUEUED_BOTH(cuMemDiscardAndPrefetchBatchAsync,
            (CUdeviceptr * addresses, size_t* bytes, size_t count, CUmemLocation* locations, size_t* indices,
             size_t location_count, unsigned long long flags, CUstream stream),
            (addresses, bytes, count, locations, indices, location_count, flags, stream))
QUEUED_BOTH(cuStreamAttachMemAsync, (CUstream stream, CUdeviceptr address, size_t bytes, unsigned int flags),
            (stream, address, bytes, flags))
