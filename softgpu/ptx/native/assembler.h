// An assembler for the few x86-64 instructions that native code is made of besides vectors (vector_code.h): 64-bit integer
// arithmetic and branches. Names that end in 32 are of 32 bits, and set the upper half of a register to zero.
#pragma once

#include <cstdint>

#include "softgpu/ptx/native/code_buffer.h"
#include "softgpu/ptx/native/opcodes.h"

namespace softgpu::ptx::native {

enum class Condition : std::uint8_t { kBelow = 2, kEqual = 4, kNotEqual = 5, kAbove = 7, kSign = 8 };

// The second operand of an integer operation: a register, memory, or a number, which is sign-extended to 64 bits.
struct IntegerSource {
  enum class Kind : std::uint8_t { kRegister, kMemory, kNumber };
  Kind kind;
  Memory memory{rax, 0};  // of a register: its base
  std::int32_t number = 0;
  IntegerSource(Register r) : kind(Kind::kRegister), memory{r, 0} {}         // NOLINT(google-explicit-constructor)
  IntegerSource(Memory m) : kind(Kind::kMemory), memory(m) {}                // NOLINT(google-explicit-constructor)
  IntegerSource(std::int32_t value) : kind(Kind::kNumber), number(value) {}  // NOLINT(google-explicit-constructor)
};

class Assembler : public CodeBuffer {
 public:
  void jump(Label to);
  void jump_if(Condition condition, Label to);
  void jump_to(const void* code);  // leaves for code elsewhere; clobbers rax
  void call(const void* code);     // clobbers rax
  void ret();
  void push(Register r);
  void pop(Register r);

  void move(Register to, std::uint64_t value);
  void move(Register to, Register from);
  void load(Register to, Memory from);
  void load32(Register to, Memory from);  // zero-extended
  void store(Memory to, Register from);
  void store32(Memory to, Register from);
  void store(Memory to, std::int32_t value);  // sign-extended to 64 bits
  void compare8(Memory a, std::int8_t value);
  void compare(Memory a, std::int8_t value);  // 64 bits
  // a = operation(a, b)
  void op(Integer operation, Register a, IntegerSource b) { integer(true, operation, a, b); }
  void op32(Integer operation, Register a, IntegerSource b) { integer(false, operation, a, b); }
  void add(Memory to, Register from);
  void add(Memory to, std::int32_t value);
  void subtract32(Memory from, std::int32_t value);
  void test32(Register a, std::int32_t bits);
  void shift_left32(Register a, std::uint8_t count);
  void not32(Register a);
  void population_count(Register to, Register from);  // of 32 bits
  void multiply(Register to, Register from, std::int32_t by);

  // Moves rsp down. Each page on the way is written, so that a stack without room ends at its guard page and never behind.
  void reserve_stack(std::int32_t bytes);

 private:
  void integer(bool wide, Integer operation, Register a, const IntegerSource& b);
};

}  // namespace softgpu::ptx::native
