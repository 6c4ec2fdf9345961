#include "softgpu/ptx/native/assembler.h"

#include <cstring>

namespace softgpu::ptx::native {

void Assembler::word(std::uint32_t value) {
  code_.resize(code_.size() + sizeof value);
  std::memcpy(code_.data() + code_.size() - sizeof value, &value, sizeof value);
}

// ModRM with a base register and displacement; rsp and r12 as a base need a SIB byte.
void Assembler::operand(unsigned reg, Memory memory) {
  const bool is_short = memory.offset >= -128 && memory.offset <= 127;
  byte((is_short ? 0x40u : 0x80u) | (reg & 7) << 3 | (memory.base & 7u));
  if ((memory.base & 7) == rsp) byte(0x24);
  if (is_short) {
    byte(static_cast<std::uint8_t>(memory.offset));
  } else {
    word(static_cast<std::uint32_t>(memory.offset));
  }
}

void Assembler::rex(bool wide, unsigned reg, unsigned rm) {
  const unsigned bits = (wide ? 8u : 0u) | (reg >> 3 & 1) << 2 | (rm >> 3 & 1);
  if (bits != 0) byte(0x40 | bits);
}

// ---- branches

Assembler::Label Assembler::label() {
  labels_.push_back(-1);
  return static_cast<Label>(labels_.size()) - 1;
}
void Assembler::bind(Label label) {
  labels_[static_cast<std::size_t>(label)] = static_cast<std::int64_t>(code_.size());
}
void Assembler::use(Label label) {
  uses_.push_back({code_.size(), label});
  word(0);
}
void Assembler::jump(Label to) {
  byte(0xe9);
  use(to);
}
void Assembler::jump_if(Condition condition, Label to) {
  byte(0x0f);
  byte(0x80 | static_cast<unsigned>(condition));
  use(to);
}
void Assembler::jump_to(const void* code) {
  move(rax, reinterpret_cast<std::uint64_t>(code));
  byte(0xff);
  registers(4, rax);
}
void Assembler::call(const void* code) {
  move(rax, reinterpret_cast<std::uint64_t>(code));
  byte(0xff);
  registers(2, rax);
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
  registers(to, from);
}
void Assembler::load(Register to, Memory from) {
  rex(true, to, from.base);
  byte(0x8b);
  operand(to, from);
}
void Assembler::load32(Register to, Memory from) {
  rex(false, to, from.base);
  byte(0x8b);
  operand(to, from);
}
void Assembler::store(Memory to, Register from) {
  rex(true, from, to.base);
  byte(0x89);
  operand(from, to);
}
void Assembler::store32(Memory to, Register from) {
  rex(false, from, to.base);
  byte(0x89);
  operand(from, to);
}
void Assembler::store(Memory to, std::int32_t value) {
  rex(true, 0, to.base);
  byte(0xc7);
  operand(0, to);
  word(static_cast<std::uint32_t>(value));
}
void Assembler::compare8(Memory a, std::int8_t value) {
  rex(false, 0, a.base);
  byte(0x80);
  operand(7, a);
  byte(static_cast<std::uint8_t>(value));
}
void Assembler::compare(Memory a, std::int8_t value) {
  rex(true, 0, a.base);
  byte(0x83);
  operand(7, a);
  byte(static_cast<std::uint8_t>(value));
}
void Assembler::op(Integer operation, Register a, Register b) {
  rex(true, a, b);
  byte(static_cast<unsigned>(operation));
  registers(a, b);
}
void Assembler::op(Integer operation, Register a, Memory b) {
  rex(true, a, b.base);
  byte(static_cast<unsigned>(operation));
  operand(a, b);
}
void Assembler::op32(Integer operation, Register a, Register b) {
  rex(false, a, b);
  byte(static_cast<unsigned>(operation));
  registers(a, b);
}
void Assembler::op32(Integer operation, Register a, Memory b) {
  rex(false, a, b.base);
  byte(static_cast<unsigned>(operation));
  operand(a, b);
}
// The operation's number in the group that takes an immediate is bits 3 to 5 of its opcode.
void Assembler::op(Integer operation, Register a, std::int32_t value) {
  rex(true, 0, a);
  byte(0x81);
  registers(static_cast<unsigned>(operation) >> 3, a);
  word(static_cast<std::uint32_t>(value));
}
void Assembler::op32(Integer operation, Register a, std::int32_t value) {
  rex(false, 0, a);
  byte(0x81);
  registers(static_cast<unsigned>(operation) >> 3, a);
  word(static_cast<std::uint32_t>(value));
}
void Assembler::add(Memory to, Register from) {
  rex(true, from, to.base);
  byte(0x01);
  operand(from, to);
}
void Assembler::add(Memory to, std::int32_t value) {
  rex(true, 0, to.base);
  byte(0x81);
  operand(0, to);
  word(static_cast<std::uint32_t>(value));
}
void Assembler::subtract32(Memory from, std::int32_t value) {
  rex(false, 0, from.base);
  byte(0x81);
  operand(5, from);
  word(static_cast<std::uint32_t>(value));
}
void Assembler::test32(Register a, std::int32_t bits) {
  rex(false, 0, a);
  byte(0xf7);
  registers(0, a);
  word(static_cast<std::uint32_t>(bits));
}
void Assembler::shift_left32(Register a, std::uint8_t count) {
  rex(false, 0, a);
  byte(0xc1);
  registers(4, a);
  byte(count);
}
void Assembler::not32(Register a) {
  rex(false, 0, a);
  byte(0xf7);
  registers(2, a);
}
void Assembler::population_count(Register to, Register from) {
  byte(0xf3);
  rex(false, to, from);
  byte(0x0f);
  byte(0xb8);
  registers(to, from);
}
void Assembler::multiply(Register to, Register from, std::int32_t by) {
  rex(true, to, from);
  byte(0x69);
  registers(to, from);
  word(static_cast<std::uint32_t>(by));
}

// ---- vectors

void Assembler::vector(VectorOpcode opcode, Vector dst, Vector a, VectorSource b) {
  const auto reg = static_cast<unsigned>(dst), first = static_cast<unsigned>(a);
  const bool in_memory = b.vector < 0;
  const auto rm = in_memory ? static_cast<unsigned>(b.memory.base) : static_cast<unsigned>(b.vector);
  const unsigned r = (~reg >> 3 & 1) << 7, base = (~rm >> 3 & 1) << 5;
  const unsigned last = (~first & 15) << 3 | 4u | opcode.prefix;  // vvvv, 256 bits, prefix
  if (opcode.map == 1 && opcode.wide == 0 && base != 0) {
    byte(0xc5);
    byte(r | last);
  } else {
    byte(0xc4);
    byte(r | 0x40 | base | opcode.map);
    byte((opcode.wide != 0 ? 0x80u : 0u) | last);
  }
  byte(opcode.code);
  if (in_memory) {
    operand(reg, b.memory);
  } else {
    registers(reg, rm);
  }
}
void Assembler::vector(VectorOpcode opcode, Vector dst, Vector a, VectorSource b, std::uint8_t immediate) {
  vector(opcode, dst, a, b);
  byte(immediate);
}
void Assembler::vector_load(Vector to, Memory from) {
  vector({1, 0, 0, 0x10}, to, 0, from);
}
void Assembler::vector_store(Memory to, Vector from) {
  vector({1, 0, 0, 0x11}, from, 0, to);
}
void Assembler::vector_move(Vector to, Vector from) {
  if (to != from) vector({1, 0, 0, 0x28}, to, 0, from);
}
void Assembler::signs(Register to, Vector from) {
  vector({1, 0, 0, 0x50}, to, 0, from);
}
void Assembler::zero_upper() {
  byte(0xc5);
  byte(0xf8);
  byte(0x77);
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

std::vector<std::uint8_t> Assembler::finish() {
  for (const Use& use : uses_) {
    const std::int64_t distance = labels_[static_cast<std::size_t>(use.label)] - static_cast<std::int64_t>(use.at) - 4;
    const auto bits = static_cast<std::int32_t>(distance);
    std::memcpy(code_.data() + use.at, &bits, sizeof bits);
  }
  return std::move(code_);
}

}  // namespace softgpu::ptx::native
