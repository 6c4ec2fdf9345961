// A futex shared between processes.
#pragma once

#include <atomic>
#include <cstdint>

namespace softgpu {

// Sleeps while `word` is `value`, for at most `timeout_ms`. May return early.
void futex_wait(const std::atomic<std::uint32_t>& word, std::uint32_t value, int timeout_ms);

// Wakes everyone who sleeps on `word`.
void futex_wake_all(const std::atomic<std::uint32_t>& word);

}  // namespace softgpu
