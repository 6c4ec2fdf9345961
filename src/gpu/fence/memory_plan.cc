// Which operand is the address, and what else there may be. How an address of a space is confined is confinement.h's.
#include "gpu/fence/memory_plan.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include <fmt/format.h>

#include "gpu/fence/confinement.h"
#include "gpu/fence/instruction_set.h"
#include "gpu/fence/plain_operands.h"

namespace fairlead::fence {
namespace {

// What rows that lie close together take, and the last row of any.
constexpr std::uint64_t kLargestFragment = 4096;

tl::unexpected<Error> refuse(std::string_view reason) {
  return fail(Errc::kInvalidArgument, "{}", reason);
}

// m16n16k16: the rows of a fragment in memory, which lie a stride apart.
struct Fragment {
  unsigned rows = 0, element_bytes = 0;
};

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

unsigned extent_of(std::string_view shape, char letter) {
  unsigned value = 0;
  const std::size_t at = shape.find(letter);
  if (at != std::string_view::npos) std::from_chars(shape.data() + at + 1, shape.data() + shape.size(), value);
  return value;
}

// No rows: its shape or its type is not known.
Fragment fragment_of(const Instruction& instruction) {
  std::string_view shape;
  char rows = 'm', columns = 'n';
  for (const std::string_view modifier : instruction.modifiers) {
    const bool is_shape = modifier.starts_with(".m") && modifier.size() > 2 && is_digit(modifier[2]);
    if (is_shape && !shape.empty()) return {};
    if (is_shape) shape = modifier.substr(1);
    if (modifier == ".a") columns = 'k';
    if (modifier == ".b") rows = 'k';
  }
  // The type comes last, its bits are its first number: .f16, .tf32, .s8; of .u4 two share a byte.
  const std::string_view type = instruction.modifiers.back();
  unsigned bits = 0;
  const auto digits = std::ranges::find_if(type, is_digit);
  if (digits != type.end()) std::from_chars(&*digits, type.data() + type.size(), bits);
  if (bits == 0 || bits > 64) return {};
  return {extent_of(shape, has_modifier(instruction, ".col") ? columns : rows), std::max(1u, bits / 8)};
}

// An address with coordinates is of a texture, and is none that a space bounds.
bool is_address(const Operand& operand) {
  return operand.kind == Operand::Kind::kAddress && operand.elements.empty();
}

std::size_t addresses_in(const Instruction& instruction) {
  return static_cast<std::size_t>(std::ranges::count_if(instruction.operands, is_address));
}

std::size_t first_address(const Instruction& instruction) {
  return static_cast<std::size_t>(std::ranges::find_if(instruction.operands, is_address) -
                                  instruction.operands.begin());
}

// An instruction with two addresses would be fenced at one of them.
Result<std::size_t> only_address(const Instruction& instruction) {
  if (addresses_in(instruction) != 1) return refuse("it must have one address");
  if (Status plain = are_plain_beside_addresses(instruction.operands); !plain) return fail(std::move(plain.error()));
  return first_address(instruction);
}

Result<InstructionPlan> confined(std::size_t operand, Space space, const Instruction& instruction,
                                 const FunctionFacts& facts) {
  auto confinement = confine(space, instruction.operands[operand], instruction, facts);
  if (!confinement) return fail(std::move(confinement.error()));
  if (!*confinement) return InstructionPlan(AsWritten{});
  return InstructionPlan(Access{.operand = operand, .confinement = **confinement});
}

// In which an address is that names .const: of a module whose constants were placed, among its other variables.
Space space_in_output(const Instruction& instruction, const FunctionFacts& facts) {
  const Space space = space_of(instruction);
  return space == Space::kConst && facts.layout.consts_are_placed ? Space::kGlobal : space;
}

Result<InstructionPlan> plan_in(Space space, std::size_t operand, const Instruction& instruction,
                                const FunctionFacts& facts) {
  auto plan = confined(operand, space, instruction, facts);
  if (!plan) return plan;
  if (Access* const access = std::get_if<Access>(&*plan)) {
    access->const_is_global = space_of(instruction) == Space::kConst;
  }
  return plan;
}

}  // namespace

Result<InstructionPlan> plan_access(const Instruction& instruction, const FunctionFacts& facts) {
  const auto operand = only_address(instruction);
  if (!operand) return fail(operand.error());
  // What memory held before may come to light where zeros are thrown away that are not in memory yet.
  if (instruction.opcode == "discard") return InstructionPlan(LeftOut{});
  return plan_in(space_in_output(instruction, facts), *operand, instruction, facts);
}

// A hint about any generic address is as good about a fenced one.
Result<InstructionPlan> plan_hint(const Instruction& instruction, const FunctionFacts& facts) {
  const auto operand = only_address(instruction);
  if (!operand) return fail(operand.error());
  const Space space = space_in_output(instruction, facts);
  return plan_in(space == Space::kGeneric ? Space::kGlobal : space, *operand, instruction, facts);
}

// The destination is in shared memory, which hardware bounds; the source is an address like any other.
Result<InstructionPlan> plan_async_copy(const Instruction& instruction, const FunctionFacts& facts) {
  if (addresses_in(instruction) != 2) return refuse("it must have two addresses");
  if (Status plain = are_plain_beside_addresses(instruction.operands); !plain) return fail(std::move(plain.error()));
  const std::size_t to = first_address(instruction);
  const Operand& destination = instruction.operands[to];
  const Variable* const variable = variable_of(facts, destination);
  const auto kept = facts.layout.kept.find(destination.name);
  const bool is_shared = destination.register_id >= 0 || (variable != nullptr && variable->space == Space::kShared) ||
                         (kept != facts.layout.kept.end() && kept->second->space == Space::kShared);
  if (!is_shared) return refuse("its destination is not in shared memory");
  const auto from = std::ranges::find_if(instruction.operands.begin() + static_cast<std::ptrdiff_t>(to) + 1,
                                         instruction.operands.end(), is_address);
  return confined(static_cast<std::size_t>(from - instruction.operands.begin()), Space::kGlobal, instruction, facts);
}

// Where no space is named the address is generic, though only shared memory is allowed: it is made one of shared memory.
Result<InstructionPlan> plan_shared_only(const Instruction& instruction, const FunctionFacts& facts) {
  const auto operand = only_address(instruction);
  if (!operand) return fail(operand.error());
  if (space_of(instruction) != Space::kGeneric) {
    return confined(*operand, space_of(instruction), instruction, facts);
  }
  // .shared goes before the last modifier, the type.
  if (instruction.modifiers.empty()) return refuse("it names no type");
  const Operand& address = instruction.operands[*operand];
  const bool is_register = address.register_id >= 0;
  if (is_register) {
    if (const Status summed = can_be_summed(address, facts); !summed) return fail(summed.error());
  } else if (const auto shared = confine(Space::kShared, address, instruction, facts); !shared) {
    return fail(shared.error());
  }
  return InstructionPlan(SharedAccess{*operand, is_register});
}

Result<InstructionPlan> plan_matrix(const Instruction& instruction, const FunctionFacts& facts) {
  if (addresses_in(instruction) != 1 || instruction.operands.size() > 3) {
    return refuse("it must have one address and at most one stride");
  }
  const auto operand = only_address(instruction);
  if (!operand) return fail(operand.error());
  const Space space = space_of(instruction);
  const Fragment fragment = fragment_of(instruction);
  if (fragment.rows < 2 || fragment.rows > 128) return refuse("its shape or its type is not known to the fence");
  if (space == Space::kShared) return confined(*operand, space, instruction, facts);
  if (space != Space::kGlobal) return refuse("write .global or .shared: rows from a generic address may be in both");
  const Operand& address = instruction.operands[*operand];
  if (address.register_id < 0) return refuse("its address is no register");
  if (facts.options.guard_bytes < kLargestFragment) {
    return refuse(
        fmt::format("its rows take up to {} bytes, guard_bytes is {}", kLargestFragment, facts.options.guard_bytes));
  }
  if (const Status summed = can_be_summed(address, facts); !summed) return fail(summed.error());
  return InstructionPlan(MatrixAccess{*operand, std::uint64_t{fragment.rows - 1} * fragment.element_bytes});
}

}  // namespace fairlead::fence
