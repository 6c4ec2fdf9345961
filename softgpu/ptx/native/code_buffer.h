// The bytes of machine code while it is written: labels, and how instructions name their operands.
// Encodings: Intel SDM volume 2, chapter 2.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace softgpu::ptx::native {

enum Register : std::uint8_t { rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi, r8, r9, r10, r11, r12, r13, r14, r15 };

struct Memory {
  Register base;
  std::int32_t offset;
  Memory operator+(std::int32_t bytes) const { return {base, offset + bytes}; }
};

class CodeBuffer {
 public:
  using Label = int;

  Label label();  // a new one, yet to be bound
  void bind(Label label);
  // The code with all jumps in place; the buffer is empty then. REQUIRES: every label used is bound.
  std::vector<std::uint8_t> finish();
  std::size_t size() const { return code_.size(); }

  // For those who encode instructions.
  void byte(unsigned value) { code_.push_back(static_cast<std::uint8_t>(value)); }
  void word(std::uint32_t value);
  // The distance to the label from behind these four bytes.
  void distance(Label label);
  // The prefix of an instruction that names these registers, unless it needs none.
  void rex(bool wide, unsigned reg, unsigned rm);
  // ModRM, with what follows it.
  void operands(unsigned reg, Memory memory);
  void operands(unsigned reg, Register rm) { byte(0xc0 | (reg & 7) << 3 | (rm & 7u)); }

 private:
  struct Use {
    std::size_t at;
    Label label;
  };

  std::vector<std::uint8_t> code_;
  std::vector<std::int64_t> labels_;
  std::vector<Use> uses_;
};

}  // namespace softgpu::ptx::native
