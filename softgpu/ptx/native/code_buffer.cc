#include "softgpu/ptx/native/code_buffer.h"

#include <cstring>
#include <utility>

namespace softgpu::ptx::native {

CodeBuffer::Label CodeBuffer::label() {
  labels_.push_back(-1);
  return static_cast<Label>(labels_.size()) - 1;
}
void CodeBuffer::bind(Label label) {
  labels_[static_cast<std::size_t>(label)] = static_cast<std::int64_t>(code_.size());
}

std::vector<std::uint8_t> CodeBuffer::finish() {
  for (const Use& use : uses_) {
    const std::int64_t distance = labels_[static_cast<std::size_t>(use.label)] - static_cast<std::int64_t>(use.at) - 4;
    const auto bits = static_cast<std::int32_t>(distance);
    std::memcpy(code_.data() + use.at, &bits, sizeof bits);
  }
  uses_.clear();
  labels_.clear();
  return std::exchange(code_, {});
}

void CodeBuffer::word(std::uint32_t value) {
  code_.resize(code_.size() + sizeof value);
  std::memcpy(code_.data() + code_.size() - sizeof value, &value, sizeof value);
}

void CodeBuffer::distance(Label label) {
  uses_.push_back({code_.size(), label});
  word(0);
}

void CodeBuffer::rex(bool wide, unsigned reg, unsigned rm) {
  const unsigned bits = (wide ? 8u : 0u) | (reg >> 3 & 1) << 2 | (rm >> 3 & 1);
  if (bits != 0) byte(0x40 | bits);
}

// A base register and a displacement; rsp and r12 as a base need a SIB byte.
void CodeBuffer::operands(unsigned reg, Memory memory) {
  const bool is_short = memory.offset >= -128 && memory.offset <= 127;
  byte((is_short ? 0x40u : 0x80u) | (reg & 7) << 3 | (memory.base & 7u));
  if ((memory.base & 7) == rsp) byte(0x24);
  if (is_short) {
    byte(static_cast<std::uint8_t>(memory.offset));
  } else {
    word(static_cast<std::uint32_t>(memory.offset));
  }
}

}  // namespace softgpu::ptx::native
