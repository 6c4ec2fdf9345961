// One look at all items, before the first is written, as a branch may name a table or a label that stands further down.
#include "gpu/fence/function_facts.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace fairlead::fence {
namespace {

void mention(const std::vector<Operand>& operands, std::vector<bool>& mentioned) {
  for (const Operand& operand : operands) {
    if (operand.variable >= 0) mentioned[static_cast<std::size_t>(operand.variable)] = true;
    mention(operand.elements, mentioned);
  }
}

// Registers that hold the address of a .local variable, and nothing else ever, by one definition each.
void find_local_pointers(FunctionFacts& facts) {
  constexpr std::int64_t kFarthestStep = 1 << 24;
  std::vector<int> definitions(facts.function.registers.size());
  for (const Item& item : facts.function.items) {
    for (const int written : registers_written(item.instruction)) ++definitions[static_cast<std::size_t>(written)];
  }
  for (const Item& item : facts.function.items) {
    const Instruction& instruction = item.instruction;
    const bool is_move = instruction.opcode == "mov" && instruction.operands.size() == 2;
    const bool is_sum = instruction.opcode == "add" && instruction.operands.size() == 3 &&
                        instruction.operands[2].kind == Operand::Kind::kNumber;
    if (!(is_move || is_sum) || !instruction.guard.empty() || instruction.operands[0].register_id < 0) continue;
    const auto to = static_cast<std::size_t>(instruction.operands[0].register_id);
    auto place = local_place(facts, instruction.operands[1]);
    if (!place || definitions[to] != 1) continue;
    if (is_sum) {
      const auto change = static_cast<std::int64_t>(instruction.operands[2].bits);
      if (change < 0 || change > kFarthestStep) continue;
      place->offset += instruction.operands[2].negated ? -change : change;
    }
    facts.local_pointers[to] = place;
  }
}

// A register of an inner scope cannot be named at the function's start, and to set it where it is declared would set it
// again whenever the scope is entered. So it becomes one of the function.
void name_anew(FunctionFacts& facts) {
  for (const int id : facts.read_first.registers) {
    if (!facts.function.registers[static_cast<std::size_t>(id)].is_nested) continue;
    facts.new_names[id] = fmt::format("%__fence_r{}", facts.new_names.size());
  }
}

// Once all labels are known.
void look_through(Table& table, const FunctionFacts& facts) {
  const Item& item = *table.item;
  if (item.kind == Item::Kind::kBranchTargets) {
    const auto stray = std::ranges::find_if_not(item.targets, [&](auto name) { return facts.labels.contains(name); });
    if (stray != item.targets.end()) table.stray = *stray;
  } else if (item.kind == Item::Kind::kCallTargets) {
    std::ranges::copy_if(item.targets, std::back_inserter(table.functions),
                         [&](auto name) { return facts.layout.function_ids.contains(name); });
  } else {
    const Signature& prototype = facts.function.prototypes[static_cast<std::size_t>(item.index)];
    const auto found = facts.layout.functions_of_shape.find(shape_of(prototype));
    if (found != facts.layout.functions_of_shape.end()) table.all = &found->second;
  }
}

void apply_names(const FunctionFacts& facts, std::vector<Operand>& operands) {
  const auto apply = [&](int id, std::string_view& name) {
    if (const auto found = facts.new_names.find(id); found != facts.new_names.end()) name = found->second;
  };
  for (Operand& operand : operands) {
    apply(operand.register_id, operand.name);
    apply(operand.second_id, operand.second);
    apply_names(facts, operand.elements);
  }
}

}  // namespace

FunctionFacts facts_of(const Function& function, const Layout& layout, const FenceOptions& options) {
  FunctionFacts facts{.function = function,
                      .layout = layout,
                      .options = options,
                      .addresses = plan_addresses(function, layout, options),
                      .read_first = options.clears_leftovers ? read_before_written(function) : ReadFirst(),
                      .call_parameters = parameters_read_before_written(function),
                      .labels = {},
                      .tables = {},
                      .mentioned = std::vector<bool>(function.variables.size()),
                      .local_pointers = std::vector<std::optional<LocalPlace>>(function.registers.size()),
                      .new_names = {}};
  for (const Item& item : function.items) {
    if (item.kind == Item::Kind::kLabel) facts.labels.insert(item.name);
    if (is_table(item)) facts.tables[item.name] = Table{.item = &item, .stray = {}, .functions = {}};
    mention(item.instruction.operands, facts.mentioned);
  }
  for (auto& [name, table] : facts.tables) look_through(table, facts);
  find_local_pointers(facts);
  name_anew(facts);
  return facts;
}

bool is_table(const Item& item) {
  return item.kind == Item::Kind::kBranchTargets || item.kind == Item::Kind::kCallTargets ||
         item.kind == Item::Kind::kPrototype;
}

Status leads_to_labels(const Table& table) {
  if (table.stray.empty()) return {};
  return fail(Errc::kInvalidArgument, "'{}' is no label of this function", table.stray);
}

unsigned bits_of(const FunctionFacts& facts, const Operand& operand) {
  if (operand.register_id < 0) return 0;
  return facts.function.registers[static_cast<std::size_t>(operand.register_id)].bits;
}

const Variable* variable_of(const FunctionFacts& facts, const Operand& operand) {
  if (operand.variable < 0) return nullptr;
  return &facts.function.variables[static_cast<std::size_t>(operand.variable)];
}

std::optional<LocalPlace> local_place(const FunctionFacts& facts, const Operand& operand) {
  constexpr std::int64_t kFarthest = std::int64_t{1} << 40;
  std::optional<LocalPlace> place;
  const Variable* const variable = variable_of(facts, operand);
  if (operand.register_id >= 0) {
    place = facts.local_pointers[static_cast<std::size_t>(operand.register_id)];
  } else if (variable != nullptr && variable->space == Space::kLocal) {
    place = LocalPlace{operand.variable, 0};
  }
  if (!place || operand.offset < -kFarthest || operand.offset > kFarthest) return std::nullopt;
  place->offset += operand.offset;
  return place;
}

std::uint64_t offset_in_frame(const FunctionFacts& facts, const LocalPlace& place) {
  return facts.layout.frames.at(facts.function.name).offsets.at(place.variable) +
         static_cast<std::uint64_t>(place.offset);
}

std::string_view name_of_register(const FunctionFacts& facts, int id) {
  const auto found = facts.new_names.find(id);
  return found == facts.new_names.end() ? facts.function.registers[static_cast<std::size_t>(id)].name
                                        : std::string_view(found->second);
}

Instruction with_new_names(const FunctionFacts& facts, Instruction instruction) {
  apply_names(facts, instruction.operands);
  const auto guard = facts.new_names.find(instruction.guard_id);
  if (guard != facts.new_names.end()) instruction.guard = guard->second;
  return instruction;
}

}  // namespace fairlead::fence
