#include "softgpu/driver/code/jit_options.h"

#include <algorithm>
#include <cstring>

#include "softgpu/device/time/busy_meter.h"

namespace softgpu {

CUresult JitOptions::check() const {
  if (count_ == 0) return CUDA_SUCCESS;
  if (options_ == nullptr || values_ == nullptr) return CUDA_ERROR_INVALID_VALUE;
  for (unsigned i = 0; i < count_; ++i) {
    const CUjit_option option = options_[i];
    if (option < 0 || option >= CU_JIT_NUM_OPTIONS) return CUDA_ERROR_INVALID_VALUE;
    if (option == CU_JIT_GLOBAL_SYMBOL_COUNT && values_[i] != nullptr) return CUDA_ERROR_NOT_SUPPORTED;
  }
  // A device is named once: by the context or by itself.
  const bool both = find(CU_JIT_TARGET) != count_ && find(CU_JIT_THREADS_PER_BLOCK) != count_;
  return both ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

unsigned JitOptions::find(CUjit_option wanted) const {
  for (unsigned i = count_; i > 0; --i) {
    if (options_[i - 1] == wanted) return i - 1;
  }
  return count_;
}

unsigned JitOptions::max_registers() const {
  const unsigned index = find(CU_JIT_MAX_REGISTERS);
  return index == count_ ? 0 : static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(values_[index]));
}

bool JitOptions::verbose() const {
  const unsigned index = find(CU_JIT_LOG_VERBOSE);
  return index != count_ && reinterpret_cast<std::uintptr_t>(values_[index]) != 0;
}

void JitOptions::write_log(CUjit_option buffer_option, CUjit_option size_option, const std::string& text) const {
  const unsigned buffer = find(buffer_option);
  const unsigned size = find(size_option);
  if (size == count_) return;
  const std::size_t capacity = reinterpret_cast<std::uintptr_t>(values_[size]) & UINT32_MAX;
  std::size_t written = 0;
  if (buffer != count_ && values_[buffer] != nullptr && capacity != 0) {
    const std::size_t length = std::min(text.size(), capacity - 1);
    std::memcpy(values_[buffer], text.data(), length);
    static_cast<char*>(values_[buffer])[length] = '\0';
    written = text.empty() ? 0 : length + 1;
  }
  values_[size] = reinterpret_cast<void*>(written);
}

void JitOptions::report(const std::string& error, const std::string& information, std::uint64_t begin_ns) const {
  write_log(CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, error);
  write_log(CU_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES, information);
  if (const unsigned index = find(CU_JIT_WALL_TIME); index != count_) {
    const float milliseconds = static_cast<float>(monotonic_ns() - begin_ns) * 1e-6F;
    std::memcpy(&values_[index], &milliseconds, sizeof milliseconds);
  }
}

}  // namespace softgpu
