#include "softgpu/ptx/text/labels.h"

#include <map>
#include <set>
#include <string>
#include <utility>

namespace softgpu::ptx {
namespace {

using LabelNames = std::map<std::pair<std::string_view, int>, std::string_view>;  // by name and scope

// The scope that `name` means when it is used in `scope`; -1: none defines it.
int scope_of_label(const LabelNames& names, const std::vector<int>& parents, std::string_view name, int scope) {
  while (scope >= 0 && !names.contains({name, scope})) scope = parents[static_cast<std::size_t>(scope)];
  return scope;
}

}  // namespace

bool Labels::resolve(TokenReader& reader, const std::vector<int>& parents, ModuleNames& names,
                     ast::Function& function) const {
  std::set<std::string_view> once, repeated;
  for (const Label& label : labels_) {
    if (!once.insert(label.name).second) repeated.insert(label.name);
  }
  if (repeated.empty()) return true;
  LabelNames unique_names;
  for (const Label& label : labels_) {
    if (!repeated.contains(label.name)) continue;
    const auto unique = names.keep(std::string(label.name) + "." + std::to_string(label.scope));
    if (!unique_names.emplace(std::pair(label.name, label.scope), unique).second) {
      return reader.fail_at(label.line, "label '" + std::string(label.name) + "' is defined twice");
    }
  }
  const auto rename = [&](std::string_view& name, int scope) {
    if (!repeated.contains(name)) return;
    const int found = scope_of_label(unique_names, parents, name, scope);
    if (found >= 0) name = unique_names.at({name, found});
  };
  for (std::size_t i = 0; i < function.instructions.size(); ++i) {
    ast::Instruction& instruction = function.instructions[i];
    const int scope = instruction_scopes_[i];
    if (instruction.opcode.empty()) rename(instruction.label, scope);
    for (std::size_t k = 0; k < instruction.operand_count; ++k) {
      ast::Operand& operand = function.operands[instruction.first_operand + k];
      if (operand.kind == ast::Operand::Kind::kSymbol) rename(operand.name, scope);
    }
  }
  for (std::size_t i = 0; i < function.branch_tables.size(); ++i) {
    ast::BranchTable& table = function.branch_tables[i];
    rename(table.name, table_scopes_[i]);
    for (std::string_view& label : table.labels) rename(label, table_scopes_[i]);
  }
  return true;
}

}  // namespace softgpu::ptx
