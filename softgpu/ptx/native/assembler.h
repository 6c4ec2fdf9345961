// An assembler for the few x86-64 instructions that native code is made of: 64-bit integer arithmetic, branches and
// three-operand AVX2. Encodings: Intel SDM volume 2, chapter 2 (VEX prefixes) and the instructions' pages.
#pragma once

#include <cstdint>
#include <vector>

namespace softgpu::ptx::native {

enum Register : std::uint8_t { rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi, r8, r9, r10, r11, r12, r13, r14, r15 };
using Vector = int;  // ymm0 to ymm15

struct Memory {
  Register base;
  std::int32_t offset;
  Memory operator+(std::int32_t bytes) const { return {base, offset + bytes}; }
};

// The second source of a vector instruction: a register or memory.
struct VectorSource {
  Vector vector;  // -1: memory
  Memory memory;
  VectorSource(Vector v) : vector(v), memory{rax, 0} {}  // NOLINT(google-explicit-constructor)
  VectorSource(Memory m) : vector(-1), memory(m) {}      // NOLINT(google-explicit-constructor)
};

// How a vector instruction is encoded: opcode map (1: 0F, 2: 0F38, 3: 0F3A), prefix (0: none, 1: 66, 2: F3, 3: F2),
// VEX.W and opcode.
struct VectorOpcode {
  std::uint8_t map = 0, prefix = 0, wide = 0, code = 0;
};

enum class Condition : std::uint8_t { kBelow = 2, kEqual = 4, kNotEqual = 5, kAbove = 7, kSign = 8 };

// Integer operations between two registers or a register and memory: the opcode of `op r64, r/m64`.
enum class Integer : std::uint8_t { kAdd = 0x03, kOr = 0x0b, kAnd = 0x23, kSub = 0x2b, kXor = 0x33, kCmp = 0x3b };

class Assembler {
 public:
  using Label = int;

  Label label();  // a new one, yet to be bound
  void bind(Label label);
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
  void op(Integer operation, Register a, Register b);
  void op(Integer operation, Register a, Memory b);
  void op32(Integer operation, Register a, Register b);
  void op32(Integer operation, Register a, Memory b);
  void op(Integer operation, Register a, std::int32_t value);
  void op32(Integer operation, Register a, std::int32_t value);
  void add(Memory to, Register from);
  void add(Memory to, std::int32_t value);
  void subtract32(Memory from, std::int32_t value);
  void test32(Register a, std::int32_t bits);
  void shift_left32(Register a, std::uint8_t count);
  void not32(Register a);
  void population_count(Register to, Register from);  // of 32 bits
  void multiply(Register to, Register from, std::int32_t by);

  void vector(VectorOpcode opcode, Vector dst, Vector a, VectorSource b);
  void vector(VectorOpcode opcode, Vector dst, Vector a, VectorSource b, std::uint8_t immediate);
  void vector_load(Vector to, Memory from);
  void vector_store(Memory to, Vector from);
  void vector_move(Vector to, Vector from);
  void signs(Register to, Vector from);  // vmovmskps
  void zero_upper();

  // Moves rsp down. Each page on the way is written, so that a stack without room ends at its guard page and never behind.
  void reserve_stack(std::int32_t bytes);

  // The code with all jumps in place. REQUIRES: every label used is bound.
  std::vector<std::uint8_t> finish();
  std::size_t size() const { return code_.size(); }

 private:
  struct Use {
    std::size_t at;
    Label label;
  };
  void byte(unsigned value) { code_.push_back(static_cast<std::uint8_t>(value)); }
  void word(std::uint32_t value);
  void operand(unsigned reg, Memory memory);
  void registers(unsigned reg, unsigned rm) { byte(0xc0 | (reg & 7) << 3 | (rm & 7)); }
  void rex(bool wide, unsigned reg, unsigned rm);
  void use(Label label);

  std::vector<std::uint8_t> code_;
  std::vector<std::int64_t> labels_;
  std::vector<Use> uses_;
};

}  // namespace softgpu::ptx::native
