// Rows of operands, in the type that a handler works in.
//
// Reading converts constants, symbols and special registers to a row of `type`, and a register of another width by truncation
// or (for signed types) extension: the handlers for that are emitted at once, into scratch rows. Writing to a register of
// another width is completed behind the handlers of the instruction. What does not fit refuses the instruction, and the row
// returned is of no use.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "softgpu/ptx/decode/code_writer.h"
#include "softgpu/ptx/decode/function_frame.h"
#include "softgpu/ptx/decode/instruction_text.h"
#include "softgpu/ptx/decode/module_context.h"

namespace softgpu::ptx {

struct Address {
  std::int32_t row = 0;
  std::int64_t offset = 0;
  bool is_wide = true;  // 64-bit addresses, else 32-bit
};

class OperandRows {
 public:
  // All must outlive this.
  OperandRows(const ModuleContext& module, const ast::Function& function, FunctionFrame& frame, CodeWriter& writer,
              InstructionText& text)
      : module_(module), function_(function), frame_(frame), writer_(writer), text_(text) {}

  std::int32_t read(const ast::Operand& operand, Type type);
  std::int32_t write(const ast::Operand& operand, Type type);
  std::int32_t read_predicate(const ast::Operand& operand);
  std::int32_t write_predicate(const ast::Operand& operand);
  std::int32_t second_predicate(const ast::Operand& operand);  // q of p|q, or kNoRow
  // The low half of a 128-bit register: a row of 64-bit values, which the row of the high half follows.
  std::int32_t wide_row(const ast::Operand& operand);
  Address address(const ast::Operand& operand, Space space);
  // kNone of what is no register.
  Type register_type(const ast::Operand& operand) const;

  // Completes what was written since begin().
  void begin() { widenings_.clear(); }
  void finish();

 private:
  struct Widening {
    std::int32_t to, from;
    std::size_t to_bytes, from_bytes;
    bool sign;
  };

  std::int32_t constant(const ast::Operand& operand, Type type);
  std::int32_t symbol(const ast::Operand& operand, Type type);
  std::int32_t variable(const ast::Operand& operand, Type type);
  std::int32_t special(const ast::Operand& operand, Type type);
  // A row of `type` with what `handler` makes of the operand's `offset`.
  std::int32_t computed_address(Handler handler, std::int64_t offset, Type type);
  Address register_address(const ast::Operand& operand, Space space);
  // Only the instructions that know them may be given -r and r.b0.
  void refuse_decoration(const ast::Operand& operand);

  const ModuleContext& module_;
  const ast::Function& function_;
  FunctionFrame& frame_;
  CodeWriter& writer_;
  InstructionText& text_;
  std::vector<Widening> widenings_;
};

}  // namespace softgpu::ptx
