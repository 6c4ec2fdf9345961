// What the streams of one green context have in common. They are streams of the device's primary context whose kernels are on fewer SMs.
//
// Threads: any.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "softgpu/driver/api.h"
#include "softgpu/driver/context/stream.h"
#include "softgpu/mutex.h"

namespace softgpu {

class GreenStreams {
 public:
  GreenStreams(CUgreenCtx its_handle, std::uint64_t its_sms) : handle(its_handle), sms(its_sms) {}

  const CUgreenCtx handle;
  const std::uint64_t sms;
  std::atomic<bool> detached{false};  // the green context is destroyed

  void add(const std::shared_ptr<Stream>& stream) {
    const LockGuard guard(mutex_);
    std::erase_if(streams_, [](const auto& one) { return one.use_count() == 1 && one->idle(); });
    streams_.push_back(stream);
  }
  // All that may have work.
  std::vector<std::shared_ptr<Stream>> all() const {
    const LockGuard guard(mutex_);
    return streams_;
  }

 private:
  mutable Mutex mutex_;
  std::vector<std::shared_ptr<Stream>> streams_ SOFTGPU_GUARDED_BY(mutex_);
};

}  // namespace softgpu
