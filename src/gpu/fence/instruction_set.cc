// Three lists: opcodes that touch registers only, opcodes that have rules of their own, and opcodes that are refused with a
// reason worth reading. What is on none is refused without. The verifier has a list of its own (verifier_instructions.cc), on
// purpose, so that an opcode is let through by two decisions.
#include "gpu/fence/instruction_set.h"

#include <algorithm>
#include <array>

#include "gpu/fence/layout.h"
#include "gpu/fence/parser.h"

namespace fairlead::fence {
namespace {

// Sorted. Arithmetic, control and synchronisation: no operand of these is an address.
constexpr std::array kPlainOpcodes = std::to_array<std::string_view>({
    "abs",      "activemask", "add",       "addc",      "and",   "bar",        "barrier",
    "bfe",      "bfi",        "bfind",     "bmsk",      "brev",  "clz",        "cnot",
    "copysign", "cos",        "cvt",       "div",       "dp2a",  "dp4a",       "elect",
    "ex2",      "exit",       "fence",     "fma",       "fns",   "getctarank", "griddepcontrol",
    "isspacep", "lg2",        "lop3",      "mad",       "mad24", "madc",       "mapa",
    "match",    "max",        "membar",    "min",       "mma",   "movmatrix",  "mul",
    "mul24",    "nanosleep",  "neg",       "not",       "or",    "popc",       "prmt",
    "rcp",      "redux",      "rem",       "ret",       "rsqrt", "sad",        "selp",
    "set",      "setmaxnreg", "setp",      "shf",       "shl",   "shr",        "sin",
    "slct",     "sqrt",       "sub",       "subc",      "szext", "tanh",       "testp",
    "trap",     "vabsdiff",   "vabsdiff2", "vabsdiff4", "vadd",  "vadd2",      "vadd4",
    "vavrg2",   "vavrg4",     "vmad",      "vmax",      "vmax2", "vmax4",      "vmin",
    "vmin2",    "vmin4",      "vote",      "vset",      "vset2", "vset4",      "vshl",
    "vshr",     "vsub",       "vsub2",     "vsub4",     "xor",
});
static_assert(std::ranges::is_sorted(kPlainOpcodes));

// Sorted. What has no destination, though its first operand may be a register.
constexpr std::array kWithoutDestination = std::to_array<std::string_view>({
    "applypriority",  "bar",    "barrier",   "bra",      "brx",       "call", "cp",  "discard",    "exit", "fence",
    "griddepcontrol", "membar", "nanosleep", "prefetch", "prefetchu", "red",  "ret", "setmaxnreg", "st",   "stmatrix",
    "trap",
});
static_assert(std::ranges::is_sorted(kWithoutDestination));

struct Refusal {
  std::string_view opcode, reason;
};
constexpr Refusal kRefusals[] = {
    {"tex", "textures are reached by handle, not by address, so nothing bounds them"},
    {"tld4", "textures are reached by handle, not by address, so nothing bounds them"},
    {"txq", "textures are reached by handle, not by address, so nothing bounds them"},
    {"suld", "surfaces are reached by handle, not by address, so nothing bounds them"},
    {"sust", "surfaces are reached by handle, not by address, so nothing bounds them"},
    {"sured", "surfaces are reached by handle, not by address, so nothing bounds them"},
    {"suq", "surfaces are reached by handle, not by address, so nothing bounds them"},
    {"alloca", "memory taken from the stack at run time is not bounded; use an array of constant size"},
    {"stacksave", "the stack pointer would be in the kernel's hands"},
    {"stackrestore", "the stack pointer would be in the kernel's hands"},
    {"multimem", "it reaches the memory of other devices"},
    {"tensormap", "tensor maps hold addresses that no fence sees"},
    {"wgmma", "its shared-memory descriptors are not bounded by anything NVIDIA documents"},
    {"tcgen05", "its shared-memory descriptors are not bounded by anything NVIDIA documents"},
    {"brkpt", "there is no debugger to stop in"},
};

Knowledge refused(std::string_view reason) {
  return {Family::kRefused, reason};
}

// The parser takes any words behind an opcode. Which of two spaces the driver would go by is not known, so neither is taken.
bool names_two_spaces(const Instruction& instruction) {
  return std::ranges::count_if(instruction.modifiers, [](auto m) { return space_named(m).has_value(); }) > 1;
}

// A family whose accesses are fenced by the space that is named.
Knowledge of_one_space(const Instruction& instruction, Family family) {
  return names_two_spaces(instruction) ? refused("it names two spaces") : Knowledge{family, {}};
}

Knowledge shared_knowledge(const Instruction& instruction) {
  const Space space = space_of(instruction);
  if (space != Space::kGeneric && space != Space::kShared) return refused("it exists in shared memory only");
  return of_one_space(instruction, Family::kSharedOnly);
}

// cp.async copies 4, 8 or 16 bytes between two addresses. All other kinds of cp take a length from a register, or a tensor map.
Knowledge copy_knowledge(const Instruction& instruction) {
  const std::string_view kind = instruction.modifiers.size() > 1 ? instruction.modifiers[1] : "";
  if (instruction.modifiers.empty() || instruction.modifiers[0] != ".async") {
    return refused("copies in bulk take their length and addresses from registers and tensor maps");
  }
  if (kind == ".commit_group" || kind == ".wait_group" || kind == ".wait_all") return {Family::kPlain, {}};
  if (kind == ".mbarrier") return shared_knowledge(instruction);
  if (kind == ".ca" || kind == ".cg") return {Family::kAsyncCopy, {}};
  return refused("copies in bulk take their length and addresses from registers and tensor maps");
}

Knowledge access_knowledge(const Instruction& instruction) {
  if (has_modifier(instruction, ".bulk")) return refused("its length is in a register");
  if (has_modifier(instruction, ".tensormap")) return refused("tensor maps hold addresses that no fence sees");
  if (names_two_spaces(instruction)) return refused("it names two spaces");
  // A load without a destination has its address where the destination belongs; what writes a register must be known to.
  const bool gives_something =
      instruction.opcode == "ld" || instruction.opcode == "ldu" || instruction.opcode == "atom";
  if (gives_something && (instruction.operands.size() < 2 || instruction.operands[0].kind == Operand::Kind::kAddress)) {
    return refused("it has no destination");
  }
  const Space space = space_of(instruction);
  const bool is_atomic = instruction.opcode == "atom" || instruction.opcode == "red";
  // The driver would refuse these, too; that is not waited for.
  const bool is_read_only = space == Space::kConst || (is_atomic && (space == Space::kLocal || space == Space::kParam));
  if (is_read_only && instruction.opcode != "ld") return refused("there is no such access to that space");
  const bool is_async = has_modifier(instruction, ".async");
  if (is_async && space_of(instruction) != Space::kShared) return refused("it must name .shared::cluster");
  return {Family::kAccess, {}};
}

Knowledge matrix_knowledge(const Instruction& instruction) {
  if (names_two_spaces(instruction)) return refused("it names two spaces");
  if (has_modifier(instruction, ".load") || has_modifier(instruction, ".store")) return {Family::kMatrix, {}};
  return has_modifier(instruction, ".mma") ? Knowledge{Family::kPlain, {}} : refused("it is not known to the fence");
}

Knowledge special_knowledge(const Instruction& instruction) {
  const std::string_view opcode = instruction.opcode;
  if (opcode == "fence" && has_modifier(instruction, ".tensormap::generic"))
    return refused("tensor maps hold addresses");
  const bool has_space = std::ranges::any_of(instruction.modifiers, [](auto m) { return space_named(m).has_value(); });
  if (opcode == "mapa" && !has_space) return refused("write mapa.shared::cluster: its generic form looks like global");
  if (opcode == "isspacep" && (has_modifier(instruction, ".const") || has_modifier(instruction, ".param"))) {
    return refused("variables in .const and parameters may lie elsewhere in a fenced module");
  }
  return {Family::kPlain, {}};
}

}  // namespace

bool has_modifier(const Instruction& instruction, std::string_view modifier) {
  return std::ranges::find(instruction.modifiers, modifier) != instruction.modifiers.end();
}

Space space_of(const Instruction& instruction) {
  for (const std::string_view modifier : instruction.modifiers) {
    if (const auto space = space_named(modifier)) return *space;
  }
  return Space::kGeneric;
}

Knowledge knowledge_of(const Instruction& instruction) {
  const std::string_view opcode = instruction.opcode;
  if (opcode == "mov") return {Family::kMove, {}};
  if (opcode == "cvta") return {Family::kConvert, {}};
  if (opcode == "call") return {Family::kCall, {}};
  if (opcode == "bra") return {Family::kBranch, {}};
  if (opcode == "brx") return {Family::kTable, {}};
  if (opcode == "shfl") return {Family::kShuffle, {}};
  if (opcode == "cp") return copy_knowledge(instruction);
  if (opcode == "wmma") return matrix_knowledge(instruction);
  if (opcode == "mbarrier" && has_modifier(instruction, ".pending_count")) return {Family::kPlain, {}};
  if (opcode == "mbarrier" || opcode == "ldmatrix" || opcode == "stmatrix") return shared_knowledge(instruction);
  if (opcode == "ld" || opcode == "ldu" || opcode == "st" || opcode == "atom" || opcode == "red") {
    return access_knowledge(instruction);
  }
  if (opcode == "discard" || opcode == "applypriority") return of_one_space(instruction, Family::kAccess);
  if (opcode == "prefetch" || opcode == "prefetchu") {
    return has_modifier(instruction, ".tensormap") ? refused("tensor maps hold addresses that no fence sees")
                                                   : of_one_space(instruction, Family::kHint);
  }
  if (opcode == "createpolicy") {
    return has_modifier(instruction, ".range") ? refused("it names a range of addresses; use .fractional")
                                               : Knowledge{Family::kPlain, {}};
  }
  if (std::ranges::binary_search(kPlainOpcodes, opcode)) return special_knowledge(instruction);
  const auto* const known = std::ranges::find(kRefusals, opcode, &Refusal::opcode);
  return refused(known == std::end(kRefusals) ? "it is not known to the fence" : known->reason);
}

bool writes_first_operand(const Instruction& instruction) {
  const std::string_view opcode = instruction.opcode;
  return opcode != "st" && opcode != "red" && opcode != "bra" && opcode != "brx" && opcode != "stmatrix";
}

// A store has none, though its first operand may be a register in the text of somebody who writes no PTX.
const Operand* destination_of(const Instruction& instruction) {
  if (instruction.opcode == "call") return call_parts(instruction).results;
  const bool is_reduction = instruction.opcode.starts_with("bar") && has_modifier(instruction, ".red");
  const bool has_none = std::ranges::binary_search(kWithoutDestination, instruction.opcode) && !is_reduction;
  if (has_none || instruction.operands.empty() || has_modifier(instruction, ".store")) return nullptr;
  // A part of a register, or something that is no register, is not written whole.
  const auto is_whole = [](const Operand& operand) {
    return operand.kind == Operand::Kind::kName && operand.suffix.empty() && !operand.negated;
  };
  const Operand& first = instruction.operands[0];
  const bool is_list = first.kind == Operand::Kind::kList && std::ranges::all_of(first.elements, is_whole);
  return is_list || is_whole(first) ? &first : nullptr;
}

// Others read registers of their own lane only.
bool needs_whole_warp(const Instruction& instruction) {
  const std::string_view opcode = instruction.opcode;
  return opcode == "mma" || opcode == "wmma" || opcode == "ldmatrix" || opcode == "stmatrix" || opcode == "movmatrix";
}

bool reads_carry(const Instruction& instruction) {
  return instruction.opcode == "addc" || instruction.opcode == "subc" || instruction.opcode == "madc";
}

bool writes_carry(const Instruction& instruction) {
  return has_modifier(instruction, ".cc");
}

std::uint64_t access_bytes(const Instruction& instruction) {
  std::uint64_t scalar = 0, count = 1;
  for (const std::string_view modifier : instruction.modifiers) {
    if (const unsigned bytes = type_bytes(modifier); bytes != 0) scalar = bytes;
    if (modifier == ".v2" || modifier == ".v4" || modifier == ".v8") count = static_cast<unsigned>(modifier[2] - '0');
  }
  return scalar * count;
}

std::uint64_t most_access_bytes(const Instruction& instruction) {
  constexpr unsigned kWidestScalar = 16;
  unsigned scalar = 0, count = 1;
  for (const std::string_view modifier : instruction.modifiers) {
    scalar = std::max(scalar, type_bytes(modifier));
    const bool is_vector = modifier == ".v2" || modifier == ".v4" || modifier == ".v8";
    if (is_vector) count = std::max(count, static_cast<unsigned>(modifier[2] - '0'));
  }
  return std::uint64_t{count} * (scalar == 0 ? kWidestScalar : scalar);
}

}  // namespace fairlead::fence
