// The entry points whose null stream is the calling thread's own (suffix _ptsz, for calls that wait _ptds): what programs
// compiled with --default-stream per-thread call.
#include "softgpu/cudart/api.h"

namespace {

cudaStream_t own(cudaStream_t stream) {
  return stream == nullptr ? cudaStreamPerThread : stream;
}

// The end of a call that waits for the thread's stream.
cudaError_t wait(cudaError_t error) {
  return error != cudaSuccess ? error : cudaStreamSynchronize(cudaStreamPerThread);
}

}  // namespace

#define PER_THREAD(name, parameters, call)                                        \
  extern "C" __attribute__((visibility("default"))) cudaError_t name parameters { \
    return call;                                                                  \
  }

PER_THREAD(__cudaLaunchKernel_ptsz, (cudaKernel_t k, dim3 g, dim3 b, void** a, size_t n, cudaStream_t s),
           __cudaLaunchKernel(k, g, b, a, n, own(s)))
PER_THREAD(cudaLaunchKernel_ptsz, (const void* f, dim3 g, dim3 b, void** a, size_t n, cudaStream_t s),
           cudaLaunchKernel(f, g, b, a, n, own(s)))
PER_THREAD(cudaLaunchCooperativeKernel_ptsz, (const void* f, dim3 g, dim3 b, void** a, size_t n, cudaStream_t s),
           cudaLaunchCooperativeKernel(f, g, b, a, n, own(s)))
PER_THREAD(cudaLaunchHostFunc_ptsz, (cudaStream_t s, cudaHostFn_t f, void* d), cudaLaunchHostFunc(own(s), f, d))
PER_THREAD(cudaMallocAsync_ptsz, (void** a, size_t n, cudaStream_t s), cudaMallocAsync(a, n, own(s)))
PER_THREAD(cudaMallocFromPoolAsync_ptsz, (void** a, size_t n, cudaMemPool_t p, cudaStream_t s),
           cudaMallocFromPoolAsync(a, n, p, own(s)))
PER_THREAD(cudaFreeAsync_ptsz, (void* a, cudaStream_t s), cudaFreeAsync(a, own(s)))
PER_THREAD(cudaMemPrefetchAsync_ptsz, (const void* a, size_t n, cudaMemLocation l, unsigned f, cudaStream_t s),
           cudaMemPrefetchAsync(a, n, l, f, own(s)))
PER_THREAD(cudaMemcpyAsync_ptsz, (void* t, const void* f, size_t n, cudaMemcpyKind k, cudaStream_t s),
           cudaMemcpyAsync(t, f, n, k, own(s)))
PER_THREAD(cudaMemcpy2DAsync_ptsz,
           (void* t, size_t tp, const void* f, size_t fp, size_t w, size_t h, cudaMemcpyKind k, cudaStream_t s),
           cudaMemcpy2DAsync(t, tp, f, fp, w, h, k, own(s)))
PER_THREAD(cudaMemcpyToSymbolAsync_ptsz,
           (const void* y, const void* f, size_t n, size_t o, cudaMemcpyKind k, cudaStream_t s),
           cudaMemcpyToSymbolAsync(y, f, n, o, k, own(s)))
PER_THREAD(cudaMemcpyFromSymbolAsync_ptsz,
           (void* t, const void* y, size_t n, size_t o, cudaMemcpyKind k, cudaStream_t s),
           cudaMemcpyFromSymbolAsync(t, y, n, o, k, own(s)))
PER_THREAD(cudaMemsetAsync_ptsz, (void* a, int v, size_t n, cudaStream_t s), cudaMemsetAsync(a, v, n, own(s)))
PER_THREAD(cudaMemset2DAsync_ptsz, (void* a, size_t p, int v, size_t w, size_t h, cudaStream_t s),
           cudaMemset2DAsync(a, p, v, w, h, own(s)))
PER_THREAD(cudaStreamSynchronize_ptsz, (cudaStream_t s), cudaStreamSynchronize(own(s)))
PER_THREAD(cudaStreamQuery_ptsz, (cudaStream_t s), cudaStreamQuery(own(s)))
PER_THREAD(cudaStreamWaitEvent_ptsz, (cudaStream_t s, cudaEvent_t e, unsigned f), cudaStreamWaitEvent(own(s), e, f))
PER_THREAD(cudaStreamAddCallback_ptsz, (cudaStream_t s, cudaStreamCallback_t c, void* d, unsigned f),
           cudaStreamAddCallback(own(s), c, d, f))
PER_THREAD(cudaStreamGetFlags_ptsz, (cudaStream_t s, unsigned* f), cudaStreamGetFlags(own(s), f))
PER_THREAD(cudaStreamGetPriority_ptsz, (cudaStream_t s, int* p), cudaStreamGetPriority(own(s), p))
PER_THREAD(cudaStreamGetId_ptsz, (cudaStream_t s, unsigned long long* i), cudaStreamGetId(own(s), i))
PER_THREAD(cudaStreamGetDevice_ptsz, (cudaStream_t s, int* d), cudaStreamGetDevice(own(s), d))
PER_THREAD(cudaStreamBeginCapture_ptsz, (cudaStream_t s, cudaStreamCaptureMode m), cudaStreamBeginCapture(own(s), m))
PER_THREAD(cudaStreamEndCapture_ptsz, (cudaStream_t s, cudaGraph_t* g), cudaStreamEndCapture(own(s), g))
PER_THREAD(cudaStreamIsCapturing_ptsz, (cudaStream_t s, cudaStreamCaptureStatus* c), cudaStreamIsCapturing(own(s), c))
PER_THREAD(cudaGraphLaunch_ptsz, (cudaGraphExec_t e, cudaStream_t s), cudaGraphLaunch(e, own(s)))
PER_THREAD(cudaGraphUpload_ptsz, (cudaGraphExec_t e, cudaStream_t s), cudaGraphUpload(e, own(s)))
PER_THREAD(cudaEventRecord_ptsz, (cudaEvent_t e, cudaStream_t s), cudaEventRecord(e, own(s)))
PER_THREAD(cudaEventRecordWithFlags_ptsz, (cudaEvent_t e, cudaStream_t s, unsigned f),
           cudaEventRecordWithFlags(e, own(s), f))

PER_THREAD(cudaMemcpy_ptds, (void* t, const void* f, size_t n, cudaMemcpyKind k),
           wait(cudaMemcpyAsync(t, f, n, k, cudaStreamPerThread)))
PER_THREAD(cudaMemcpy2D_ptds, (void* t, size_t tp, const void* f, size_t fp, size_t w, size_t h, cudaMemcpyKind k),
           wait(cudaMemcpy2DAsync(t, tp, f, fp, w, h, k, cudaStreamPerThread)))
PER_THREAD(cudaMemcpyToSymbol_ptds, (const void* y, const void* f, size_t n, size_t o, cudaMemcpyKind k),
           wait(cudaMemcpyToSymbolAsync(y, f, n, o, k, cudaStreamPerThread)))
PER_THREAD(cudaMemcpyFromSymbol_ptds, (void* t, const void* y, size_t n, size_t o, cudaMemcpyKind k),
           wait(cudaMemcpyFromSymbolAsync(t, y, n, o, k, cudaStreamPerThread)))
PER_THREAD(cudaMemset_ptds, (void* a, int v, size_t n), wait(cudaMemsetAsync(a, v, n, cudaStreamPerThread)))
PER_THREAD(cudaMemset2D_ptds, (void* a, size_t p, int v, size_t w, size_t h),
           wait(cudaMemset2DAsync(a, p, v, w, h, cudaStreamPerThread)))

extern "C" __attribute__((visibility("default"))) cudaError_t cudaLaunchKernelExC_ptsz(const cudaLaunchConfig_t* config,
                                                                                       const void* function,
                                                                                       void** arguments) {
  if (config == nullptr) return cudaLaunchKernelExC(config, function, arguments);
  cudaLaunchConfig_t own_config = *config;
  own_config.stream = own(config->stream);
  return cudaLaunchKernelExC(&own_config, function, arguments);
}

// The driver's entry points resolve to their per-thread forms.
extern "C" __attribute__((visibility("default"))) cudaError_t cudaGetDriverEntryPointByVersion_ptsz(
    const char* symbol, void** function, unsigned version, unsigned long long flags,
    cudaDriverEntryPointQueryResult* status) {
  const unsigned long long per_thread = CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
  return cudaGetDriverEntryPointByVersion(symbol, function, version, flags == 0 ? per_thread : flags, status);
}

extern "C" __attribute__((visibility("default"))) cudaError_t cudaGetDriverEntryPoint_ptsz(
    const char* symbol, void** function, unsigned long long flags, cudaDriverEntryPointQueryResult* status) {
  return cudaGetDriverEntryPointByVersion_ptsz(symbol, function, CUDART_VERSION, flags, status);
}
