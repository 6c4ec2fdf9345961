// Names in the nested scopes of a function body: what is declared in a scope is known to its end, and hides what a name
// meant outside.
#include <algorithm>
#include <charconv>
#include <set>
#include <utility>

#include "softgpu/ptx/text/parser_state.h"

namespace softgpu::ptx {
namespace {

constexpr std::size_t kDeepestScope = 1000;

}  // namespace

std::string_view Parser::keep_name(std::string name) {
  return result_.names.emplace_back(std::move(name));
}

void Parser::declare(std::string_view name, LocalName local) {
  local.serial = ++last_serial_;
  const auto [entry, inserted] = locals_.try_emplace(name, local);
  shadowed_.push_back({name, !inserted, inserted ? LocalName{} : entry->second});
  entry->second = local;
}

bool Parser::enter_scope() {
  if (scopes_.size() >= kDeepestScope) return fail("scopes nested more than 1,000 deep");
  scopes_.push_back({static_cast<int>(scope_parents_.size()), shadowed_.size()});
  scope_parents_.push_back(scopes_.size() > 1 ? scopes_[scopes_.size() - 2].id : -1);
  return true;
}

void Parser::leave_scope() {
  while (shadowed_.size() > scopes_.back().mark) {
    const Shadowed& last = shadowed_.back();
    if (last.existed) {
      locals_[last.name] = last.before;
    } else {
      locals_.erase(last.name);
    }
    shadowed_.pop_back();
  }
  scopes_.pop_back();
}

int Parser::add_local_variable(const ast::Variable& variable) {
  function_->variables.push_back(variable);
  return static_cast<int>(function_->variables.size()) - 1;
}

// A variable of the module's spaces in a function: other functions and scopes may have one of the same name, so it is
// known to the module by a name that no text can spell.
void Parser::add_scoped_variable(ast::Variable variable) {
  const std::string_view name = variable.name;
  variable.name = keep_name(std::string(function_->name) + "." + std::string(name) + "." +
                            std::to_string(result_.module.variables.size()));
  LocalName local{LocalName::Kind::kModuleVariable, 0, 1};
  local.module_name = variable.name;
  declare(name, local);
  add_module_variable(std::move(variable));
}

void Parser::add_module_variable(ast::Variable variable) {
  module_variables_[variable.name] = result_.module.variables.size();
  result_.module.variables.push_back(std::move(variable));
}

const ast::Variable* Parser::find_module_variable(std::string_view name) const {
  const auto found = module_variables_.find(name);
  return found == module_variables_.end() ? nullptr : &result_.module.variables[found->second];
}

const LocalName* Parser::find_local(std::string_view name) const {
  const auto entry = locals_.find(name);
  return entry == locals_.end() ? nullptr : &entry->second;
}

// The family that `name` is member `number` of: of %r12 the thirteenth of %r<20>, or the third of %r1<5>.
const LocalName* Parser::find_family(std::string_view name, int& number) const {
  const std::size_t digits = name.find_last_not_of("0123456789") + 1;
  for (std::size_t length = digits; length < name.size(); ++length) {
    if (name[length] == '0' && length + 1 < name.size()) continue;  // %r01 is nobody's member
    const LocalName* family = find_local(name.substr(0, length));
    const auto [end, error] = std::from_chars(name.data() + length, name.data() + name.size(), number);
    if (family == nullptr || family->kind != LocalName::Kind::kFamily || error != std::errc{}) continue;
    if (number < family->count) return family;
  }
  return nullptr;
}

// A register of its own or a member of a family, whichever was declared last, which is in the innermost scope.
bool Parser::find_register(std::string_view name, int& index) const {
  const LocalName* local = find_local(name);
  int number = 0;
  const LocalName* family = find_family(name, number);
  if (family != nullptr && (local == nullptr || family->serial > local->serial)) {
    index = family->index + number;
    return true;
  }
  if (local == nullptr || local->kind != LocalName::Kind::kRegister) return false;
  index = local->index;
  return true;
}

// ---- labels, which may be used before they are defined

void Parser::note_label(std::string_view name, int line) {
  labels_.push_back({name, scopes_.back().id, line});
}

// The scope that `name` means when it is used in `scope`; -1: none defines it.
int Parser::scope_of_label(const LabelNames& names, std::string_view name, int scope) const {
  while (scope >= 0 && !names.contains({name, scope})) scope = scope_parents_[static_cast<std::size_t>(scope)];
  return scope;
}

// Gives labels that several scopes define names of their own.
bool Parser::resolve_labels() {
  std::set<std::string_view> once, repeated;
  for (const Label& label : labels_) {
    if (!once.insert(label.name).second) repeated.insert(label.name);
  }
  if (repeated.empty()) return true;
  LabelNames names;
  for (const Label& label : labels_) {
    if (!repeated.contains(label.name)) continue;
    const auto unique = keep_name(std::string(label.name) + "." + std::to_string(label.scope));
    if (!names.emplace(std::pair(label.name, label.scope), unique).second) {
      return fail_at(label.line, "label '" + std::string(label.name) + "' is defined twice");
    }
  }
  const auto rename = [&](std::string_view& name, int scope) {
    if (!repeated.contains(name)) return;
    const int found = scope_of_label(names, name, scope);
    if (found >= 0) name = names.at({name, found});
  };
  for (std::size_t i = 0; i < function_->instructions.size(); ++i) {
    ast::Instruction& instruction = function_->instructions[i];
    const int scope = instruction_scopes_[i];
    if (instruction.opcode.empty()) rename(instruction.label, scope);
    for (std::size_t k = 0; k < instruction.operand_count; ++k) {
      ast::Operand& operand = function_->operands[instruction.first_operand + k];
      if (operand.kind == ast::Operand::Kind::kSymbol) rename(operand.name, scope);
    }
  }
  for (std::size_t i = 0; i < function_->branch_tables.size(); ++i) {
    ast::BranchTable& table = function_->branch_tables[i];
    rename(table.name, table_scopes_[i]);
    for (std::string_view& label : table.labels) rename(label, table_scopes_[i]);
  }
  return true;
}

}  // namespace softgpu::ptx
