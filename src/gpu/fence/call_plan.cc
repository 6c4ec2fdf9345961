// Operands of a call are parameters of the caller's body by their names, registers or numbers; nothing of them may be an address.
#include "gpu/fence/call_plan.h"

#include <vector>

#include "gpu/fence/plain_operands.h"

namespace fairlead::fence {
namespace {

tl::unexpected<Error> refuse(std::string_view reason) {
  return fail(Errc::kInvalidArgument, "{}", reason);
}

Status check_operands(const CallParts& parts, const FunctionFacts& facts) {
  for (const Operand* list : {parts.results, parts.arguments}) {
    if (list == nullptr) continue;
    for (const Operand& operand : list->elements) {
      const Variable* const variable = variable_of(facts, operand);
      const bool is_parameter = variable != nullptr && !operand.has_offset && variable->space == Space::kParam;
      if (is_parameter) continue;
      if (Status plain = is_plain(operand); !plain) return plain;
    }
  }
  return {};
}

// What is handed over has the size of what it is taken for: behind its end lies what other calls have left.
Status fits(const Operand* given, const std::vector<Variable>& wanted, const FunctionFacts& facts) {
  const std::size_t count = given == nullptr ? 0 : given->elements.size();
  if (count != wanted.size()) {
    return fail(Errc::kInvalidArgument, "{} parameters or results for {}", count, wanted.size());
  }
  for (std::size_t i = 0; i < count; ++i) {
    const Operand& operand = given->elements[i];
    const Variable* const variable = variable_of(facts, operand);
    if (variable == nullptr && operand.register_id < 0) continue;
    const std::uint64_t bytes = variable != nullptr ? variable->bytes : bits_of(facts, operand) / 8;
    if (bytes == wanted[i].bytes) continue;
    return fail(Errc::kInvalidArgument, "'{}' has {} bytes, '{}' has {}", operand.name, bytes, wanted[i].name,
                wanted[i].bytes);
  }
  return {};
}

Result<InstructionPlan> plan_direct(const CallParts& parts, const FunctionFacts& facts) {
  const Function* const callee = facts.layout.function(parts.target->name);
  if (callee == nullptr || callee->is_entry) return refuse("its target is no function of this module");
  const bool is_known = callee->has_body || callee->name == "vprintf" || callee->name == "__assertfail";
  if (!is_known) {
    return refuse(
        "its target is outside the module, where nothing is fenced; link it in, and take memory from a buffer "
        "of the task instead of malloc");
  }
  if (Status fitting = fits(parts, *callee, facts); !fitting) return fail(std::move(fitting.error()));
  return InstructionPlan(DirectCall{parts, callee});
}

Result<InstructionPlan> plan_indirect(const CallParts& parts, const FunctionFacts& facts) {
  const auto table = facts.tables.find(parts.prototype);
  if (table == facts.tables.end() || table->second.item->kind == Item::Kind::kBranchTargets) {
    return refuse("it states neither .callprototype nor .calltargets");
  }
  if (bits_of(facts, *parts.target) != 64) return refuse("its target is no register of 64 bits");
  return InstructionPlan(IndirectCall{parts, &table->second});
}

}  // namespace

Status fits(const CallParts& parts, const Function& callee, const FunctionFacts& facts) {
  Status results = fits(parts.results, callee.signature.results, facts);
  return results ? fits(parts.arguments, callee.signature.parameters, facts) : results;
}

Result<InstructionPlan> plan_call(const Instruction& instruction, const FunctionFacts& facts) {
  const CallParts parts = call_parts(instruction);
  if (parts.target == nullptr || parts.target->kind != Operand::Kind::kName) return refuse("it names no function");
  if (Status plain = check_operands(parts, facts); !plain) return fail(std::move(plain.error()));
  return parts.target->register_id >= 0 ? plan_indirect(parts, facts) : plan_direct(parts, facts);
}

}  // namespace fairlead::fence
