#include "softgpu/ptx/native/vector_code.h"

namespace softgpu::ptx::native {

void VectorCode::op(VectorOpcode opcode, Vector dst, Vector a, VectorSource b) {
  const auto reg = static_cast<unsigned>(dst), first = static_cast<unsigned>(a);
  const bool in_memory = b.vector < 0;
  const auto rm = in_memory ? static_cast<unsigned>(b.memory.base) : static_cast<unsigned>(b.vector);
  const unsigned r = (~reg >> 3 & 1) << 7, base = (~rm >> 3 & 1) << 5;
  const unsigned last = (~first & 15) << 3 | 4u | opcode.prefix;  // vvvv, 256 bits, prefix
  if (opcode.map == 1 && opcode.wide == 0 && base != 0) {
    buffer_.byte(0xc5);
    buffer_.byte(r | last);
  } else {
    buffer_.byte(0xc4);
    buffer_.byte(r | 0x40 | base | opcode.map);
    buffer_.byte((opcode.wide != 0 ? 0x80u : 0u) | last);
  }
  buffer_.byte(opcode.code);
  if (in_memory) {
    buffer_.operands(reg, b.memory);
  } else {
    buffer_.operands(reg, static_cast<Register>(rm));
  }
}
void VectorCode::op(VectorOpcode opcode, Vector dst, Vector a, VectorSource b, std::uint8_t immediate) {
  op(opcode, dst, a, b);
  buffer_.byte(immediate);
}
void VectorCode::load(Vector to, Memory from) {
  op({1, 0, 0, 0x10}, to, 0, from);
}
void VectorCode::store(Memory to, Vector from) {
  op({1, 0, 0, 0x11}, from, 0, to);
}
void VectorCode::move(Vector to, Vector from) {
  if (to != from) op({1, 0, 0, 0x28}, to, 0, from);
}
void VectorCode::signs(Register to, Vector from) {
  op({1, 0, 0, 0x50}, to, 0, from);
}
void VectorCode::zero_upper() {
  buffer_.byte(0xc5);
  buffer_.byte(0xf8);
  buffer_.byte(0x77);
}

}  // namespace softgpu::ptx::native
