#include "softgpu/cudart/runtime.h"

#include <array>
#include <atomic>

#include "softgpu/mutex.h"

namespace softgpu::cudart {
namespace {

constexpr int kMaxDevices = 64;

struct Primary {
  Mutex mutex;                               // held while the context is retained
  std::atomic<CUcontext> context = nullptr;  // null until retained and after a reset
};

Primary& primary_of(int device) {
  static auto* const all = new std::array<Primary, kMaxDevices>;  // outlives the program's destructors
  return (*all)[static_cast<std::size_t>(device)];
}

thread_local cudaError_t t_error = cudaSuccess;
thread_local int t_device = 0;
thread_local CUcontext t_bound = nullptr;  // the primary context this thread was given, to notice a reset

cudaError_t check_device(const Driver& driver, int device) {
  int count = 0;
  if (const CUresult result = driver.cuDeviceGetCount(&count); result != CUDA_SUCCESS) {
    return static_cast<cudaError_t>(result);
  }
  return device >= 0 && device < count && device < kMaxDevices ? cudaSuccess : cudaErrorInvalidDevice;
}

cudaError_t make_primary_current(const Driver& driver) {
  CUcontext context = nullptr;
  if (const cudaError_t error = primary_context(driver, t_device, context); error != cudaSuccess) return error;
  t_bound = context;
  return static_cast<cudaError_t>(driver.cuCtxSetCurrent(context));
}

}  // namespace

cudaError_t report(cudaError_t error) {
  if (error != cudaSuccess) t_error = error;
  return error;
}

cudaError_t last_error() {
  return t_error;
}

void forget_error() {
  t_error = cudaSuccess;
}

cudaError_t initialise(const Driver*& driver) {
  driver = load_driver();
  if (driver == nullptr) return cudaErrorInsufficientDriver;
  return static_cast<cudaError_t>(driver->cuInit(0));
}

int current_device() {
  return t_device;
}

cudaError_t primary_context(const Driver& driver, int device, CUcontext& context) {
  if (const cudaError_t error = check_device(driver, device); error != cudaSuccess) return error;
  Primary& primary = primary_of(device);
  const LockGuard guard(primary.mutex);
  context = primary.context;
  if (context != nullptr) return cudaSuccess;
  const CUresult result = driver.cuDevicePrimaryCtxRetain(&context, device);
  if (result == CUDA_SUCCESS) primary.context = context;
  return static_cast<cudaError_t>(result);
}

cudaError_t select_device(const Driver& driver, int device) {
  if (const cudaError_t error = check_device(driver, device); error != cudaSuccess) return error;
  t_device = device;
  return make_primary_current(driver);
}

cudaError_t bind_context(const Driver& driver) {
  CUcontext context = nullptr;
  if (const CUresult result = driver.cuCtxGetCurrent(&context); result != CUDA_SUCCESS) {
    return static_cast<cudaError_t>(result);
  }
  // A context that this thread was given is the device's no more after a reset, by whichever thread.
  const bool is_stale = context == t_bound && context != primary_of(t_device).context;
  return context == nullptr || is_stale ? make_primary_current(driver) : cudaSuccess;
}

cudaError_t reset_device(const Driver& driver) {
  primary_of(t_device).context = nullptr;
  t_bound = nullptr;
  if (const CUresult result = driver.cuDevicePrimaryCtxReset(t_device); result != CUDA_SUCCESS) {
    return static_cast<cudaError_t>(result);
  }
  return static_cast<cudaError_t>(driver.cuCtxSetCurrent(nullptr));
}

}  // namespace softgpu::cudart
