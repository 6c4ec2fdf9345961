#include "softgpu/ptx/native/code_memory.h"

#include <sys/mman.h>

#include <cstring>

namespace softgpu::ptx::native {

CodeMemory::~CodeMemory() {
  if (memory_ != nullptr) munmap(memory_, bytes_);
}

const std::uint8_t* CodeMemory::store(std::span<const std::uint8_t> code) {
  void* memory = mmap(nullptr, code.size(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  std::memcpy(memory, code.data(), code.size());
  if (mprotect(memory, code.size(), PROT_READ | PROT_EXEC) != 0) {
    munmap(memory, code.size());
    return nullptr;
  }
  memory_ = memory;
  bytes_ = code.size();
  return static_cast<const std::uint8_t*>(memory);
}

}  // namespace softgpu::ptx::native
