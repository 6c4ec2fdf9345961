// Executable memory for native code: written once, then neither writable nor movable.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace softgpu::ptx::native {

class CodeMemory {
 public:
  CodeMemory() = default;
  CodeMemory(const CodeMemory&) = delete;
  CodeMemory& operator=(const CodeMemory&) = delete;
  ~CodeMemory();

  // Null when the system refuses executable memory. Call once.
  const std::uint8_t* store(std::span<const std::uint8_t> code);

 private:
  void* memory_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace softgpu::ptx::native
