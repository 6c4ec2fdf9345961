// By opcode, and by modifiers where they make another instruction of it. A modifier that is not known is no reason to refuse,
// as long as none of its kind changes how much memory is reached: those that do (.bulk, .tensor, .multicast) are named.
#include "gpu/fence/verifier_instructions.h"

#include <algorithm>
#include <array>
#include <charconv>

namespace fairlead::fence {
namespace {

// None of these has an address among its operands, and none leads anywhere but to the next line or out of the function:
// arithmetic, comparison, conversion, votes and shuffles, barriers, and the ends.
constexpr std::array kRegistersOnly = std::to_array<std::string_view>({
    "abs",       "activemask", "add",      "addc",      "and",          "bar",
    "barrier",   "bfe",        "bfi",      "bfind",     "bmsk",         "brev",
    "clz",       "cnot",       "cos",      "copysign",  "createpolicy", "cvt",
    "cvta",      "div",        "dp2a",     "dp4a",      "elect",        "ex2",
    "exit",      "fence",      "fma",      "fns",       "getctarank",   "griddepcontrol",
    "isspacep",  "lg2",        "lop3",     "mad",       "mad24",        "madc",
    "mapa",      "match",      "max",      "membar",    "min",          "mma",
    "movmatrix", "mul",        "mul24",    "nanosleep", "neg",          "not",
    "or",        "popc",       "prmt",     "rcp",       "redux",        "rem",
    "ret",       "rsqrt",      "sad",      "selp",      "set",          "setmaxnreg",
    "setp",      "shf",        "shfl",     "shl",       "shr",          "sin",
    "slct",      "sqrt",       "sub",      "subc",      "szext",        "tanh",
    "testp",     "trap",       "vabsdiff", "vabsdiff2", "vabsdiff4",    "vadd",
    "vadd2",     "vadd4",      "vavrg2",   "vavrg4",    "vmad",         "vmax",
    "vmax2",     "vmax4",      "vmin",     "vmin2",     "vmin4",        "vote",
    "vset",      "vset2",      "vset4",    "vshl",      "vshr",         "vsub",
    "vsub2",     "vsub4",      "xor",
});

constexpr std::string_view kDigits = "0123456789";

bool has(const Instruction& instruction, std::string_view modifier) {
  return std::ranges::find(instruction.modifiers, modifier) != instruction.modifiers.end();
}

bool is_one_of(std::string_view word, std::initializer_list<std::string_view> words) {
  return std::ranges::find(words, word) != words.end();
}

// Lengths in registers, maps of tensors, and copies by other units: nothing here bounds those.
bool goes_beyond_its_address(const Instruction& instruction) {
  return std::ranges::any_of(instruction.modifiers, [](std::string_view modifier) {
    return modifier.starts_with(".bulk") || modifier.starts_with(".tensor") || modifier.starts_with(".multicast");
  });
}

// The word behind cp.async says what it does; without one that is known, it may be a copy in bulk.
Reach reach_of_copy(const Instruction& instruction) {
  if (instruction.modifiers.size() < 2 || instruction.modifiers[0] != ".async") return Reach::kRefused;
  const std::string_view kind = instruction.modifiers[1];
  if (is_one_of(kind, {".commit_group", ".wait_group", ".wait_all"})) return Reach::kRegisters;
  if (kind == ".mbarrier") return Reach::kSharedOnly;
  return is_one_of(kind, {".ca", ".cg"}) ? Reach::kCopy : Reach::kRefused;
}

std::uint64_t number_at(std::string_view text, std::size_t at) {
  std::uint64_t number = 0;
  std::from_chars(text.data() + at, text.data() + text.size(), number);
  return number;
}

// The number behind `letter` in a shape such as ".m16n16k16".
std::uint64_t extent_behind(std::string_view shape, char letter) {
  const std::size_t at = shape.find(letter);
  return at == std::string_view::npos ? 0 : number_at(shape, at + 1);
}

// Of ".u32", ".f16x2" and the like; 0: it is no type that memory is accessed by.
std::uint64_t scalar_bytes(std::string_view type) {
  if (type.find_first_of(kDigits) != 2 || !is_one_of(type.substr(1, 1), {"b", "u", "s", "f"})) return 0;
  const std::uint64_t bits = number_at(type, 2);
  const std::string_view rest = type.substr(std::min(type.find_first_not_of(kDigits, 2), type.size()));
  if (bits < 8 || bits > 128 || !is_one_of(rest, {"", "x2"})) return 0;
  return bits / 8 * (rest.empty() ? 1 : 2);
}

// .m16n16k16; .merge and the like are none.
bool is_shape(std::string_view modifier) {
  return modifier.size() > 2 && modifier[1] == 'm' && modifier[2] >= '0' && modifier[2] <= '9';
}

}  // namespace

Reach reach_of(const Instruction& instruction) {
  const std::string_view opcode = instruction.opcode;
  if (opcode == "createpolicy" && has(instruction, ".range")) return Reach::kRefused;
  if (goes_beyond_its_address(instruction)) return Reach::kRefused;
  if (opcode == "mov") return Reach::kMove;
  if (opcode == "call") return Reach::kCall;
  if (opcode == "bra") return Reach::kBranch;
  if (opcode == "brx") return has(instruction, ".idx") ? Reach::kTable : Reach::kRefused;
  if (opcode == "cp") return reach_of_copy(instruction);
  if (opcode == "wmma") {
    if (has(instruction, ".load") || has(instruction, ".store")) return Reach::kRows;
    return has(instruction, ".mma") ? Reach::kRegisters : Reach::kRefused;
  }
  if (is_one_of(opcode, {"ld", "ldu", "st", "atom", "red", "prefetch", "prefetchu", "applypriority"})) {
    return Reach::kMemory;
  }
  if (opcode == "mbarrier" && has(instruction, ".pending_count")) return Reach::kRegisters;
  if (is_one_of(opcode, {"mbarrier", "ldmatrix", "stmatrix"})) return Reach::kSharedOnly;
  return std::ranges::find(kRegistersOnly, opcode) == kRegistersOnly.end() ? Reach::kRefused : Reach::kRegisters;
}

NamedSpace named_space(const Instruction& instruction) {
  constexpr std::array kSpaces = {Space::kGlobal, Space::kConst, Space::kShared, Space::kLocal, Space::kParam};
  constexpr std::array<std::string_view, 5> kWords = {".global", ".const", ".shared", ".local", ".param"};
  NamedSpace named;
  int count = 0;
  for (const std::string_view modifier : instruction.modifiers) {
    const std::string_view word = modifier.substr(0, modifier.find(':'));  // .shared::cta is .shared
    const auto* const found = std::ranges::find(kWords, word);
    if (found == kWords.end()) continue;
    named.space = kSpaces[static_cast<std::size_t>(found - kWords.begin())];
    ++count;
  }
  named.is_clear = count < 2;
  return named;
}

// Where two types are named the wider one counts: which of them the driver goes by is its own affair.
Width width_of(const Instruction& instruction) {
  constexpr std::uint64_t kWidestScalar = 16;
  std::uint64_t scalar = 0, count = 1;
  for (const std::string_view modifier : instruction.modifiers) {
    if (is_one_of(modifier, {".v2", ".v4", ".v8"})) count = std::max<std::uint64_t>(count, modifier[2] - '0');
    scalar = std::max(scalar, scalar_bytes(modifier));
  }
  return {.bytes = (scalar == 0 ? kWidestScalar : scalar) * count, .is_known = scalar != 0};
}

std::uint64_t bytes_per_stride(const Instruction& instruction) {
  const auto shape = std::ranges::find_if(instruction.modifiers, is_shape);
  if (std::ranges::count_if(instruction.modifiers, is_shape) != 1) return 0;
  // a: m by k, b: k by n, c and d: m by n. With .row it is rows, with .col columns that lie a stride apart.
  const bool is_a = has(instruction, ".a"), is_b = has(instruction, ".b");
  const std::uint64_t lines = extent_behind(*shape, has(instruction, ".col") ? (is_a ? 'k' : 'n') : (is_b ? 'k' : 'm'));
  const std::string_view type = instruction.modifiers.back();
  const std::uint64_t bits = number_at(type, std::min(type.find_first_of(kDigits), type.size()));
  if (lines < 2 || lines > 256 || bits == 0 || bits > 64) return 0;
  return (lines - 1) * std::max<std::uint64_t>(1, bits / 8);
}

}  // namespace fairlead::fence
