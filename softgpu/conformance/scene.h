// Streams and events of a case, and a kernel that keeps a stream busy for as long as the case wants.
#pragma once

#include <atomic>
#include <thread>

#include "softgpu/conformance/test.h"

namespace softgpu::conformance {

// REQUIRES: a case with the kernels of driver.cu. Everything ends with the scene.
class Scene {
 public:
  explicit Scene(Test& test) : test_(test) {
    void* memory = nullptr;
    test_.check(driver().cuMemHostAlloc(&memory, 2 * sizeof(unsigned), CU_MEMHOSTALLOC_DEVICEMAP), "cuMemHostAlloc");
    flag_ = static_cast<std::atomic<unsigned>*>(memory);
    if (test_.ok()) test_.check(driver().cuMemHostGetDevicePointer(&flag_address_, memory, 0), "device pointer");
    if (!test_.ok()) return;
    flag_[0] = 0;
    flag_[1] = 0;
  }
  ~Scene() {
    release();
    driver().cuCtxSynchronize();
    for (const CUevent event : events_) driver().cuEventDestroy(event);
    for (const CUstream stream : streams_) driver().cuStreamDestroy(stream);
    if (flag_ != nullptr) driver().cuMemFreeHost(flag_);
  }
  Scene(const Scene&) = delete;
  Scene& operator=(const Scene&) = delete;

  CUstream stream(unsigned flags) {
    CUstream stream = nullptr;
    if (test_.check(driver().cuStreamCreate(&stream, flags), "cuStreamCreate")) streams_.push_back(stream);
    return stream;
  }
  CUevent event(unsigned flags = 0) {
    CUevent event = nullptr;
    if (test_.check(driver().cuEventCreate(&event, flags), "cuEventCreate")) events_.push_back(event);
    return event;
  }
  // Returns when the kernel runs.
  void hold(CUstream stream) {
    launch("wait_for_flag", stream, Buffer<unsigned>{flag_address_, 2});
    while (test_.ok() && flag_[1] == 0) std::this_thread::yield();
  }
  void release() {
    if (flag_ != nullptr) flag_[0] = 1;
  }
  template <class... Arguments>
  void launch(const char* kernel, CUstream stream, const Arguments&... arguments) {
    Shape shape{1, 1};
    shape.stream = stream;
    test_.launch(kernel, shape, arguments...);
  }

 private:
  Test& test_;
  std::atomic<unsigned>* flag_ = nullptr;
  CUdeviceptr flag_address_ = 0;
  std::vector<CUstream> streams_;
  std::vector<CUevent> events_;
};

}  // namespace softgpu::conformance
