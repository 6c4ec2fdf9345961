// The rules of what touches no memory but may lead there: where kernels get addresses from (mov, cvta), where they go on
// (branches and their tables), and what other lanes tell them. By family, as instruction_set.h sorts them.
#include "gpu/fence/instruction_plan.h"

#include <fmt/format.h>

#include "gpu/fence/call_plan.h"
#include "gpu/fence/instruction_set.h"
#include "gpu/fence/memory_plan.h"
#include "gpu/fence/plain_operands.h"

namespace fairlead::fence {
namespace {

tl::unexpected<Error> refuse(std::string_view reason) {
  return fail(Errc::kInvalidArgument, "{}", reason);
}

Result<InstructionPlan> as_written_if(Status status) {
  if (!status) return fail(std::move(status.error()));
  return InstructionPlan(AsWritten{});
}

Result<SymbolAddress> frame_address(const LocalPlace& place, unsigned bits, const FunctionFacts& facts) {
  if (bits != 64 && bits != 32) return refuse("an address goes to a register of 32 or 64 bits");
  return SymbolAddress{SymbolAddress::Kind::kFrame, offset_in_frame(facts, place)};
}

// Variables of the body that have an address in the fenced module.
Status check_own_variable(const Operand& symbol, const FunctionFacts& facts) {
  const Space space = variable_of(facts, symbol)->space;
  const bool is_parameter_of_entry = space == Space::kParam && facts.function.is_entry &&
                                     symbol.variable < static_cast<int>(facts.function.signature.parameters.size());
  if (space == Space::kShared || is_parameter_of_entry) return {};
  return refuse("the address of a parameter of a device function is on the stack; copy the parameter");
}

Result<SymbolAddress> number_of(const Operand& symbol, unsigned bits, const FunctionFacts& facts) {
  const auto place = facts.layout.placed.find(symbol.name);
  const auto id = facts.layout.function_ids.find(symbol.name);
  std::uint64_t value = 0;
  if (place != facts.layout.placed.end()) {
    value = place->second.address + static_cast<std::uint64_t>(symbol.offset);
  } else if (id != facts.layout.function_ids.end() && !symbol.has_offset) {
    value = id->second;
  } else {
    return refuse(fmt::format("'{}' is no variable and no function with a body", symbol.name));
  }
  if (bits != 64) return refuse("an address goes to a register of 64 bits");
  return SymbolAddress{SymbolAddress::Kind::kNumber, value};
}

// `bits` of the register that is given it.
Result<SymbolAddress> address_of(const Operand& symbol, unsigned bits, const FunctionFacts& facts) {
  if (const auto place = local_place(facts, symbol)) return frame_address(*place, bits, facts);
  if (symbol.variable >= 0) {
    if (const Status known = check_own_variable(symbol, facts); !known) return fail(known.error());
    return SymbolAddress{SymbolAddress::Kind::kSymbol};
  }
  if (facts.layout.kept.contains(symbol.name)) return SymbolAddress{SymbolAddress::Kind::kSymbol};
  return number_of(symbol, bits, facts);
}

// A mov of registers passes; one that takes an address is where kernels get addresses from, so that each kind has its rule.
Result<InstructionPlan> plan_move(const Instruction& instruction, const FunctionFacts& facts) {
  const std::vector<Operand>& operands = instruction.operands;
  const bool is_symbol = operands.size() == 2 && operands[1].kind == Operand::Kind::kName &&
                         operands[1].register_id < 0 && !operands[1].name.starts_with("%") &&
                         operands[1].name != "WARP_SZ";
  if (!is_symbol) return as_written_if(are_plain(operands));
  if (operands[0].kind != Operand::Kind::kName || operands[0].register_id < 0) {
    return refuse("an address goes to one register");
  }
  const unsigned bits = bits_of(facts, operands[0]);
  auto address = address_of(operands[1], bits, facts);
  if (!address) return fail(std::move(address.error()));
  return InstructionPlan(SymbolMove{bits, *address});
}

// Global and generic addresses of one place are the same number: a cvta changes nothing between global and generic. Of shared
// and local memory it adds where their windows begin.
Result<InstructionPlan> plan_conversion(const Instruction& instruction, const FunctionFacts& facts) {
  const Space space = space_of(instruction);
  if (instruction.operands.size() != 2) return refuse("it takes two operands");
  if (space == Space::kParam) return refuse("parameters have no generic address that a fence lets through");
  if (has_modifier(instruction, ".shared::cluster")) {
    return refuse("generic addresses of other blocks look like global ones");
  }
  const Operand& from = instruction.operands[1];
  if (from.kind == Operand::Kind::kName && from.register_id < 0 && instruction.operands[0].register_id >= 0) {
    auto address = address_of(from, 64, facts);
    if (!address) return fail(std::move(address.error()));
    return InstructionPlan(SymbolConversion{*address, space == Space::kGlobal || space == Space::kConst});
  }
  if (Status plain = are_plain(instruction.operands); !plain) return fail(std::move(plain.error()));
  return space == Space::kConst ? InstructionPlan(AddressCopy{}) : InstructionPlan(AsWritten{});
}

// To a label of this function and nowhere else: the name of a function would be taken for code without its prologue.
Result<InstructionPlan> plan_branch(const Instruction& instruction, const FunctionFacts& facts) {
  if (instruction.operands.size() != 1 || !facts.labels.contains(instruction.operands[0].name)) {
    return refuse("its target is no label of this function");
  }
  return InstructionPlan(AsWritten{});
}

Result<InstructionPlan> plan_table_branch(const Instruction& instruction, const FunctionFacts& facts) {
  const bool names_table = instruction.operands.size() == 2;
  const auto table = names_table ? facts.tables.find(instruction.operands[1].name) : facts.tables.end();
  if (table == facts.tables.end() || table->second.item->kind != Item::Kind::kBranchTargets) {
    return refuse("its targets are no .branchtargets of this function");
  }
  if (const Status labels = leads_to_labels(table->second); !labels) return fail(labels.error());
  if (bits_of(facts, instruction.operands[0]) != 32) return refuse("its index is no register of 32 bits");
  return InstructionPlan(TableBranch{table->second.item->targets.size()});
}

Result<Shuffle::Source> source_of(const Instruction& shuffle) {
  if (has_modifier(shuffle, ".idx")) {
    const Operand& segment = shuffle.operands[3];
    const bool is_whole_warp = segment.kind == Operand::Kind::kNumber && (segment.bits >> 8 & 31) == 0;
    return is_whole_warp ? Shuffle::Source::kIndex : Shuffle::Source::kIndexInSegment;
  }
  if (has_modifier(shuffle, ".up")) return Shuffle::Source::kUp;
  if (has_modifier(shuffle, ".down")) return Shuffle::Source::kDown;
  if (has_modifier(shuffle, ".bfly")) return Shuffle::Source::kButterfly;
  return refuse("its direction is not known to the fence");
}

Result<InstructionPlan> plan_shuffle(const Instruction& instruction, const FunctionFacts& facts) {
  const std::vector<Operand>& operands = instruction.operands;
  if (!facts.options.clears_leftovers) return as_written_if(are_plain(operands));
  const bool is_sync = has_modifier(instruction, ".sync");
  if (operands.size() != (is_sync ? 5u : 4u)) return refuse("it has another number of operands than is known");
  if (Status plain = are_plain(operands); !plain) return fail(std::move(plain.error()));
  const Operand& to = operands[0];
  if (to.negated || (to.register_id < 0 && to.name != "_")) return refuse("its result goes to no register");
  const auto source = source_of(instruction);
  if (!source) return fail(source.error());
  return InstructionPlan(Shuffle{*source, is_sync ? &operands[4] : nullptr});
}

}  // namespace

Result<InstructionPlan> plan_instruction(const Instruction& instruction, const FunctionFacts& facts) {
  const Knowledge known = knowledge_of(instruction);
  switch (known.family) {
    case Family::kRefused: break;
    case Family::kPlain: return as_written_if(are_plain(instruction.operands));
    case Family::kMove: return plan_move(instruction, facts);
    case Family::kConvert: return plan_conversion(instruction, facts);
    case Family::kAccess: return plan_access(instruction, facts);
    case Family::kHint: return plan_hint(instruction, facts);
    case Family::kAsyncCopy: return plan_async_copy(instruction, facts);
    case Family::kSharedOnly: return plan_shared_only(instruction, facts);
    case Family::kMatrix: return plan_matrix(instruction, facts);
    case Family::kShuffle: return plan_shuffle(instruction, facts);
    case Family::kBranch: return plan_branch(instruction, facts);
    case Family::kTable: return plan_table_branch(instruction, facts);
    case Family::kCall: return plan_call(instruction, facts);
  }
  return refuse(known.reason);
}

}  // namespace fairlead::fence
