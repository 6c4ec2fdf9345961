// Three-operand AVX2 on 256-bit registers. Encodings: Intel SDM volume 2, chapter 2 (VEX prefixes) and the instructions' pages.
#pragma once

#include <cstdint>

#include "softgpu/ptx/native/code_buffer.h"
#include "softgpu/ptx/native/opcodes.h"

namespace softgpu::ptx::native {

using Vector = int;  // ymm0 to ymm15

// The second source of a vector instruction: a register or memory.
struct VectorSource {
  Vector vector;  // -1: memory
  Memory memory;
  VectorSource(Vector v) : vector(v), memory{rax, 0} {}  // NOLINT(google-explicit-constructor)
  VectorSource(Memory m) : vector(-1), memory(m) {}      // NOLINT(google-explicit-constructor)
};

// Appends to a buffer, which must outlive this.
class VectorCode {
 public:
  explicit VectorCode(CodeBuffer& buffer) : buffer_(buffer) {}

  // dst = opcode(a, b). Of instructions with one source a is 0.
  void op(VectorOpcode opcode, Vector dst, Vector a, VectorSource b);
  void op(VectorOpcode opcode, Vector dst, Vector a, VectorSource b, std::uint8_t immediate);
  void load(Vector to, Memory from);
  void store(Memory to, Vector from);
  void move(Vector to, Vector from);
  // A move or a load.
  void copy(Vector to, VectorSource from) { from.vector >= 0 ? move(to, from.vector) : load(to, from.memory); }
  void signs(Register to, Vector from);  // vmovmskps
  void zero_upper();

 private:
  CodeBuffer& buffer_;
};

}  // namespace softgpu::ptx::native
