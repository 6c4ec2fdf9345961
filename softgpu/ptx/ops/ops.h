// The opcode tables of the instruction families, and what the families share when they decode. Private to the ops/*.cc
// files.
#pragma once

#include <span>

#include "softgpu/ptx/decode/decode.h"
#include "softgpu/ptx/isa.h"
#include "softgpu/ptx/ops/dispatch.h"
#include "softgpu/ptx/rows.h"

#include "softgpu/ptx/isa_begin.h"
namespace softgpu::ptx::SOFTGPU_ISA {

std::span<const Opcode> integer_opcodes();
std::span<const Opcode> bit_opcodes();
std::span<const Opcode> carry_opcodes();
std::span<const Opcode> float_opcodes();
std::span<const Opcode> math_opcodes();
std::span<const Opcode> compare_opcodes();
std::span<const Opcode> convert_opcodes();
std::span<const Opcode> move_opcodes();
std::span<const Opcode> memory_opcodes();
std::span<const Opcode> atomic_opcodes();
std::span<const Opcode> control_opcodes();
std::span<const Opcode> warp_opcodes();
std::span<const Opcode> mma_opcodes();
std::span<const Opcode> matrix_opcodes();
std::span<const Opcode> async_opcodes();
std::span<const Opcode> hint_opcodes();
std::span<const Opcode> video_opcodes();
std::span<const Opcode> texture_opcodes();

// Fill in the helpers of an InstructionSet that live in the same file as their relatives.
void add_control_helpers(InstructionSet& set);
void add_move_helpers(InstructionSet& set);
void add_convert_helpers(InstructionSet& set);

// What the handlers of a family mean to the native compiler, which emits AVX2.
void add_native(InstructionSet& set);
void add_integer_meanings(native::Meanings& meanings);
void add_bit_meanings(native::Meanings& meanings);
void add_float_meanings(native::Meanings& meanings);
void add_compare_meanings(native::Meanings& meanings);
void add_convert_meanings(native::Meanings& meanings);
void add_move_meanings(native::Meanings& meanings);
void add_memory_meanings(native::Meanings& meanings);
void add_control_meanings(native::Meanings& meanings);

// Opcodes that several families implement for different types: the first table's decoder passes on to these.
bool decode_half(Decoder& decoder, Type type);    // f16, bf16 and the packed pairs; false: not one of its opcodes
void decode_warp_barrier(Decoder& decoder);       // bar.warp.sync
void decode_cluster_barrier(Decoder& decoder);    // barrier.cluster
void decode_wmma_product(Decoder& decoder);       // wmma.mma
bool decode_packed_conversion(Decoder& decoder);  // cvt of pairs, tf32, 8-bit floats and .pack; false: none of them
bool decode_carry(Decoder& decoder, Type type);   // .cc and the c-suffixed opcodes
void decode_float_arithmetic(Decoder& decoder, Type type);

// For instructions that need do nothing here.
inline const Instruction* nothing(Warp&, const Instruction* at) {
  return at + 1;
}

// The elements of {a, b, c, d}, or the operand itself.
inline std::span<const ast::Operand> elements_of(const Decoder& decoder, const ast::Operand& operand) {
  if (operand.kind == ast::Operand::Kind::kList) return decoder.function.elements_of(operand);
  return {&operand, 1};
}

// As OperandRows::address, but always in a 64-bit row.
inline Address wide_address(Decoder& decoder, const ast::Operand& operand, Space space) {
  const Address address = decoder.rows.address(operand, space);
  if (address.is_wide) return address;
  ast::Operand plain = operand;
  plain.memory = false;
  return {decoder.rows.read(plain, Type::kU64), address.offset, true};
}

// dst = op(dst)
inline void emit_in_place(Decoder& decoder, Handler handler, std::int32_t dst) {
  Instruction& instruction = decoder.writer.emit(handler);
  instruction.dst = dst;
  instruction.a = dst;
}

// A scratch row with op(a).
inline std::int32_t emit_prepared(Decoder& decoder, Handler handler, std::int32_t a) {
  const auto dst = decoder.frame.scratch();
  Instruction& instruction = decoder.writer.emit(handler);
  instruction.dst = dst;
  instruction.a = a;
  return dst;
}

// dst = op(a), op(a, b), op(a, b, c): reads the operands as `from`, writes `to`.
inline void emit_unary(Decoder& decoder, Handler handler, Type to, Type from) {
  if (!decoder.text.expect_operands(2, 2)) return;
  const auto a = decoder.rows.read(decoder.text.operands()[1], from);
  const auto dst = decoder.rows.write(decoder.text.operands()[0], to);
  Instruction& instruction = decoder.writer.emit(handler);
  instruction.dst = dst;
  instruction.a = a;
}

inline void emit_binary(Decoder& decoder, Handler handler, Type to, Type from, Type second) {
  if (!decoder.text.expect_operands(3, 3)) return;
  const auto a = decoder.rows.read(decoder.text.operands()[1], from);
  const auto b = decoder.rows.read(decoder.text.operands()[2], second);
  const auto dst = decoder.rows.write(decoder.text.operands()[0], to);
  Instruction& instruction = decoder.writer.emit(handler);
  instruction.dst = dst;
  instruction.a = a;
  instruction.b = b;
}

inline void emit_ternary(Decoder& decoder, Handler handler, Type to, Type from, Type second, Type third) {
  if (!decoder.text.expect_operands(4, 4)) return;
  const auto a = decoder.rows.read(decoder.text.operands()[1], from);
  const auto b = decoder.rows.read(decoder.text.operands()[2], second);
  const auto c = decoder.rows.read(decoder.text.operands()[3], third);
  const auto dst = decoder.rows.write(decoder.text.operands()[0], to);
  Instruction& instruction = decoder.writer.emit(handler);
  instruction.dst = dst;
  instruction.a = a;
  instruction.b = b;
  instruction.c = c;
}

}  // namespace softgpu::ptx::SOFTGPU_ISA
#include "softgpu/ptx/isa_end.h"
