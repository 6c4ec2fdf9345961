// The entry points whose null stream is the calling thread's own (suffix _ptsz, for copies and fills _ptds).
#include "softgpu/driver/stream/stream_handle.h"

#define PER_THREAD(name, suffix, parameters, arguments)                                \
  extern "C" __attribute__((visibility("default"))) CUresult name##suffix parameters { \
    const softgpu::PerThreadDefault scope;                                             \
    return name arguments;                                                             \
  }

PER_THREAD(cuMemcpy, _ptds, (CUdeviceptr t, CUdeviceptr s, size_t n), (t, s, n))
PER_THREAD(cuMemcpyHtoD_v2, _ptds, (CUdeviceptr t, const void* s, size_t n), (t, s, n))
PER_THREAD(cuMemcpyDtoH_v2, _ptds, (void* t, CUdeviceptr s, size_t n), (t, s, n))
PER_THREAD(cuMemcpyDtoD_v2, _ptds, (CUdeviceptr t, CUdeviceptr s, size_t n), (t, s, n))
PER_THREAD(cuMemcpyPeer, _ptds, (CUdeviceptr t, CUcontext tc, CUdeviceptr s, CUcontext sc, size_t n), (t, tc, s, sc, n))
PER_THREAD(cuMemcpy2D_v2, _ptds, (const CUDA_MEMCPY2D* c), (c))
PER_THREAD(cuMemcpy2DUnaligned_v2, _ptds, (const CUDA_MEMCPY2D* c), (c))
PER_THREAD(cuMemcpyAsync, _ptsz, (CUdeviceptr t, CUdeviceptr s, size_t n, CUstream h), (t, s, n, h))
PER_THREAD(cuMemcpyHtoDAsync_v2, _ptsz, (CUdeviceptr t, const void* s, size_t n, CUstream h), (t, s, n, h))
PER_THREAD(cuMemcpyDtoHAsync_v2, _ptsz, (void* t, CUdeviceptr s, size_t n, CUstream h), (t, s, n, h))
PER_THREAD(cuMemcpyDtoDAsync_v2, _ptsz, (CUdeviceptr t, CUdeviceptr s, size_t n, CUstream h), (t, s, n, h))
PER_THREAD(cuMemcpyPeerAsync, _ptsz, (CUdeviceptr t, CUcontext tc, CUdeviceptr s, CUcontext sc, size_t n, CUstream h),
           (t, tc, s, sc, n, h))
PER_THREAD(cuMemcpy2DAsync_v2, _ptsz, (const CUDA_MEMCPY2D* c, CUstream h), (c, h))

PER_THREAD(cuMemsetD8_v2, _ptds, (CUdeviceptr a, unsigned char v, size_t n), (a, v, n))
PER_THREAD(cuMemsetD16_v2, _ptds, (CUdeviceptr a, unsigned short v, size_t n), (a, v, n))
PER_THREAD(cuMemsetD32_v2, _ptds, (CUdeviceptr a, unsigned v, size_t n), (a, v, n))
PER_THREAD(cuMemsetD2D8_v2, _ptds, (CUdeviceptr a, size_t p, unsigned char v, size_t w, size_t h), (a, p, v, w, h))
PER_THREAD(cuMemsetD2D16_v2, _ptds, (CUdeviceptr a, size_t p, unsigned short v, size_t w, size_t h), (a, p, v, w, h))
PER_THREAD(cuMemsetD2D32_v2, _ptds, (CUdeviceptr a, size_t p, unsigned v, size_t w, size_t h), (a, p, v, w, h))
PER_THREAD(cuMemsetD8Async, _ptsz, (CUdeviceptr a, unsigned char v, size_t n, CUstream s), (a, v, n, s))
PER_THREAD(cuMemsetD16Async, _ptsz, (CUdeviceptr a, unsigned short v, size_t n, CUstream s), (a, v, n, s))
PER_THREAD(cuMemsetD32Async, _ptsz, (CUdeviceptr a, unsigned v, size_t n, CUstream s), (a, v, n, s))
PER_THREAD(cuMemsetD2D8Async, _ptsz, (CUdeviceptr a, size_t p, unsigned char v, size_t w, size_t h, CUstream s),
           (a, p, v, w, h, s))
PER_THREAD(cuMemsetD2D16Async, _ptsz, (CUdeviceptr a, size_t p, unsigned short v, size_t w, size_t h, CUstream s),
           (a, p, v, w, h, s))
PER_THREAD(cuMemsetD2D32Async, _ptsz, (CUdeviceptr a, size_t p, unsigned v, size_t w, size_t h, CUstream s),
           (a, p, v, w, h, s))

PER_THREAD(cuMemAllocAsync, _ptsz, (CUdeviceptr * a, size_t n, CUstream s), (a, n, s))
PER_THREAD(cuMemFreeAsync, _ptsz, (CUdeviceptr a, CUstream s), (a, s))

PER_THREAD(cuLaunchKernel, _ptsz,
           (CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared,
            CUstream s, void** p, void** e),
           (f, gx, gy, gz, bx, by, bz, shared, s, p, e))
PER_THREAD(cuLaunchCooperativeKernel, _ptsz,
           (CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared,
            CUstream s, void** p),
           (f, gx, gy, gz, bx, by, bz, shared, s, p))
PER_THREAD(cuLaunchKernelEx, _ptsz, (const CUlaunchConfig* c, CUfunction f, void** p, void** e), (c, f, p, e))
PER_THREAD(cuLaunchHostFunc, _ptsz, (CUstream s, CUhostFn f, void* d), (s, f, d))

PER_THREAD(cuStreamQuery, _ptsz, (CUstream s), (s))
PER_THREAD(cuStreamSynchronize, _ptsz, (CUstream s), (s))
PER_THREAD(cuStreamWaitEvent, _ptsz, (CUstream s, CUevent e, unsigned f), (s, e, f))
PER_THREAD(cuStreamAddCallback, _ptsz, (CUstream s, CUstreamCallback c, void* d, unsigned f), (s, c, d, f))
PER_THREAD(cuStreamGetFlags, _ptsz, (CUstream s, unsigned* f), (s, f))
PER_THREAD(cuStreamGetPriority, _ptsz, (CUstream s, int* p), (s, p))
PER_THREAD(cuStreamGetCtx, _ptsz, (CUstream s, CUcontext* c), (s, c))
PER_THREAD(cuStreamGetId, _ptsz, (CUstream s, unsigned long long* i), (s, i))
PER_THREAD(cuStreamGetDevice, _ptsz, (CUstream s, CUdevice* d), (s, d))
PER_THREAD(cuEventRecord, _ptsz, (CUevent e, CUstream s), (e, s))
PER_THREAD(cuEventRecordWithFlags, _ptsz, (CUevent e, CUstream s, unsigned f), (e, s, f))

PER_THREAD(cuGraphLaunch, _ptsz, (CUgraphExec e, CUstream s), (e, s))
PER_THREAD(cuGraphUpload, _ptsz, (CUgraphExec e, CUstream s), (e, s))
PER_THREAD(cuGraphInstantiateWithParams, _ptsz, (CUgraphExec * e, CUgraph g, CUDA_GRAPH_INSTANTIATE_PARAMS* p),
           (e, g, p))
PER_THREAD(cuStreamBeginCapture, _ptsz, (CUstream s), (s))
PER_THREAD(cuStreamBeginCapture_v2, _ptsz, (CUstream s, CUstreamCaptureMode m), (s, m))
PER_THREAD(cuStreamBeginCaptureToGraph, _ptsz,
           (CUstream s, CUgraph g, const CUgraphNode* d, const CUgraphEdgeData* e, size_t n, CUstreamCaptureMode m),
           (s, g, d, e, n, m))
PER_THREAD(cuStreamEndCapture, _ptsz, (CUstream s, CUgraph* g), (s, g))
PER_THREAD(cuStreamIsCapturing, _ptsz, (CUstream s, CUstreamCaptureStatus* c), (s, c))
PER_THREAD(cuStreamGetCaptureInfo, _ptsz, (CUstream s, CUstreamCaptureStatus* c, cuuint64_t* i), (s, c, i))
PER_THREAD(cuStreamGetCaptureInfo_v2, _ptsz,
           (CUstream s, CUstreamCaptureStatus* c, cuuint64_t* i, CUgraph* g, const CUgraphNode** d, size_t* n),
           (s, c, i, g, d, n))
PER_THREAD(cuStreamGetCaptureInfo_v3, _ptsz,
           (CUstream s, CUstreamCaptureStatus* c, cuuint64_t* i, CUgraph* g, const CUgraphNode** d,
            const CUgraphEdgeData** e, size_t* n),
           (s, c, i, g, d, e, n))
PER_THREAD(cuStreamUpdateCaptureDependencies, _ptsz, (CUstream s, CUgraphNode* d, size_t n, unsigned f), (s, d, n, f))
PER_THREAD(cuStreamUpdateCaptureDependencies_v2, _ptsz,
           (CUstream s, CUgraphNode* d, const CUgraphEdgeData* e, size_t n, unsigned f), (s, d, e, n, f))
PER_THREAD(cuStreamWaitValue32, _ptsz, (CUstream s, CUdeviceptr a, cuuint32_t v, unsigned f), (s, a, v, f))
PER_THREAD(cuStreamWaitValue32_v2, _ptsz, (CUstream s, CUdeviceptr a, cuuint32_t v, unsigned f), (s, a, v, f))
PER_THREAD(cuStreamWriteValue32, _ptsz, (CUstream s, CUdeviceptr a, cuuint32_t v, unsigned f), (s, a, v, f))
PER_THREAD(cuStreamWriteValue32_v2, _ptsz, (CUstream s, CUdeviceptr a, cuuint32_t v, unsigned f), (s, a, v, f))
PER_THREAD(cuStreamWaitValue64, _ptsz, (CUstream s, CUdeviceptr a, cuuint64_t v, unsigned f), (s, a, v, f))
PER_THREAD(cuStreamWaitValue64_v2, _ptsz, (CUstream s, CUdeviceptr a, cuuint64_t v, unsigned f), (s, a, v, f))
PER_THREAD(cuStreamWriteValue64, _ptsz, (CUstream s, CUdeviceptr a, cuuint64_t v, unsigned f), (s, a, v, f))
PER_THREAD(cuStreamWriteValue64_v2, _ptsz, (CUstream s, CUdeviceptr a, cuuint64_t v, unsigned f), (s, a, v, f))
PER_THREAD(cuStreamBatchMemOp, _ptsz, (CUstream s, unsigned n, CUstreamBatchMemOpParams* o, unsigned f), (s, n, o, f))
PER_THREAD(cuStreamBatchMemOp_v2, _ptsz, (CUstream s, unsigned n, CUstreamBatchMemOpParams* o, unsigned f),
           (s, n, o, f))
PER_THREAD(cuStreamGetAttribute, _ptsz, (CUstream s, CUlaunchAttributeID a, CUlaunchAttributeValue* v), (s, a, v))
PER_THREAD(cuStreamSetAttribute, _ptsz, (CUstream s, CUlaunchAttributeID a, const CUlaunchAttributeValue* v), (s, a, v))
PER_THREAD(cuStreamCopyAttributes, _ptsz, (CUstream t, CUstream s), (t, s))
PER_THREAD(cuStreamGetCtx_v2, _ptsz, (CUstream s, CUcontext* c, CUgreenCtx* g), (s, c, g))
