// Fills.
#include "shim/hooks/hook.h"

// Those without a stream are put on the default one and may return before they are done.
#define FILL_BOTH(name, parameters, arguments) \
  QUEUED(name, nullptr, parameters, arguments) \
  QUEUED(name##_ptds, CU_STREAM_PER_THREAD, parameters, arguments)

FILL_BOTH(cuMemsetD8_v2, (CUdeviceptr a, unsigned char v, size_t n), (a, v, n))
FILL_BOTH(cuMemsetD16_v2, (CUdeviceptr a, unsigned short v, size_t n), (a, v, n))
FILL_BOTH(cuMemsetD32_v2, (CUdeviceptr a, unsigned int v, size_t n), (a, v, n))
FILL_BOTH(cuMemsetD2D8_v2, (CUdeviceptr a, size_t p, unsigned char v, size_t w, size_t h), (a, p, v, w, h))
FILL_BOTH(cuMemsetD2D16_v2, (CUdeviceptr a, size_t p, unsigned short v, size_t w, size_t h), (a, p, v, w, h))
FILL_BOTH(cuMemsetD2D32_v2, (CUdeviceptr a, size_t p, unsigned int v, size_t w, size_t h), (a, p, v, w, h))

QUEUED_BOTH(cuMemsetD8Async, (CUdeviceptr a, unsigned char v, size_t n, CUstream stream), (a, v, n, stream))
QUEUED_BOTH(cuMemsetD16Async, (CUdeviceptr a, unsigned short v, size_t n, CUstream stream), (a, v, n, stream))
QUEUED_BOTH(cuMemsetD32Async, (CUdeviceptr a, unsigned int v, size_t n, CUstream stream), (a, v, n, stream))
QUEUED_BOTH(cuMemsetD2D8Async, (CUdeviceptr a, size_t p, unsigned char v, size_t w, size_t h, CUstream stream),
            (a, p, v, w, h, stream))
QUEUED_BOTH(cuMemsetD2D16Async, (CUdeviceptr a, size_t p, unsigned short v, size_t w, size_t h, CUstream stream),
            (a, p, v, w, h, stream))
QUEUED_BOTH(cuMemsetD2D32Async, (CUdeviceptr a, size_t p, unsigned int v, size_t w, size_t h, CUstream stream),
            (a, p, v, w, h, stream))
