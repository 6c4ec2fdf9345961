#include "softgpu/ptx/native/assembler.h"

namespace softgpu::ptx::native {

// ---- branches

void Assembler::jump(Label to) {
  byte(0xe9);
  distance(to);
}
void Assembler::jump_if(Condition condition, Label to) {
  byte(0x0f);
  byte(0x80 | static_cast<unsigned>(condition));
  distance(to);
}
void Assembler::jump_to(const void* code) {
  move(rax, reinterpret_cast<std::uint64_t>(code));
  byte(0xff);
  operands(4, rax);
}
void Assembler::call(const void* code) {
  move(rax, reinterpret_cast<std::uint64_t>(code));
  byte(0xff);
  operands(2, rax);
}
void Assembler::ret() {
  byte(0xc3);
}
void Assembler::push(Register r) {
  rex(false, 0, r);
  byte(0x50 | (r & 7u));
}
void Assembler::pop(Register r) {
  rex(false, 0, r);
  byte(0x58 | (r & 7u));
}

// ---- integers

void Assembler::move(Register to, std::uint64_t value) {
  if (value <= UINT32_MAX) {
    rex(false, 0, to);
    byte(0xb8 | (to & 7u));
    return word(static_cast<std::uint32_t>(value));
  }
  rex(true, 0, to);
  byte(0xb8 | (to & 7u));
  word(static_cast<std::uint32_t>(value));
  word(static_cast<std::uint32_t>(value >> 32));
}
void Assembler::move(Register to, Register from) {
  rex(true, to, from);
  byte(0x8b);
  operands(to, from);
}
void Assembler::load(Register to, Memory from) {
  rex(true, to, from.base);
  byte(0x8b);
  operands(to, from);
}
void Assembler::load32(Register to, Memory from) {
  rex(false, to, from.base);
  byte(0x8b);
  operands(to, from);
}
void Assembler::store(Memory to, Register from) {
  rex(true, from, to.base);
  byte(0x89);
  operands(from, to);
}
void Assembler::store32(Memory to, Register from) {
  rex(false, from, to.base);
  byte(0x89);
  operands(from, to);
}
void Assembler::store(Memory to, std::int32_t value) {
  rex(true, 0, to.base);
  byte(0xc7);
  operands(0, to);
  word(static_cast<std::uint32_t>(value));
}
void Assembler::compare8(Memory a, std::int8_t value) {
  rex(false, 0, a.base);
  byte(0x80);
  operands(7, a);
  byte(static_cast<std::uint8_t>(value));
}
void Assembler::compare(Memory a, std::int8_t value) {
  rex(true, 0, a.base);
  byte(0x83);
  operands(7, a);
  byte(static_cast<std::uint8_t>(value));
}
// A number's operation in the group that takes an immediate is bits 3 to 5 of its opcode.
void Assembler::integer(bool wide, Integer operation, Register a, const IntegerSource& b) {
  if (b.kind == IntegerSource::Kind::kNumber) {
    rex(wide, 0, a);
    byte(0x81);
    operands(static_cast<unsigned>(operation) >> 3, a);
    return word(static_cast<std::uint32_t>(b.number));
  }
  rex(wide, a, b.memory.base);
  byte(static_cast<unsigned>(operation));
  if (b.kind == IntegerSource::Kind::kMemory) {
    operands(a, b.memory);
  } else {
    operands(a, b.memory.base);
  }
}
void Assembler::add(Memory to, Register from) {
  rex(true, from, to.base);
  byte(0x01);
  operands(from, to);
}
void Assembler::add(Memory to, std::int32_t value) {
  rex(true, 0, to.base);
  byte(0x81);
  operands(0, to);
  word(static_cast<std::uint32_t>(value));
}
void Assembler::subtract32(Memory from, std::int32_t value) {
  rex(false, 0, from.base);
  byte(0x81);
  operands(5, from);
  word(static_cast<std::uint32_t>(value));
}
void Assembler::test32(Register a, std::int32_t bits) {
  rex(false, 0, a);
  byte(0xf7);
  operands(0, a);
  word(static_cast<std::uint32_t>(bits));
}
void Assembler::shift_left32(Register a, std::uint8_t count) {
  rex(false, 0, a);
  byte(0xc1);
  operands(4, a);
  byte(count);
}
void Assembler::not32(Register a) {
  rex(false, 0, a);
  byte(0xf7);
  operands(2, a);
}
void Assembler::population_count(Register to, Register from) {
  byte(0xf3);
  rex(false, to, from);
  byte(0x0f);
  byte(0xb8);
  operands(to, from);
}
void Assembler::multiply(Register to, Register from, std::int32_t by) {
  rex(true, to, from);
  byte(0x69);
  operands(to, from);
  word(static_cast<std::uint32_t>(by));
}

// What is left of a page is touched by the next push or call.
void Assembler::reserve_stack(std::int32_t bytes) {
  constexpr std::int32_t kPage = 4096;
  for (; bytes >= kPage; bytes -= kPage) {
    op(Integer::kSub, rsp, kPage);
    store({rsp, 0}, 0);
  }
  if (bytes > 0) op(Integer::kSub, rsp, bytes);
}

}  // namespace softgpu::ptx::native
