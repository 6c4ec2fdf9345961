#include "softgpu/driver/stream/capture.h"

namespace softgpu {
namespace {

std::atomic<CaptureRecorder*> g_recorder = nullptr;

}  // namespace

CaptureRecorder* capture_recorder() {
  return g_recorder.load(std::memory_order_acquire);
}

void set_capture_recorder(CaptureRecorder& recorder) {
  g_recorder.store(&recorder, std::memory_order_release);
}

CUresult refuse_capturing(const StreamUse& use) {
  CaptureRecorder* recorder = capture_recorder();
  return recorder != nullptr ? recorder->refuse_capturing(use) : CUDA_SUCCESS;
}

CUresult refuse_unsafe_call() {
  CaptureRecorder* recorder = capture_recorder();
  return recorder != nullptr ? recorder->refuse_unsafe_call() : CUDA_SUCCESS;
}

CUresult refuse_synchronising(CUcontext context) {
  CaptureRecorder* recorder = capture_recorder();
  return recorder != nullptr ? recorder->refuse_synchronising(context) : CUDA_SUCCESS;
}

CUresult refuse_captured(CUevent event) {
  CaptureRecorder* recorder = capture_recorder();
  return recorder != nullptr ? recorder->refuse_captured(event) : CUDA_SUCCESS;
}

}  // namespace softgpu
