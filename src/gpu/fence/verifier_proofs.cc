// A fragment's stride, which takes the longest proof: w is the stride, a an address in the range, 30 the bytes that rows 1 to
// 15 of 2-byte elements are away for each element of stride.
//
//   min.u32 w, n, 0x7fffffff;               w is at most 0x7fffffff, so that nothing below wraps around
//   mul.wide.u32 t, w, 30;                  t is 30 times this write of w
//   add.s64 t, t, a;                        t is where the last row begins
//   setp.ge.u64 p, t, 0x700100000000;       p says whether that is behind the range
//   selp.b32 w, 0, w, p;                    w is safe as a stride with this write of a
#include "gpu/fence/verifier_proofs.h"

#include <fmt/format.h>

#include <algorithm>

namespace fairlead::fence {
namespace {

using Kind = Proven::Kind;

// So that sums of a few of these do not wrap around.
constexpr std::uint64_t kLargestStep = std::uint64_t{1} << 32;
constexpr std::uint64_t kLargestStride = 0x7fffffff;
constexpr std::uint64_t kLargestFactor = 1 << 20;

bool is_whole_register(const Operand& operand) {
  return operand.kind == Operand::Kind::kName && operand.register_id >= 0 && operand.suffix.empty() &&
         operand.second.empty() && !operand.negated && !operand.has_offset;
}

// Exactly these words: another modifier may give the instruction another meaning.
bool is(const Instruction& instruction, std::string_view opcode, std::initializer_list<std::string_view> modifiers,
        std::size_t operands) {
  return instruction.opcode == opcode && std::ranges::equal(instruction.modifiers, modifiers) &&
         instruction.operands.size() == operands;
}

void collect(const Operand& operand, std::vector<int>& out) {
  if (operand.register_id >= 0) out.push_back(operand.register_id);
  if (operand.second_id >= 0) out.push_back(operand.second_id);
  for (const Operand& element : operand.elements) collect(element, out);
}

}  // namespace

std::optional<std::uint64_t> plain_number(const Operand& operand) {
  if (operand.kind != Operand::Kind::kNumber || operand.negated) return std::nullopt;
  const bool is_plain =
      operand.name == fmt::format("{}", operand.bits) || operand.name == fmt::format("0x{:x}", operand.bits);
  return is_plain ? std::optional(operand.bits) : std::nullopt;
}

std::vector<int> may_be_written(const Instruction& instruction) {
  std::vector<int> written;
  if (instruction.operands.empty()) return written;
  const Operand& first = instruction.operands[0];
  if (first.kind != Operand::Kind::kAddress) collect(first, written);
  return written;
}

Proofs::Proofs(const Function& function, const FenceOptions& options)
    : function_(function), options_(options), states_(function.registers.size()) {
  count_writes();
}

// Before the pass: a label may be reached from a line that the pass has not come to yet.
void Proofs::count_writes() {
  for (std::size_t i = 0; i < function_.items.size(); ++i) {
    const Instruction& instruction = function_.items[i].instruction;
    for (const int id : may_be_written(instruction)) {
      State& state = states_[static_cast<std::size_t>(id)];
      ++state.all_writes;
      const bool is_half = is_mask_of_pair(i, id) || (i > 0 && is_base_of_pair(i, id) && is_mask_of_pair(i - 1, id));
      state.is_companion &= is_half || is_constant_in_range(instruction, id);
    }
  }
}

// `and id, x, bytes - 1` with `or id, id, base` as the very next item.
bool Proofs::is_mask_of_pair(std::size_t item, int id) const {
  const Instruction& instruction = function_.items[item].instruction;
  return is(instruction, "and", {".b64"}, 3) && instruction.guard.empty() &&
         is_whole_register(instruction.operands[0]) && instruction.operands[0].register_id == id &&
         plain_number(instruction.operands[2]) == options_.bytes - 1 && item + 1 < function_.items.size() &&
         is_base_of_pair(item + 1, id);
}

bool Proofs::is_base_of_pair(std::size_t item, int id) const {
  const Instruction& instruction = function_.items[item].instruction;
  return is(instruction, "or", {".b64"}, 3) && instruction.guard.empty() &&
         is_whole_register(instruction.operands[0]) && instruction.operands[0].register_id == id &&
         is_whole_register(instruction.operands[1]) && instruction.operands[1].register_id == id &&
         plain_number(instruction.operands[2]) == options_.base;
}

// A mov is one instruction, so that there is no half of it to be caught in.
bool Proofs::is_constant_in_range(const Instruction& instruction, int id) const {
  if (!is(instruction, "mov", {".b64"}, 2) || !instruction.guard.empty()) return false;
  const auto number = plain_number(instruction.operands[1]);
  return is_whole_register(instruction.operands[0]) && instruction.operands[0].register_id == id && number &&
         is_in_range(*number);
}

bool Proofs::is_in_range(std::uint64_t address) const {
  return address >= options_.base && address - options_.base < options_.bytes;
}

// Every way to a label leads through all of the head: it is left by its end, by a return, or not at all.
void Proofs::pass_branch() {
  if (!is_head_) return;
  is_head_ = false;
  for (State& state : states_) {
    const bool is_known = state.stretch == stretch_ && state.now.stands_alone();
    const bool is_constant = state.all_writes == 1;
    if (is_known && (is_constant || (state.is_companion && state.now.kind == Kind::kInRange))) state.head = state.now;
  }
}

void Proofs::pass_label() {
  pass_branch();
  ++stretch_;
  parameters_.clear();
}

Proven Proofs::at(int id) const {
  const State& state = states_[static_cast<std::size_t>(id)];
  return state.stretch == stretch_ ? state.now : state.head;
}

Proven Proofs::of(const Operand& operand) const {
  return is_whole_register(operand) ? at(operand.register_id) : Proven{};
}

// A register of the tenant's own is not believed, whatever the lines before say: which declaration its name belongs to goes by
// scopes, and a driver that resolves one name otherwise must not make a companion of it. Names of the fence are declared once.
Proven Proofs::of_address(const Operand& address) const {
  const bool is_wide =
      address.register_id >= 0 && function_.registers[static_cast<std::size_t>(address.register_id)].bits == 64;
  return is_wide && address.name.starts_with("%__fence_") ? at(address.register_id) : Proven{};
}

// A parameter that nothing was stored to proves nothing, wherever it may lie.
Proven Proofs::of_parameter(int variable) const {
  const auto found = parameters_.find(variable);
  return found == parameters_.end() ? Proven{} : found->second;
}

void Proofs::add(const Instruction& instruction) {
  note_parameter(instruction);
  // Facts are found before writes are counted, so that a line that overwrites what it reads speaks of the old value.
  // Under a predicate it may not have happened, so it proves nothing and overwrites all the same.
  const bool proves =
      instruction.guard.empty() && !instruction.operands.empty() && is_whole_register(instruction.operands[0]);
  const Proven result = proves ? result_of(instruction) : Proven{};
  for (const int id : may_be_written(instruction)) {
    State& state = states_[static_cast<std::size_t>(id)];
    ++state.writes;
    state.now = result;
    state.stretch = stretch_;
  }
}

// What a parameter of a call holds: eight bytes stored in one go, and nothing stored to it since. A call may use them up.
void Proofs::note_parameter(const Instruction& instruction) {
  if (instruction.opcode == "call") parameters_.clear();
  const bool is_store = instruction.opcode == "st" && !instruction.operands.empty();
  if (!is_store || instruction.operands[0].variable < 0) return;
  const Operand& address = instruction.operands[0];
  const bool is_whole = is(instruction, "st", {".param", ".b64"}, 2) && instruction.guard.empty() &&
                        address.offset == 0 &&
                        function_.variables[static_cast<std::size_t>(address.variable)].bytes == 8;
  parameters_[address.variable] = is_whole ? of(instruction.operands[1]) : Proven{};
}

Proven Proofs::result_of(const Instruction& instruction) const {
  const std::vector<Operand>& operands = instruction.operands;
  const auto number = plain_number(operands.back());
  if (is(instruction, "and", {".b64"}, 3) && number) return {.kind = Kind::kAtMost, .number = *number};
  if (is(instruction, "min", {".u32"}, 3) && number) return {.kind = Kind::kAtMost, .number = *number};
  if (is(instruction, "or", {".b64"}, 3) && number == options_.base) {
    const Proven masked = of(operands[1]);
    const bool is_within = masked.kind == Kind::kAtMost && masked.number <= options_.bytes - 1;
    return {.kind = is_within ? Kind::kInRange : Kind::kNothing};
  }
  if (is(instruction, "mov", {".b64"}, 2)) return moved(operands[1]);
  if (is(instruction, "add", {".s64"}, 3)) return sum(operands[1], operands[2]);
  if (is(instruction, "ld", {".param", ".b64"}, 2)) return loaded(operands[1]);
  if (is(instruction, "cvta", {".local", ".u64"}, 2)) {
    return {.kind = of(operands[1]).kind == Kind::kArena ? Kind::kGenericArena : Kind::kNothing};
  }
  if (is(instruction, "isspacep", {".shared"}, 2) && is_whole_register(operands[1])) {
    return {.kind = Kind::kIsShared, .of = latest_write(operands[1])};
  }
  if (is(instruction, "selp", {".b64"}, 4)) return chosen(operands[1], operands[2], operands[3]);
  if (is(instruction, "selp", {".b32"}, 4) && plain_number(operands[1]) == 0u) return stride(operands[2], operands[3]);
  if (is(instruction, "mul", {".wide", ".u32"}, 3) && number && *number <= kLargestFactor) {
    const Proven factor = of(operands[1]);
    if (factor.kind != Kind::kAtMost || factor.number > kLargestStride) return {};
    return {.kind = Kind::kProduct, .number = *number, .of = latest_write(operands[1])};
  }
  if (is(instruction, "setp", {".ge", ".u64"}, 3) && number == options_.base + options_.bytes) {
    Proven row = of(operands[1]);
    if (row.kind != Kind::kLastRow) return {};
    row.kind = Kind::kIsBeyond;
    return row;
  }
  return {};
}

// A copy is as good as what it copies.
Proven Proofs::moved(const Operand& from) const {
  if (const auto number = plain_number(from)) return {.kind = is_in_range(*number) ? Kind::kInRange : Kind::kNothing};
  const bool is_local = from.kind == Operand::Kind::kName && from.variable >= 0 && !from.has_offset &&
                        function_.variables[static_cast<std::size_t>(from.variable)].space == Space::kLocal;
  if (is_local) return {.kind = Kind::kArena};  // an entry has no other variable there
  return of(from);
}

Proven Proofs::sum(const Operand& left, const Operand& right) const {
  Proven known = of(left);
  if (const auto step = plain_number(right)) {
    // An entry's frame begins where the arena does.
    if (function_.is_entry && known.kind == Kind::kArena) known = {.kind = Kind::kFrame};
    if (known.kind != Kind::kFrame || *step > kLargestStep || known.number > kLargestStep) return {};
    known.number += *step;
    return known;
  }
  const Proven other = of(right);
  if (known.kind == Kind::kAtMost && other.kind == Kind::kArena) return {Kind::kInArena, known.number};
  if (known.kind == Kind::kAtMost && other.kind == Kind::kGenericArena) return {Kind::kInGenericArena, known.number};
  if (known.kind != Kind::kProduct || other.kind != Kind::kInRange) return {};
  known.kind = Kind::kLastRow;
  known.from = latest_write(right);
  return known;
}

// Either of the two, so both must be safe, but for shared memory where the predicate says that it is.
Proven Proofs::chosen(const Operand& yes, const Operand& no, const Operand& predicate) const {
  const Proven otherwise = of(no), asked = of(predicate), given = of(yes);
  if (otherwise.kind != Kind::kInRange && otherwise.kind != Kind::kMayBeAccessed) return {};
  const bool is_shared = asked.kind == Kind::kIsShared && is_whole_register(yes) && asked.of == latest_write(yes);
  const bool is_arena = given.kind == Kind::kInGenericArena;
  if (!is_shared && !is_arena) return {};
  return {.kind = Kind::kMayBeAccessed, .number = is_arena ? given.number : otherwise.number};
}

// 0 where the last row would begin behind the range, else the stride that was asked about.
Proven Proofs::stride(const Operand& no, const Operand& predicate) const {
  const Proven asked = of(predicate);
  if (asked.kind != Kind::kIsBeyond || !is_whole_register(no) || asked.of != latest_write(no)) return {};
  return {.kind = Kind::kStride, .number = asked.number, .from = asked.from};
}

// What the function was handed; the verifier sees to it at every call.
Proven Proofs::loaded(const Operand& address) const {
  const bool is_handed =
      !function_.is_entry && address.kind == Operand::Kind::kAddress && address.variable >= 0 && address.offset == 0;
  const auto results = static_cast<int>(function_.signature.results.size());
  const auto parameters = static_cast<int>(function_.signature.parameters.size());
  if (!is_handed || address.variable < results || address.variable >= results + parameters) return {};
  if (address.name == kArenaName) return {.kind = Kind::kArena};
  return {.kind = address.name == kFrameName ? Kind::kFrame : Kind::kNothing};
}

}  // namespace fairlead::fence
