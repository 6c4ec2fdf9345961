// Writes the tree as PTX again, in one way only: `ld.global.f32 %f1,[%rd1+-8]` as "ld.global.f32 %f1, [%rd1+-8];".
//
// The verifier compares the whole of a fenced module with what these functions print for it (verifier.h), so that they print
// all that the tree holds: what they would leave out could not be told from text that was never read.
#include <fmt/format.h>

#include "gpu/fence/ptx.h"

namespace fairlead::fence {
namespace {

void append(std::string& text, const Operand& operand);

// With a blank behind each comma, as everything here is written in one way.
void append_list(std::string& text, const std::vector<Operand>& elements) {
  for (const Operand& element : elements) {
    if (&element != elements.data()) text += ", ";
    append(text, element);
  }
}

void append_offset(std::string& text, std::int64_t offset) {
  text.append(1, '+').append(fmt::format_int(offset).c_str());
}

void append_name(std::string& text, const Operand& operand) {
  // !p of a predicate, -r of a number: the parser keeps one mark for both, and a suffix is of vectors only.
  if (operand.negated) text += operand.suffix.empty() ? '!' : '-';
  text.append(operand.name).append(operand.suffix);
  if (operand.has_offset) append_offset(text, operand.offset);
  if (!operand.second.empty()) text.append(1, '|').append(operand.second);
}

void append_address(std::string& text, const Operand& operand) {
  text += '[';
  if (operand.name.empty()) {
    text += fmt::format_int(operand.bits).c_str();
  } else {
    text += operand.name;
  }
  if (operand.has_offset) append_offset(text, operand.offset);
  text += ']';
}

void append(std::string& text, const Operand& operand) {
  switch (operand.kind) {
    case Operand::Kind::kAddress: return append_address(text, operand);
    case Operand::Kind::kList:
      text += operand.is_parenthesised ? '(' : '{';
      append_list(text, operand.elements);
      text += operand.is_parenthesised ? ')' : '}';
      return;
    case Operand::Kind::kNumber:
      if (operand.negated) text += '-';
      text += operand.name;
      return;
    case Operand::Kind::kName: return append_name(text, operand);
  }
}

}  // namespace

std::string offset_text(std::int64_t offset) {
  std::string text;
  append_offset(text, offset);
  return text;
}

std::string text_of(const Operand& operand) {
  std::string text;
  append(text, operand);
  return text;
}

std::string text_of(const Instruction& instruction) {
  std::string text;
  append_text(text, instruction);
  return text;
}

void append_text(std::string& text, const Instruction& instruction) {
  append_guard(text, instruction);
  text += instruction.opcode;
  for (const std::string_view modifier : instruction.modifiers) text += modifier;
  if (!instruction.operands.empty()) {
    text += ' ';
    append_list(text, instruction.operands);
  }
  text += ';';
}

void append_guard(std::string& text, const Instruction& instruction) {
  if (instruction.guard.empty()) return;
  text += instruction.guard_negated ? "@!" : "@";
  text.append(instruction.guard).append(1, ' ');
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
