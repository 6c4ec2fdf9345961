// Opcodes of x86-64 instructions that native code has in more than one kind.
#pragma once

#include <cstdint>

namespace softgpu::ptx::native {

// How a vector instruction is encoded: opcode map (1: 0F, 2: 0F38, 3: 0F3A), prefix (0: none, 1: 66, 2: F3, 3: F2),
// VEX.W and opcode.
struct VectorOpcode {
  std::uint8_t map = 0, prefix = 0, wide = 0, code = 0;
};

// Integer operations between two registers or a register and memory: the opcode of `op r64, r/m64`.
enum class Integer : std::uint8_t { kAdd = 0x03, kOr = 0x0b, kAnd = 0x23, kSub = 0x2b, kXor = 0x33, kCmp = 0x3b };

}  // namespace softgpu::ptx::native
