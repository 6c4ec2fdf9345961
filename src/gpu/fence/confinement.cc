// By space, as each has its own bound: .global the range, .local the arena, .param the parameter, .const and .shared the
// hardware. A generic address may be any of three, told apart when it is used.
#include "gpu/fence/confinement.h"

#include "gpu/fence/instruction_set.h"

namespace fairlead::fence {
namespace {

using Way = Confinement::Way;

// A vector that is wider exists in .global only; the arena has room for no more behind its last byte.
constexpr std::uint64_t kWidestInArena = 16;

Status fits_arena(const Instruction& instruction) {
  if (most_access_bytes(instruction) <= kWidestInArena) return {};
  return fail(Errc::kInvalidArgument, "it may reach local memory, of which one access takes at most 16 bytes");
}

// The module's variable that an operand names, if it stays in the module (.const, .shared); or null.
const Variable* kept_variable(const Operand& operand, const FunctionFacts& facts) {
  if (operand.variable >= 0) return nullptr;
  const auto found = facts.layout.kept.find(operand.name);
  return found == facts.layout.kept.end() ? nullptr : found->second;
}

Result<Confinement> confine_global(const Operand& address, const FunctionFacts& facts) {
  const auto offset = static_cast<std::uint64_t>(address.offset);
  if (address.name.empty()) return Confinement{.way = Way::kConstant, .place = address.bits + offset};
  if (address.register_id < 0) {
    const auto placed = facts.layout.placed.find(address.name);
    if (address.variable < 0 && placed != facts.layout.placed.end()) {
      return Confinement{.way = Way::kConstant, .place = placed->second.address + offset};
    }
    return fail(Errc::kInvalidArgument, "'{}' is no variable in global memory", address.name);
  }
  const bool has_companion =
      facts.addresses.where[static_cast<std::size_t>(address.register_id)] != AddressPlan::Where::kNowhere &&
      bits_of(facts, address) == 64 && is_within_guard(address.offset, facts.options);
  if (has_companion) return Confinement{.way = Way::kCompanion};
  const Status summed = can_be_summed(address, facts);
  if (!summed) return fail(summed.error());
  return Confinement{.way = Way::kSum};
}

// A module without variables in shared memory has no such addresses, and likewise of local memory.
Result<Confinement> confine_generic(const Operand& address, const Instruction& instruction,
                                    const FunctionFacts& facts) {
  const bool is_constant = address.name.empty() || address.register_id < 0;
  if (is_constant) return confine_global(address, facts);
  const bool may_be_local = facts.layout.arena_bytes > 0;
  Status usable = can_be_summed(address, facts);
  if (usable && may_be_local) usable = fits_arena(instruction);
  if (!usable) return fail(usable.error());
  return Confinement{.way = Way::kGeneric, .may_be_shared = facts.layout.has_shared, .may_be_local = may_be_local};
}

// A thread's local memory also holds what the compiler spills there, fenced addresses and return addresses among them,
// and behind that what other kernels left. So accesses must stay within the variables.
Result<Confinement> confine_local(const Operand& address, const Instruction& instruction, const FunctionFacts& facts) {
  if (const Status fits = fits_arena(instruction); !fits) return fail(fits.error());
  if (const auto place = local_place(facts, address)) {
    const Variable& variable = facts.function.variables[static_cast<std::size_t>(place->variable)];
    const bool is_inside = place->offset >= 0 && static_cast<std::uint64_t>(place->offset) < variable.bytes;
    if (is_inside) return Confinement{.way = Way::kFrame, .place = offset_in_frame(facts, *place)};
    return fail(Errc::kInvalidArgument, "offset {} is outside variable '{}' of {} bytes", place->offset, variable.name,
                variable.bytes);
  }
  if (address.register_id < 0 || address.variable >= 0) {
    return fail(Errc::kInvalidArgument, "its address is no variable in local memory and no register");
  }
  if (facts.layout.arena_bytes == 0) {
    return fail(Errc::kInvalidArgument, "the module has no variable in local memory");
  }
  const Status summed = can_be_summed(address, facts);
  if (!summed) return fail(summed.error());
  return Confinement{.way = Way::kArena};
}

bool is_named(const Operand& address) {
  return address.register_id < 0 && !address.name.empty();
}

Status check_shared(const Operand& address, const FunctionFacts& facts) {
  if (!is_named(address)) return {};
  const Variable* const variable = address.variable >= 0 ? variable_of(facts, address) : kept_variable(address, facts);
  if (variable != nullptr && variable->space == Space::kShared) return {};
  return fail(Errc::kInvalidArgument, "'{}' is no variable in shared memory", address.name);
}

Status check_const(const Operand& address, const FunctionFacts& facts) {
  if (!is_named(address)) return {};
  const Variable* const variable = kept_variable(address, facts);
  const bool is_inside = variable != nullptr && variable->space == Space::kConst && address.offset >= 0 &&
                         static_cast<std::uint64_t>(address.offset) < variable->bytes;
  if (is_inside) return {};
  return fail(Errc::kInvalidArgument, "'{}{}' is not inside a variable in .const", address.name,
              offset_text(address.offset));
}

// Atomic operations write, too.
bool may_write(const Instruction& instruction) {
  return instruction.opcode != "ld" && instruction.opcode != "ldu" && !instruction.opcode.starts_with("prefetch");
}

// Beside a parameter lies what other calls have left.
Status check_parameter(const Operand& address, const Instruction& instruction, const FunctionFacts& facts) {
  const Variable* const parameter = variable_of(facts, address);
  const bool is_known = is_named(address) ? parameter != nullptr && parameter->space == Space::kParam
                                          : facts.function.is_entry && !may_write(instruction);
  if (!is_known) {
    return fail(Errc::kInvalidArgument, "parameters are written by name, and read by name but for those of an entry");
  }
  if (!is_named(address)) return {};
  const std::uint64_t bytes = access_bytes(instruction) == 0 ? 0 : most_access_bytes(instruction);
  const auto begin = static_cast<std::uint64_t>(address.offset);
  if (bytes > 0 && begin <= parameter->bytes && bytes <= parameter->bytes - begin) return {};
  return fail(Errc::kInvalidArgument, "{} bytes at offset {} are not inside parameter '{}' of {} bytes", bytes,
              address.offset, parameter->name, parameter->bytes);
}

Result<std::optional<Confinement>> as_written_if(Status status) {
  if (!status) return fail(std::move(status.error()));
  return std::optional<Confinement>();
}

Result<std::optional<Confinement>> some(Result<Confinement> found) {
  if (!found) return fail(std::move(found.error()));
  return std::optional<Confinement>(*found);
}

}  // namespace

Status can_be_summed(const Operand& address, const FunctionFacts& facts) {
  const unsigned bits = bits_of(facts, address);
  if (bits == 32 || bits == 64) return {};
  return fail(Errc::kInvalidArgument, "'{}' is no register of 32 or 64 bits", address.name);
}

Result<std::optional<Confinement>> confine(Space space, const Operand& address, const Instruction& instruction,
                                           const FunctionFacts& facts) {
  switch (space) {
    case Space::kGlobal: return some(confine_global(address, facts));
    case Space::kGeneric: return some(confine_generic(address, instruction, facts));
    case Space::kLocal: return some(confine_local(address, instruction, facts));
    case Space::kShared: return as_written_if(check_shared(address, facts));
    case Space::kConst: return as_written_if(check_const(address, facts));
    case Space::kParam: break;
  }
  return as_written_if(check_parameter(address, instruction, facts));
}

}  // namespace fairlead::fence
