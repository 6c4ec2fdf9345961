#include "softgpu/ptx/decode/instruction_text.h"

#include <algorithm>
#include <utility>

namespace softgpu::ptx {

void InstructionText::begin(const ast::Instruction& instruction) {
  current_ = &instruction;
  operands_ = function_.operands_of(instruction);
  modifiers_ = function_.modifiers_of(instruction);
  taken_ = 0;
}

void InstructionText::finish() {
  for (std::size_t i = 0; i < modifiers_.size(); ++i) {
    if (!is_taken(i)) return refuse("modifier ." + std::string(modifiers_[i]) + " is not supported");
  }
}

bool InstructionText::take(std::string_view modifier) {
  for (std::size_t i = 0; i < modifiers_.size(); ++i) {
    if (modifiers_[i] == modifier && !is_taken(i)) {
      taken_ |= 1u << i;
      return true;
    }
  }
  return false;
}

int InstructionText::take_any(std::span<const std::string_view> names) {
  for (std::size_t i = 0; i < modifiers_.size(); ++i) {
    const auto name = std::find(names.begin(), names.end(), modifiers_[i]);
    if (name == names.end() || is_taken(i)) continue;
    taken_ |= 1u << i;
    return static_cast<int>(name - names.begin());
  }
  return -1;
}

std::optional<Type> InstructionText::maybe_type() {
  for (std::size_t i = 0; i < modifiers_.size(); ++i) {
    const auto type = !is_taken(i) ? type_from_name(modifiers_[i]) : std::nullopt;
    if (!type) continue;
    taken_ |= 1u << i;
    return type;
  }
  return std::nullopt;
}

Type InstructionText::take_type() {
  const auto type = maybe_type();
  if (!type) refuse("a type is missing", LoadError::Kind::kSyntax);
  return type.value_or(Type::kB32);
}

std::optional<Space> InstructionText::maybe_space() {
  for (std::size_t i = 0; i < modifiers_.size(); ++i) {
    const auto space = !is_taken(i) ? space_from_name(modifiers_[i]) : std::nullopt;
    if (!space) continue;
    taken_ |= 1u << i;
    return space;
  }
  return std::nullopt;
}

bool InstructionText::contains(std::string_view modifier) const {
  return std::find(modifiers_.begin(), modifiers_.end(), modifier) != modifiers_.end();
}

bool InstructionText::expect_operands(std::size_t least, std::size_t most) {
  if (operands_.size() >= least && operands_.size() <= most) return true;
  refuse("it has " + std::to_string(operands_.size()) + " operands instead of " + std::to_string(least),
         LoadError::Kind::kSyntax);
  return false;
}

std::string_view InstructionText::label(const ast::Operand& operand) {
  if (operand.kind != ast::Operand::Kind::kSymbol) refuse("a label is missing", LoadError::Kind::kSyntax);
  return operand.name;
}

std::string InstructionText::spelled() const {
  std::string text(current_->opcode);
  for (const std::string_view modifier : modifiers_) text.append(".").append(modifier);
  return text;
}

void InstructionText::refuse(std::string_view why, LoadError::Kind kind) {
  if (error_) return;
  const std::string what = current_ != nullptr ? "instruction " + spelled() : "function " + std::string(function_.name);
  fail({kind, line(), what + ": " + std::string(why)});
}

void InstructionText::fail(LoadError error) {
  if (!error_) error_ = std::move(error);
}

}  // namespace softgpu::ptx
