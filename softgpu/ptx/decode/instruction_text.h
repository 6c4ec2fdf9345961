// The instruction that is being decoded, as the text spells it, and what has been understood of it.
//
// A decode function takes the modifiers that it knows. What nobody has taken refuses the instruction, so that an unknown
// modifier cannot be ignored by accident. Example: of `add.cc.s32` a decoder takes the type and `cc`; `add.rn.s32` is refused
// with "instruction add.rn.s32: modifier .rn is not supported". The first refusal of a function stays.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "softgpu/ptx/machine.h"
#include "softgpu/ptx/text/ast.h"

namespace softgpu::ptx {

class InstructionText {
 public:
  // Of `function`, which must outlive this.
  explicit InstructionText(const ast::Function& function) : function_(function) {}

  // Goes to the next instruction; of labels nothing is taken.
  void begin(const ast::Instruction& instruction);
  // Refuses what was not taken.
  void finish();

  // REQUIRES of all that concern an instruction: one has begun.
  const ast::Instruction& current() const { return *current_; }
  std::string_view opcode() const { return current_->opcode; }
  std::span<const ast::Operand> operands() const { return operands_; }
  int line() const { return current_ != nullptr ? current_->line : function_.line; }

  // Each takes the first that fits of those that nobody has taken, in the order the instruction spells them.
  bool take(std::string_view modifier);
  int take_any(std::span<const std::string_view> names);  // the index of the one that was found, or -1
  Type take_type();                                       // refuses the instruction when there is none
  std::optional<Type> maybe_type();
  std::optional<Space> maybe_space();
  bool contains(std::string_view modifier) const;  // taken or not

  bool expect_operands(std::size_t least, std::size_t most);
  // The label that the operand is.
  std::string_view label(const ast::Operand& operand);

  // Refuses the function because of the instruction, or of itself when none has begun.
  void refuse(std::string_view why, LoadError::Kind kind = LoadError::Kind::kUnsupported);
  // Refuses it in words of one's own.
  void fail(LoadError error);
  bool refused() const { return error_.has_value(); }
  const std::optional<LoadError>& error() const { return error_; }

 private:
  bool is_taken(std::size_t modifier) const { return (taken_ >> modifier & 1) != 0; }
  std::string spelled() const;

  const ast::Function& function_;
  const ast::Instruction* current_ = nullptr;
  std::span<const ast::Operand> operands_;
  std::span<const std::string_view> modifiers_;
  std::uint32_t taken_ = 0;  // bit per modifier
  std::optional<LoadError> error_;
};

}  // namespace softgpu::ptx
