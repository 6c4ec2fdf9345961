// The entry points of memory whose null stream is the calling thread's own (suffix _ptsz, for synchronous copies _ptds).
#include "softgpu/driver/stream/stream_handle.h"

#define PER_THREAD(name, suffix, parameters, arguments)                                \
  extern "C" __attribute__((visibility("default"))) CUresult name##suffix parameters { \
    const softgpu::PerThreadDefault scope;                                             \
    return name arguments;                                                             \
  }

PER_THREAD(cuMemcpy3D_v2, _ptds, (const CUDA_MEMCPY3D* c), (c))
PER_THREAD(cuMemcpy3DAsync_v2, _ptsz, (const CUDA_MEMCPY3D* c, CUstream s), (c, s))
PER_THREAD(cuMemcpy3DPeer, _ptds, (const CUDA_MEMCPY3D_PEER* c), (c))
PER_THREAD(cuMemcpy3DPeerAsync, _ptsz, (const CUDA_MEMCPY3D_PEER* c, CUstream s), (c, s))
PER_THREAD(cuMemcpyDtoA_v2, _ptds, (CUarray a, size_t o, CUdeviceptr s, size_t n), (a, o, s, n))
PER_THREAD(cuMemcpyAtoD_v2, _ptds, (CUdeviceptr t, CUarray a, size_t o, size_t n), (t, a, o, n))
PER_THREAD(cuMemcpyHtoA_v2, _ptds, (CUarray a, size_t o, const void* s, size_t n), (a, o, s, n))
PER_THREAD(cuMemcpyAtoH_v2, _ptds, (void* t, CUarray a, size_t o, size_t n), (t, a, o, n))
PER_THREAD(cuMemcpyAtoA_v2, _ptds, (CUarray t, size_t to, CUarray s, size_t so, size_t n), (t, to, s, so, n))
PER_THREAD(cuMemcpyHtoAAsync_v2, _ptsz, (CUarray a, size_t o, const void* s, size_t n, CUstream h), (a, o, s, n, h))
PER_THREAD(cuMemcpyAtoHAsync_v2, _ptsz, (void* t, CUarray a, size_t o, size_t n, CUstream h), (t, a, o, n, h))
PER_THREAD(cuMemcpyBatchAsync, _ptsz,
           (CUdeviceptr * t, CUdeviceptr* s, size_t* n, size_t c, CUmemcpyAttributes* a, size_t* i, size_t ac,
            size_t* f, CUstream h),
           (t, s, n, c, a, i, ac, f, h))
PER_THREAD(cuMemcpyBatchAsync_v2, _ptsz,
           (CUdeviceptr * t, CUdeviceptr* s, size_t* n, size_t c, CUmemcpyAttributes* a, size_t* i, size_t ac,
            CUstream h),
           (t, s, n, c, a, i, ac, h))

PER_THREAD(cuMemAllocFromPoolAsync, _ptsz, (CUdeviceptr * a, size_t n, CUmemoryPool p, CUstream s), (a, n, p, s))
PER_THREAD(cuMemPrefetchAsync, _ptsz, (CUdeviceptr a, size_t n, CUdevice d, CUstream s), (a, n, d, s))
PER_THREAD(cuMemPrefetchAsync_v2, _ptsz, (CUdeviceptr a, size_t n, CUmemLocation l, unsigned f, CUstream s),
           (a, n, l, f, s))
PER_THREAD(cuMemPrefetchBatchAsync, _ptsz,
           (CUdeviceptr * a, size_t* n, size_t c, CUmemLocation* l, size_t* i, size_t lc, unsigned long long f,
            CUstream s),
           (a, n, c, l, i, lc, f, s))
PER_THREAD(cuMemDiscardBatchAsync, _ptsz, (CUdeviceptr * a, size_t* n, size_t c, unsigned long long f, CUstream s),
           (a, n, c, f, s))
PER_THREAD(cuMemDiscardAndPrefetchBatchAsync, _ptsz,
           (CUdeviceptr * a, size_t* n, size_t c, CUmemLocation* l, size_t* i, size_t lc, unsigned long long f,
            CUstream s),
           (a, n, c, l, i, lc, f, s))
PER_THREAD(cuStreamAttachMemAsync, _ptsz, (CUstream s, CUdeviceptr a, size_t n, unsigned f), (s, a, n, f))
