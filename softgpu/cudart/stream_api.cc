// Streams and events.
#include <memory>

#include "softgpu/cudart/api.h"

using softgpu::cudart::Driver;
using softgpu::cudart::in_context;
using softgpu::cudart::report;

namespace {

// A program's callback, whose status has the runtime's type.
struct Callback {
  cudaStreamCallback_t function;
  void* user_data;
};

void run_callback(CUstream stream, CUresult status, void* data) {
  const std::unique_ptr<Callback> callback(static_cast<Callback*>(data));
  callback->function(stream, static_cast<cudaError_t>(status), callback->user_data);
}

}  // namespace

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int priority) {
  return in_context([&](const Driver& driver) { return driver.cuStreamCreateWithPriority(stream, flags, priority); });
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  return cudaStreamCreateWithPriority(stream, flags, 0);
}

cudaError_t cudaStreamCreate(cudaStream_t* stream) {
  return cudaStreamCreateWithPriority(stream, cudaStreamDefault, 0);
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  if (stream == nullptr) return report(cudaErrorInvalidResourceHandle);
  return in_context([&](const Driver& driver) { return driver.cuStreamDestroy(stream); });
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  return in_context([&](const Driver& driver) { return driver.cuStreamSynchronize(stream); });
}

cudaError_t cudaStreamQuery(cudaStream_t stream) {
  return in_context([&](const Driver& driver) { return driver.cuStreamQuery(stream); });
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags) {
  return in_context([&](const Driver& driver) { return driver.cuStreamWaitEvent(stream, event, flags); });
}

cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t callback, void* user_data, unsigned flags) {
  if (callback == nullptr) return report(cudaErrorInvalidValue);
  return in_context([&](const Driver& driver) {
    auto data = std::make_unique<Callback>(Callback{callback, user_data});
    const CUresult result = driver.cuStreamAddCallback(stream, run_callback, data.get(), flags);
    if (result == CUDA_SUCCESS) static_cast<void>(data.release());  // run_callback deletes it
    return result;
  });
}

cudaError_t cudaStreamGetFlags(cudaStream_t stream, unsigned* flags) {
  return in_context([&](const Driver& driver) { return driver.cuStreamGetFlags(stream, flags); });
}

cudaError_t cudaStreamGetPriority(cudaStream_t stream, int* priority) {
  return in_context([&](const Driver& driver) { return driver.cuStreamGetPriority(stream, priority); });
}

cudaError_t cudaStreamGetId(cudaStream_t stream, unsigned long long* id) {
  return in_context([&](const Driver& driver) { return driver.cuStreamGetId(stream, id); });
}

cudaError_t cudaStreamGetDevice(cudaStream_t stream, int* device) {
  return in_context([&](const Driver& driver) { return driver.cuStreamGetDevice(stream, device); });
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  return in_context([&](const Driver& driver) { return driver.cuEventCreate(event, flags); });
}

cudaError_t cudaEventCreate(cudaEvent_t* event) {
  return cudaEventCreateWithFlags(event, cudaEventDefault);
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  return in_context([&](const Driver& driver) { return driver.cuEventDestroy(event); });
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned flags) {
  return in_context([&](const Driver& driver) { return driver.cuEventRecordWithFlags(event, stream, flags); });
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return cudaEventRecordWithFlags(event, stream, 0);
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  return in_context([&](const Driver& driver) { return driver.cuEventQuery(event); });
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return in_context([&](const Driver& driver) { return driver.cuEventSynchronize(event); });
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t begin, cudaEvent_t end) {
  return in_context([&](const Driver& driver) { return driver.cuEventElapsedTime(milliseconds, begin, end); });
}
