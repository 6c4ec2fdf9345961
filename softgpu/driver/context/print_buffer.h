// Text printed by kernels, kept until the program synchronises, launches or loads a module. As on hardware it is a ring:
// what exceeds its capacity (CU_LIMIT_PRINTF_FIFO_SIZE) takes the place of the oldest, in whole lines. Bytes are those
// of the text, where hardware counts formats and arguments.
#pragma once

#include <atomic>
#include <cstddef>
#include <deque>
#include <string>
#include <string_view>

#include "softgpu/mutex.h"

namespace softgpu {

// Thread-safe.
class PrintBuffer {
 public:
  // For text that is still to come. The last line is kept, however long.
  void set_capacity(std::size_t bytes) { capacity_.store(bytes); }
  void append(std::string_view text);
  // Writes everything to stdout.
  void flush();

 private:
  std::atomic<std::size_t> capacity_{1 << 20};
  std::atomic<bool> filled_{false};
  Mutex mutex_;
  std::deque<std::string> texts_ SOFTGPU_GUARDED_BY(mutex_);  // lines
  std::size_t bytes_ SOFTGPU_GUARDED_BY(mutex_) = 0;          // of texts_
};

}  // namespace softgpu
