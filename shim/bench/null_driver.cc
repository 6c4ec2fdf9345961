// A libcuda.so.1 that does nothing, so that nanoseconds around its calls can be seen. Each function is there twice: under
// the driver's name, which the shim hooks, and under bare_*, which it does not know.
#include <atomic>
#include <cstdlib>

#define CUDA_ABI_EXACT_NAMES
#include "abi/cuda.h"

#define DRIVER extern "C" __attribute__((visibility("default"))) CUresult
#define BOTH(name, parameters, arguments) \
  static CUresult do_##name parameters;   \
  DRIVER name parameters {                \
    return do_##name arguments;           \
  }                                       \
  DRIVER bare_##name parameters {         \
    return do_##name arguments;           \
  }                                       \
  static CUresult do_##name parameters

namespace {

constexpr std::size_t kTotal = std::size_t{1} << 40;
constexpr std::size_t kPiece = 512;
// Addresses that are given out again, so that no number of allocations runs out of them.
std::atomic<CUdeviceptr> next_address{0x700000000000};
int some_context;

CUcontext context() {
  return reinterpret_cast<CUcontext>(&some_context);
}

}  // namespace

BOTH(cuInit, (unsigned int), (0)) {
  return CUDA_SUCCESS;
}
BOTH(cuLaunchKernel,
     (CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx, unsigned int by,
      unsigned int bz, unsigned int shared, CUstream stream, void** parameters, void** extra),
     (f, gx, gy, gz, bx, by, bz, shared, stream, parameters, extra)) {
  // What a launch must read of its arguments.
  return f == nullptr || gx * gy * gz * bx * by * bz == 0 || shared > 65536 || stream == CU_STREAM_LEGACY ||
                 extra != nullptr || parameters == nullptr
             ? CUDA_ERROR_INVALID_VALUE
             : CUDA_SUCCESS;
}
BOTH(cuMemGetInfo_v2, (size_t * free, size_t* total), (free, total)) {
  *free = *total = kTotal;
  return CUDA_SUCCESS;
}
BOTH(cuMemAlloc_v2, (CUdeviceptr * address, size_t bytes), (address, bytes)) {
  *address = next_address.fetch_add((bytes + kPiece - 1) / kPiece * kPiece, std::memory_order_relaxed);
  return CUDA_SUCCESS;
}
BOTH(cuMemFree_v2, (CUdeviceptr address), (address)) {
  return address != 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
BOTH(cuCtxSynchronize, (), ()) {
  return CUDA_SUCCESS;
}
BOTH(cuCtxGetCurrent, (CUcontext * current), (current)) {
  *current = context();
  return CUDA_SUCCESS;
}
BOTH(cuCtxPushCurrent_v2, (CUcontext pushed), (pushed)) {
  return pushed != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}
BOTH(cuCtxPopCurrent_v2, (CUcontext * popped), (popped)) {
  *popped = context();
  return CUDA_SUCCESS;
}
BOTH(cuEventCreate, (CUevent * event, unsigned int), (event, 0)) {
  *event = reinterpret_cast<CUevent>(&some_context);
  return CUDA_SUCCESS;
}
BOTH(cuEventRecord, (CUevent event, CUstream), (event, nullptr)) {
  return event != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}
BOTH(cuEventQuery, (CUevent event), (event)) {
  return event != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}
BOTH(cuEventElapsedTime, (float* ms, CUevent, CUevent), (ms, nullptr, nullptr)) {
  *ms = 0.01F;  // what a kernel takes, as far as the shim is concerned
  return CUDA_SUCCESS;
}
BOTH(cuStreamQuery, (CUstream), (nullptr)) {
  return CUDA_SUCCESS;
}
