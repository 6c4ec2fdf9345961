// The estimate. Of each address register, two sums: what its definitions weigh, and what its uses weigh, where uses in one
// region share a fence until the register is written again. The smaller sum wins.
//
//   add.u64 %rd5, %rd4, 8;                  weighs 1
//   L: ld.global.f32 %f1, [%rd5];           weighs 8, as it is in a loop
//   ld.global.f32 %f2, [%rd5+4];            nothing: it shares the fence of the line before
//   @%p bra L;                              1 < 8: fenced behind the definition, once
//
// A loop is taken for what lies between a label and a later branch to it. That is wrong where code was moved about, and costs
// instructions there, never safety: a fence stands in front of every use on either plan, and the verifier asks for no more.
#include "gpu/fence/address_plan.h"

#include <algorithm>
#include <map>

#include "gpu/fence/instruction_set.h"

namespace fairlead::fence {
namespace {

// What one access may take behind its address: the widest vector has 32 bytes, a line of a cache that is fetched ahead 256.
constexpr std::int64_t kWidestAccess = 256;
constexpr std::uint64_t kLoopWeight = 8;
// Beyond this depth weights would overflow, and the comparison has long been decided.
constexpr int kDeepestLoop = 8;

// How often an item runs, by the loops around it: a loop is what lies between a label and a later branch to it.
std::vector<std::uint64_t> weights_of(const Function& function) {
  std::map<std::string_view, std::size_t> labels;
  // Where loops begin and end, as a difference at each item: linear, however many loops a label heads.
  std::vector<int> change(function.items.size() + 1);
  for (std::size_t i = 0; i < function.items.size(); ++i) {
    const Item& item = function.items[i];
    if (item.kind == Item::Kind::kLabel) labels.try_emplace(item.name, i);
    if (item.instruction.opcode != "bra" || item.instruction.operands.empty()) continue;
    const auto label = labels.find(item.instruction.operands[0].name);
    if (label == labels.end()) continue;
    ++change[label->second];
    --change[i + 1];
  }
  std::vector<std::uint64_t> weights(function.items.size(), 1);
  int depth = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    depth += change[i];
    for (int loop = 0; loop < std::min(depth, kDeepestLoop); ++loop) weights[i] *= kLoopWeight;
  }
  return weights;
}

struct RegisterUse {
  std::uint64_t definition_cost = 0, use_cost = 0;
  int fenced_in = -1;              // region in which its companion is up to date, if it is fenced at its uses
  int defined_in = -1;             // region of the latest definition
  bool is_used_elsewhere = false;  // in a region, or before the definition in its region
};

}  // namespace

bool is_within_guard(std::int64_t offset, const FenceOptions& options) {
  const auto guard = static_cast<std::int64_t>(options.guard_bytes);
  return offset == 0 || (offset >= -guard && offset <= guard - kWidestAccess);
}

int companion_base(const Instruction& instruction, const Function& function, const FenceOptions& options,
                   bool consts_are_placed) {
  const Family family = knowledge_of(instruction).family;
  const Space space = space_of(instruction);
  const bool is_global = space == Space::kGlobal || (space == Space::kConst && consts_are_placed);
  const bool is_fenced = (family == Family::kAccess && is_global) || family == Family::kAsyncCopy ||
                         (family == Family::kHint && (is_global || space == Space::kGeneric));
  if (!is_fenced) return -1;
  const Operand* address = nullptr;
  for (const Operand& operand : instruction.operands) {
    if (operand.kind == Operand::Kind::kAddress) address = &operand;  // of a copy the second
  }
  // Addresses of 32 bits, and offsets that leave the guard zone, are summed first, in a scratch register.
  if (address == nullptr || address->register_id < 0 || !is_within_guard(address->offset, options)) return -1;
  return function.registers[static_cast<std::size_t>(address->register_id)].bits == 64 ? address->register_id : -1;
}

// Conservative: an instruction that is not known to leave its first operand alone writes it. A fence too many costs an
// instruction, one too few would leave a companion behind its register; not unsafe, but the kernel would read the wrong place.
std::vector<int> registers_written(const Instruction& instruction) {
  std::vector<int> written;
  if (instruction.operands.empty() || !writes_first_operand(instruction)) return written;
  const Operand& first = instruction.operands[0];
  if (first.kind == Operand::Kind::kName && first.register_id >= 0) written.push_back(first.register_id);
  if (first.kind != Operand::Kind::kList) return written;
  for (const Operand& element : first.elements) {
    if (element.register_id >= 0) written.push_back(element.register_id);
  }
  return written;
}

AddressPlan plan_addresses(const Function& function, const Layout& layout, const FenceOptions& options) {
  AddressPlan plan;
  plan.where.resize(function.registers.size(), AddressPlan::Where::kNowhere);
  plan.needs_start.resize(function.registers.size());
  const std::vector<std::uint64_t> weights = weights_of(function);
  std::vector<RegisterUse> uses(function.registers.size());
  int region = 0;
  for (std::size_t i = 0; i < function.items.size(); ++i) {
    const Item& item = function.items[i];
    // A label may be reached from anywhere, and an indirect call becomes a choice with labels of its own: behind either, what was
    // fenced before is forgotten.
    if (item.kind == Item::Kind::kLabel || is_indirect_call(item.instruction)) ++region;
    plan.regions.push_back(region);
    if (item.kind != Item::Kind::kInstruction) continue;
    const int base = companion_base(item.instruction, function, options, layout.consts_are_placed);
    if (base >= 0) {
      RegisterUse& use = uses[static_cast<std::size_t>(base)];
      if (use.fenced_in != region) use.use_cost += weights[i];
      use.fenced_in = region;
      use.is_used_elsewhere |= use.defined_in != region;
    }
    for (const int written : registers_written(item.instruction)) {
      RegisterUse& use = uses[static_cast<std::size_t>(written)];
      use.definition_cost += weights[i];
      use.fenced_in = -1;
      use.defined_in = region;
    }
  }
  for (std::size_t i = 0; i < uses.size(); ++i) {
    if (uses[i].use_cost == 0) continue;
    const std::uint64_t definition_cost = uses[i].definition_cost + (uses[i].is_used_elsewhere ? 1 : 0);
    const bool at_definition = definition_cost < uses[i].use_cost;
    plan.where[i] = at_definition ? AddressPlan::Where::kAtDefinition : AddressPlan::Where::kAtUse;
    plan.needs_start[i] = at_definition && uses[i].is_used_elsewhere;
  }
  return plan;
}

}  // namespace fairlead::fence
