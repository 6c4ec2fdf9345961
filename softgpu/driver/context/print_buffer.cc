#include "softgpu/driver/context/print_buffer.h"

#include <cstdio>

namespace softgpu {

void PrintBuffer::append(std::string_view text) {
  const LockGuard guard(mutex_);
  texts_.emplace_back(text);
  bytes_ += text.size();
  for (const std::size_t capacity = capacity_.load(); bytes_ > capacity && texts_.size() > 1; texts_.pop_front()) {
    bytes_ -= texts_.front().size();
  }
  filled_.store(true, std::memory_order_release);
}

void PrintBuffer::flush() {
  if (!filled_.load(std::memory_order_acquire)) return;
  // Keeps texts in order. Writing may take as long as the reader likes, and kernels that print take mutex_.
  static auto* writing = new Mutex;
  const LockGuard in_order(*writing);
  std::deque<std::string> texts;
  {
    const LockGuard guard(mutex_);
    texts.swap(texts_);
    bytes_ = 0;
  }
  for (const std::string& text : texts) std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
  const LockGuard guard(mutex_);  // only now, so that other threads wait for what is being written
  filled_.store(!texts_.empty(), std::memory_order_release);
}

}  // namespace softgpu
