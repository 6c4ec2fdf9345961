// Copies. One that waits for its end tells the host that the stream is done.
#include "shim/hooks/hook.h"
#include "shim/hooks/lost.h"

// A copy between host and device that returns when it is done.
#define WAITING(name, parameters, arguments)    \
  HOOK name parameters {                        \
    CUresult result = CUDA_SUCCESS;             \
    {                                           \
      const fairlead::shim::Passage passage;    \
      result = FAIRLEAD_REAL(name) arguments;   \
    }                                           \
    fairlead::shim::work_may_be_done();         \
    return fairlead::shim::note_result(result); \
  }
// One that is on the device, or may be: it may return before it is done, and is on the default stream.
#define ON_DEVICE(name, stream, parameters, arguments) \
  HOOK name parameters {                               \
    CUresult result = CUDA_SUCCESS;                    \
    {                                                  \
      const fairlead::shim::Passage passage;           \
      fairlead::shim::pass_work(passage, stream);      \
      result = FAIRLEAD_REAL(name) arguments;          \
    }                                                  \
    fairlead::shim::work_may_be_done();                \
    return fairlead::shim::note_result(result);        \
  }
#define ON_DEVICE_BOTH(name, parameters, arguments) \
  ON_DEVICE(name, nullptr, parameters, arguments)   \
  ON_DEVICE(name##_ptds, CU_STREAM_PER_THREAD, parameters, arguments)
#define WAITING_BOTH(name, parameters, arguments) \
  WAITING(name, parameters, arguments)            \
  WAITING(name##_ptds, parameters, arguments)

ON_DEVICE_BOTH(cuMemcpy, (CUdeviceptr t, CUdeviceptr s, size_t n), (t, s, n))
WAITING_BOTH(cuMemcpyHtoD_v2, (CUdeviceptr t, const void* s, size_t n), (t, s, n))
WAITING_BOTH(cuMemcpyDtoH_v2, (void* t, CUdeviceptr s, size_t n), (t, s, n))
ON_DEVICE_BOTH(cuMemcpyDtoD_v2, (CUdeviceptr t, CUdeviceptr s, size_t n), (t, s, n))
ON_DEVICE_BOTH(cuMemcpyPeer, (CUdeviceptr t, CUcontext tc, CUdeviceptr s, CUcontext sc, size_t n), (t, tc, s, sc, n))
ON_DEVICE_BOTH(cuMemcpy2D_v2, (const CUDA_MEMCPY2D* c), (c))
ON_DEVICE_BOTH(cuMemcpy2DUnaligned_v2, (const CUDA_MEMCPY2D* c), (c))
ON_DEVICE_BOTH(cuMemcpy3D_v2, (const CUDA_MEMCPY3D* c), (c))
ON_DEVICE_BOTH(cuMemcpy3DPeer, (const CUDA_MEMCPY3D_PEER* c), (c))
ON_DEVICE_BOTH(cuMemcpyDtoA_v2, (CUarray t, size_t o, CUdeviceptr s, size_t n), (t, o, s, n))
ON_DEVICE_BOTH(cuMemcpyAtoD_v2, (CUdeviceptr t, CUarray s, size_t o, size_t n), (t, s, o, n))
WAITING_BOTH(cuMemcpyHtoA_v2, (CUarray t, size_t o, const void* s, size_t n), (t, o, s, n))
WAITING_BOTH(cuMemcpyAtoH_v2, (void* t, CUarray s, size_t o, size_t n), (t, s, o, n))
ON_DEVICE_BOTH(cuMemcpyAtoA_v2, (CUarray t, size_t to, CUarray s, size_t so, size_t n), (t, to, s, so, n))

QUEUED_BOTH(cuMemcpyAsync, (CUdeviceptr t, CUdeviceptr s, size_t n, CUstream stream), (t, s, n, stream))
QUEUED_BOTH(cuMemcpyHtoDAsync_v2, (CUdeviceptr t, const void* s, size_t n, CUstream stream), (t, s, n, stream))
QUEUED_BOTH(cuMemcpyDtoHAsync_v2, (void* t, CUdeviceptr s, size_t n, CUstream stream), (t, s, n, stream))
QUEUED_BOTH(cuMemcpyDtoDAsync_v2, (CUdeviceptr t, CUdeviceptr s, size_t n, CUstream stream), (t, s, n, stream))
QUEUED_BOTH(cuMemcpyPeerAsync, (CUdeviceptr t, CUcontext tc, CUdeviceptr s, CUcontext sc, size_t n, CUstream stream),
            (t, tc, s, sc, n, stream))
QUEUED_BOTH(cuMemcpy2DAsync_v2, (const CUDA_MEMCPY2D* c, CUstream stream), (c, stream))
QUEUED_BOTH(cuMemcpy3DAsync_v2, (const CUDA_MEMCPY3D* c, CUstream stream), (c, stream))
QUEUED_BOTH(cuMemcpy3DPeerAsync, (const CUDA_MEMCPY3D_PEER* c, CUstream stream), (c, stream))
QUEUED_BOTH(cuMemcpyHtoAAsync_v2, (CUarray t, size_t o, const void* s, size_t n, CUstream stream), (t, o, s, n, stream))
QUEUED_BOTH(cuMemcpyAtoHAsync_v2, (void* t, CUarray s, size_t o, size_t n, CUstream stream), (t, s, o, n, stream))

QUEUED_BOTH(cuMemcpyBatchAsync,
            (CUdeviceptr * targets, CUdeviceptr* sources, size_t* bytes, size_t count, CUmemcpyAttributes* attributes,
             size_t* indices, size_t attribute_count, size_t* failed, CUstream stream),
            (targets, sources, bytes, count, attributes, indices, attribute_count, failed, stream))
QUEUED_BOTH(cuMemcpyBatchAsync_v2,
            (CUdeviceptr * targets, CUdeviceptr* sources, size_t* bytes, size_t count, CUmemcpyAttributes* attributes,
             size_t* indices, size_t attribute_count, CUstream stream),
            (targets, sources, bytes, count, attributes, indices, attribute_count, stream))
QUEUED_BOTH(cuMemcpy3DBatchAsync,
            (size_t count, void* operations, size_t* failed, unsigned long long flags, CUstream stream),
            (count, operations, failed, flags, stream))
QUEUED_BOTH(cuMemcpy3DBatchAsync_v2, (size_t count, void* operations, unsigned long long flags, CUstream stream),
            (count, operations, flags, stream))
QUEUED_BOTH(cuMemBatchDecompressAsync,
            (void* parameters, size_t count, unsigned int flags, size_t* failed, CUstream stream),
            (parameters, count, flags, failed, stream))
