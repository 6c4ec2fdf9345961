#include "softgpu/ptx/decode/code_writer.h"

#include <algorithm>
#include <utility>

namespace softgpu::ptx {
namespace {

// Targets are indices until the instructions have their final addresses.
const Instruction* as_target(std::size_t index) {
  return reinterpret_cast<const Instruction*>(index);
}
std::size_t as_index(const Instruction* target) {
  return reinterpret_cast<std::size_t>(target);
}

}  // namespace

Instruction& CodeWriter::emit(Handler handler) {
  if (handler == nullptr) text_.refuse("this combination of types is not supported");
  Instruction& instruction = code_.instructions.emplace_back();
  instruction.run = handler;
  instruction.line = text_.line();
  return instruction;
}

Instruction& CodeWriter::emit_memory(Handler handler) {
  Instruction& instruction = emit(handler);
  instruction.slot = program_.cache_slots++;
  return instruction;
}

void CodeWriter::emit_resize(std::int32_t to, std::size_t to_bytes, std::int32_t from, std::size_t from_bytes,
                             bool sign) {
  Instruction& instruction = emit(isa_.resize(to_bytes, from_bytes, sign));
  instruction.dst = to;
  instruction.a = from;
}

void CodeWriter::branch_to(std::string_view label) {
  fixups_.push_back({position() - 1, label});
}

void CodeWriter::branch_here(std::size_t from) {
  code_.instructions[from].target = as_target(position());
}

BranchTargets* CodeWriter::branch_table(std::string_view name) {
  BranchTargets* table = program_.branch_targets.emplace_back(std::make_unique<BranchTargets>()).get();
  table_fixups_.push_back({table, name, text_.line()});
  return table;
}

// A branch jumps behind the label's handler and checks for waiting lanes itself.
void CodeWriter::place_label(std::string_view name) {
  emit(isa_.label).counted = 0;
  if (labels_.emplace(name, position()).second) return;
  text_.fail({LoadError::Kind::kSyntax, 0, "label '" + std::string(name) + "' is defined twice"});
}

bool CodeWriter::resolve() {
  if (!resolve_branches()) return false;
  return std::all_of(table_fixups_.begin(), table_fixups_.end(),
                     [this](const TableFixup& fixup) { return resolve_table(fixup); });
}

bool CodeWriter::resolve_branches() {
  for (const Fixup& fixup : fixups_) {
    const auto label = labels_.find(fixup.label);
    Instruction& branch = code_.instructions[fixup.instruction];
    if (label == labels_.end()) {
      text_.fail(
          {LoadError::Kind::kUnresolvedSymbol, branch.line,
           "branch to label '" + std::string(fixup.label) + "', which function '" + code_.name + "' does not define"});
      return false;
    }
    branch.target = as_target(label->second);
  }
  for (Instruction& instruction : code_.instructions) {
    if (instruction.target != nullptr) instruction.target = code_.instructions.data() + as_index(instruction.target);
  }
  return true;
}

bool CodeWriter::resolve_table(const TableFixup& fixup) {
  const auto& tables = function_.branch_tables;
  const auto table = std::find_if(tables.begin(), tables.end(), [&](const auto& t) { return t.name == fixup.name; });
  bool found = table != tables.end();
  for (std::size_t i = 0; found && i < table->labels.size(); ++i) {
    const auto label = labels_.find(table->labels[i]);
    found = label != labels_.end();
    if (found) fixup.table->targets.push_back(code_.instructions.data() + label->second);
  }
  if (found) return true;
  text_.fail({LoadError::Kind::kUnresolvedSymbol, fixup.line,
              "branch table '" + std::string(fixup.name) + "' or one of its labels is not defined"});
  return false;
}

const RowList* CodeWriter::keep(RowList list) {
  return program_.row_lists.emplace_back(std::make_unique<RowList>(std::move(list))).get();
}

const CallSite* CodeWriter::keep(CallSite site) {
  return program_.call_sites.emplace_back(std::make_unique<CallSite>(std::move(site))).get();
}

}  // namespace softgpu::ptx
