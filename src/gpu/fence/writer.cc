// The verifier compares the whole of a fenced module with what these functions print for it (verifier.h), so that they print
// all that the tree holds: what they would leave out could not be told from text that was never read.
// Writes the tree as PTX again, in one way only.
#include <fmt/format.h>

#include "gpu/fence/ptx.h"

namespace fairlead::fence {
namespace {

// With a blank behind each comma, as everything here is written in one way.
std::string list_text(const std::vector<Operand>& elements) {
  std::string text;
  for (const Operand& element : elements) text += (text.empty() ? "" : ", ") + text_of(element);
  return text;
}

}  // namespace

std::string offset_text(std::int64_t offset) {
  return fmt::format("+{}", offset);
}

std::string text_of(const Operand& operand) {
  const std::string offset = operand.has_offset ? offset_text(operand.offset) : "";
  switch (operand.kind) {
    case Operand::Kind::kAddress:
      return operand.name.empty() ? fmt::format("[{}{}]", operand.bits, offset)
                                  : fmt::format("[{}{}]", operand.name, offset);
    case Operand::Kind::kList:
      return (operand.is_parenthesised ? "(" : "{") + list_text(operand.elements) +
             (operand.is_parenthesised ? ")" : "}");
    case Operand::Kind::kNumber: return (operand.negated ? "-" : "") + std::string(operand.name);
    case Operand::Kind::kName: break;
  }
  // !p of a predicate, -r of a number: the parser keeps one mark for both, and a suffix is of vectors only.
  const bool is_predicate = operand.negated && operand.suffix.empty();
  std::string text = operand.negated ? (is_predicate ? "!" : "-") : "";
  text.append(operand.name).append(operand.suffix).append(offset);
  if (!operand.second.empty()) text.append("|").append(operand.second);
  return text;
}

std::string text_of(const Instruction& instruction) {
  std::string text;
  if (!instruction.guard.empty()) {
    text = fmt::format("@{}{} ", instruction.guard_negated ? "!" : "", instruction.guard);
  }
  text += instruction.opcode;
  for (const std::string_view modifier : instruction.modifiers) text += modifier;
  if (!instruction.operands.empty()) text += " " + list_text(instruction.operands);
  return text + ";";
}

std::string text_of(const Variable& variable) {
  constexpr const char* kSpaces[] = {"", ".global", ".const", ".shared", ".local", ".param"};
  std::string text = variable.linkage.empty() ? "" : std::string(variable.linkage) + " ";
  text += fmt::format("{} .align {} ", kSpaces[static_cast<int>(variable.space)], variable.alignment);
  if (!variable.width.empty()) text += std::string(variable.width) + " ";
  text += fmt::format("{} {}", variable.type, variable.name);
  for (const std::uint64_t extent : variable.extents) text += extent == 0 ? "[]" : fmt::format("[{}]", extent);
  if (!variable.initialiser_text.empty()) text += " = " + variable.initialiser_text;
  return text;
}

std::string text_of(const Signature& signature, std::string_view name) {
  const auto list = [](const std::vector<Variable>& variables) {
    std::string text;
    for (const Variable& variable : variables) text += (text.empty() ? "" : ", ") + text_of(variable);
    return "(" + text + ")";
  };
  return (signature.results.empty() ? "" : list(signature.results) + " ") + std::string(name) + " " +
         list(signature.parameters);
}

}  // namespace fairlead::fence
