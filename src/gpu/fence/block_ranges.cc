// The tree of the fence's parser is printed once more for each twin, with two names replaced. What is not understood makes the kernel
// whole, never the module wrong.
#include "gpu/fence/block_ranges.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "gpu/fence/instruction_set.h"
#include "gpu/fence/ptx.h"

namespace fairlead::fence {
namespace {

constexpr std::string_view kMark = "__cut_";         // in every name that is made here, and in none of a source
constexpr std::uint64_t kMostParameterBytes = 4096;  // of an entry, on every device

bool is_block_register(std::string_view name) {
  return name == "%ctaid" || name == "%nctaid";
}

// Registers that tell one launch from another, or name blocks that are on the device together.
bool is_of_launch(std::string_view name) {
  const auto begins = [name](std::string_view with) { return name.substr(0, with.size()) == with; };
  return begins("%cluster") || begins("%ncluster") || begins("%is_explicit_cluster") || begins("%envreg") ||
         begins("%gridid");
}

bool any_operand(const std::vector<Operand>& operands, const auto& is) {
  return std::ranges::any_of(
      operands, [&is](const Operand& operand) { return is(operand) || any_operand(operand.elements, is); });
}

bool reads_blocks(const Instruction& instruction) {
  return any_operand(instruction.operands, [](const Operand& operand) { return is_block_register(operand.name); });
}

// `mov.u32 %r1, %ctaid.x` and `cvt.u64.u32 %rd1, %ctaid.x`: the only ones that compilers write.
bool is_plain_read(const Instruction& instruction) {
  const bool reads = instruction.opcode == "mov" || instruction.opcode == "cvt";
  if (!reads || instruction.operands.size() != 2 || instruction.modifiers.empty()) return false;
  const std::string_view type = instruction.modifiers.back();
  const Operand& from = instruction.operands[1];
  const bool is_one = from.suffix == ".x" || from.suffix == ".y" || from.suffix == ".z";
  return (type == ".u32" || type == ".b32" || type == ".s32") && is_block_register(from.name) && is_one &&
         !from.negated && !is_block_register(instruction.operands[0].name);
}

// What keeps a block from being launched without its neighbours, wherever it stands.
std::optional<std::string> needs_neighbours(const Instruction& instruction) {
  const bool is_of_cluster = std::ranges::any_of(instruction.modifiers, [](std::string_view modifier) {
    return modifier.find("cluster") != std::string_view::npos;
  });
  if (is_of_cluster || instruction.opcode == "mapa" || instruction.opcode == "getctarank") {
    return "its blocks are of clusters";
  }
  if (instruction.opcode == "griddepcontrol") return "it waits for another launch";
  if (any_operand(instruction.operands, [](const Operand& operand) { return is_of_launch(operand.name); })) {
    return "it reads what tells launches, clusters or a grid that synchronises";
  }
  return std::nullopt;
}

// What a loop that waits for another block has in it.
bool may_watch(const Instruction& instruction) {
  const auto has = [&](std::initializer_list<std::string_view> words) {
    return std::ranges::any_of(words, [&](std::string_view word) { return has_modifier(instruction, word); });
  };
  if (instruction.opcode == "nanosleep") return true;
  if (instruction.opcode == "membar") return !has({".cta"});
  if (instruction.opcode == "fence") return !has({".cta"});
  const Space space = space_of(instruction);
  if (space != Space::kGlobal && space != Space::kGeneric) return false;
  if (instruction.opcode == "ld") return has({".volatile", ".relaxed", ".acquire", ".mmio", ".cv", ".cg"});
  const bool returns = !instruction.operands.empty() && instruction.operands[0].name != "_";
  return instruction.opcode == "atom" && returns;
}

// For each item whether it is between a label and a branch back to it.
std::vector<bool> in_loops(const Function& function) {
  std::map<std::string_view, std::size_t> labels;
  std::vector<int> begins(function.items.size() + 1, 0);
  std::map<std::string_view, const Item*> tables;
  for (std::size_t i = 0; i < function.items.size(); ++i) {
    const Item& item = function.items[i];
    if (item.kind == Item::Kind::kLabel) labels[item.name] = i;
    if (item.kind == Item::Kind::kBranchTargets) tables[item.name] = &item;
  }
  const auto jump = [&](std::size_t from, std::string_view to) {
    const auto label = labels.find(to);
    if (label == labels.end() || label->second > from) return;
    ++begins[label->second], --begins[from + 1];
  };
  for (std::size_t i = 0; i < function.items.size(); ++i) {
    const Instruction& instruction = function.items[i].instruction;
    if (instruction.opcode == "bra" && !instruction.operands.empty()) jump(i, instruction.operands[0].name);
    if (instruction.opcode != "brx" || instruction.operands.size() < 2) continue;
    const auto table = tables.find(instruction.operands[1].name);
    if (table == tables.end()) continue;
    for (const std::string_view target : table->second->targets) jump(i, target);
  }
  std::vector<bool> in(function.items.size());
  int depth = 0;
  for (std::size_t i = 0; i < in.size(); ++i) in[i] = (depth += begins[i]) > 0;
  return in;
}

class TwinMaker {
 public:
  explicit TwinMaker(const Module& module) : module_(module) {
    for (const Function& function : module.functions) {
      const Function*& known = functions_[function.name];
      if (known == nullptr || function.has_body) known = &function;
    }
    for (const Alias& alias : module.aliases) {
      if (const auto target = functions_.find(alias.target); target != functions_.end()) {
        functions_[alias.name] = target->second;
      }
    }
  }

  // Why there is none, or the text.
  Result<std::string> twin(std::string_view kernel) const {
    const auto found = functions_.find(kernel);
    if (found == functions_.end() || !found->second->is_entry || !found->second->has_body) {
      return fail(Errc::kNotFound, "it is no entry of the module");
    }
    if (const auto why = why_whole(*found->second)) return fail(Errc::kInvalidArgument, "{}", *why);
    return written(*found->second);
  }

 private:
  std::optional<std::string> why_whole(const Function& entry) const {
    if (entry.directives.find("cluster") != std::string::npos) return "its blocks are of clusters";
    if (parameter_bytes(entry) + sizeof(RangeWords) > kMostParameterBytes)
      return "it has no room for one parameter more";
    if (has_variables_of_its_own(entry)) return "it declares variables that its twin would have again";
    const std::vector<bool> loops = in_loops(entry);
    std::set<const Function*> callees;
    for (std::size_t i = 0; i < entry.items.size(); ++i) {
      const Item& item = entry.items[i];
      if (item.kind == Item::Kind::kCallTargets || item.kind == Item::Kind::kPrototype) return kIndirect;
      if (item.kind != Item::Kind::kInstruction) continue;
      if (auto why = needs_neighbours(item.instruction)) return why;
      if (reads_blocks(item.instruction) && !is_plain_read(item.instruction)) {
        return fmt::format("line {}: it reads its block's place in a way that is not known", item.line);
      }
      if (loops[i] && may_watch(item.instruction)) {
        return fmt::format("line {}: '{}' in a loop may wait for another block", item.line, item.instruction.opcode);
      }
      if (auto why = add_callee(item.instruction, callees)) return why;
    }
    return why_callees(callees);
  }

  // In no order. What a function watches may be in a caller's loop, and its place it is not told.
  std::optional<std::string> why_callees(std::set<const Function*> callees) const {
    std::vector<const Function*> left(callees.begin(), callees.end());
    while (!left.empty()) {
      const Function& function = *left.back();
      left.pop_back();
      for (const Item& item : function.items) {
        if (item.kind == Item::Kind::kCallTargets || item.kind == Item::Kind::kPrototype) return kIndirect;
        if (item.kind != Item::Kind::kInstruction) continue;
        if (auto why = needs_neighbours(item.instruction)) return why;
        if (reads_blocks(item.instruction)) {
          return fmt::format("the function '{}', which it calls, reads its block's place", function.name);
        }
        if (may_watch(item.instruction)) {
          return fmt::format("the function '{}', which it calls, may wait for another block", function.name);
        }
        std::set<const Function*> more;
        if (auto why = add_callee(item.instruction, more)) return why;
        for (const Function* const callee : more) {
          if (callees.insert(callee).second) left.push_back(callee);
        }
      }
    }
    return std::nullopt;
  }

  std::optional<std::string> add_callee(const Instruction& instruction, std::set<const Function*>& to) const {
    if (instruction.opcode != "call") return std::nullopt;
    for (const Operand& operand : instruction.operands) {
      if (operand.kind != Operand::Kind::kName) continue;
      if (operand.register_id >= 0) return kIndirect;
      const auto callee = functions_.find(operand.name);
      if (callee == functions_.end()) return kIndirect;
      to.insert(callee->second);
      return std::nullopt;
    }
    return kIndirect;
  }

  static std::uint64_t parameter_bytes(const Function& entry) {
    std::uint64_t bytes = 0;
    for (const Variable& parameter : entry.signature.parameters) {
      bytes = (bytes + parameter.alignment - 1) / parameter.alignment * parameter.alignment + parameter.bytes;
    }
    return bytes;
  }

  // The parser keeps them with the module's.
  bool has_variables_of_its_own(const Function& entry) const {
    const int last = entry.items.empty() ? entry.line : entry.items.back().line;
    return std::ranges::any_of(module_.variables, [&](const Variable& variable) {
      return variable.space != Space::kShared && variable.line >= entry.line && variable.line <= last;
    });
  }

  static std::string written(const Function& entry) {
    std::string text = entry.linkage.empty() ? "" : std::string(entry.linkage) + " ";
    text += ".entry " + text_of(entry.signature, twin_of(entry.name));
    text.pop_back();
    text += entry.signature.parameters.empty() ? "" : ", ";
    text += ".param .align 4 .b8 __cut_range[24])" + entry.directives + "\n{\n";
    text += kPlaces;
    for (const Item& item : entry.items) text += written(entry, item) + "\n";
    return text + "}\n";
  }

  static std::string written(const Function& entry, const Item& item) {
    switch (item.kind) {
      case Item::Kind::kOpen: return "{";
      case Item::Kind::kClose: return "}";
      case Item::Kind::kText:
      case Item::Kind::kRegisters: return item.text;
      case Item::Kind::kLabel: return std::string(item.name) + ":";
      case Item::Kind::kVariable: return text_of(entry.variables[static_cast<std::size_t>(item.index)]) + ";";
      case Item::Kind::kInstruction: return written(item.instruction);
      case Item::Kind::kCallTargets:
      case Item::Kind::kPrototype:
      case Item::Kind::kBranchTargets: break;
    }
    std::string targets;
    for (const std::string_view target : item.targets) targets.append(targets.empty() ? "" : ", ").append(target);
    return fmt::format("{}: .branchtargets {};", item.name, targets);
  }

  static std::string written(const Instruction& instruction) {
    if (!reads_blocks(instruction)) return text_of(instruction);
    Instruction other = instruction;
    Operand& from = other.operands[1];
    const std::string name = fmt::format("%__cut_{}{}", from.name == "%nctaid" ? "n" : "", from.suffix[1]);
    from.name = name, from.suffix = {};
    return text_of(other);
  }

  static constexpr const char* kIndirect = "it calls a function through an address, or one that is not in the module";
  static constexpr std::string_view kPlaces =
      ".reg .b32 %__cut_x, %__cut_y, %__cut_z, %__cut_nx, %__cut_ny, %__cut_nz, %__cut_at, %__cut_from;\n"
      "ld.param.u32 %__cut_nx, [__cut_range+12];\n"
      "ld.param.u32 %__cut_ny, [__cut_range+16];\n"
      "ld.param.u32 %__cut_nz, [__cut_range+20];\n"
      "mov.u32 %__cut_at, %ctaid.x;\n"
      "ld.param.u32 %__cut_from, [__cut_range+0];\n"
      "add.u32 %__cut_at, %__cut_at, %__cut_from;\n"
      "rem.u32 %__cut_x, %__cut_at, %__cut_nx;\n"
      "div.u32 %__cut_at, %__cut_at, %__cut_nx;\n"
      "ld.param.u32 %__cut_from, [__cut_range+4];\n"
      "add.u32 %__cut_at, %__cut_at, %__cut_from;\n"
      "rem.u32 %__cut_y, %__cut_at, %__cut_ny;\n"
      "div.u32 %__cut_at, %__cut_at, %__cut_ny;\n"
      "ld.param.u32 %__cut_from, [__cut_range+8];\n"
      "add.u32 %__cut_z, %__cut_at, %__cut_from;\n";

  const Module& module_;
  std::map<std::string_view, const Function*> functions_;
};

}  // namespace

bool RangedModule::has_twins() const {
  return std::ranges::any_of(kernels, [](const RangedKernel& kernel) { return kernel.why_whole.empty(); });
}

std::string twin_of(std::string_view kernel) {
  return std::string(kernel) + std::string(kMark) + "blocks";
}

RangeWords range_words(const std::array<std::uint32_t, 3>& grid, std::uint64_t first) {
  const std::uint64_t rows = first / grid[0];
  return {.first = {static_cast<std::uint32_t>(first % grid[0]), static_cast<std::uint32_t>(rows % grid[1]),
                    static_cast<std::uint32_t>(rows / grid[1])},
          .grid = grid};
}

Result<RangedModule> add_ranges(std::string_view ptx, std::span<const std::string> kernels) {
  ptx = ptx.substr(0, ptx.find('\0'));
  if (ptx.find(kMark) != std::string_view::npos) {
    return fail(Errc::kInvalidArgument, "its text has '{}' in it, which is for names of ranges", kMark);
  }
  const Result<Module> module = parse_ptx(ptx);
  if (!module) return fail(module.error());
  const TwinMaker maker(*module);
  RangedModule ranged{.ptx = std::string(ptx) + "\n", .kernels = {}};
  ranged.has_variables =
      std::ranges::any_of(module->variables, [](const Variable& variable) { return variable.space == Space::kGlobal; });
  std::set<std::string_view> made;
  for (const std::string& kernel : kernels) {
    auto twin = maker.twin(kernel);
    ranged.kernels.push_back({.name = kernel, .why_whole = twin ? "" : twin.error().message});
    if (twin && made.insert(kernel).second) ranged.ptx += *twin;
  }
  return ranged;
}

}  // namespace fairlead::fence
