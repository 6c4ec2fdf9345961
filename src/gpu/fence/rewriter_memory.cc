// Accesses to memory. Scratch registers: t0 is the address as written, t1 as fenced, t2 the way between.
//
// .global, through a register with a companion (address_plan.h), and else through the sum:
//
//   and.b64 a0, %rd1, mask;  or.b64 a0, a0, base;              ld.global.u32 %r1, [a0+16];
//   add.s64 t0, %rd1, 65536;  and.b64 t1, t0, mask;  or ...;   ld.global.u32 %r1, [t1];
//
// Generic, where the module has shared and local memory: both are told apart from global by the address itself. A kernel's
// shared memory is its block's alone, so that an address there stays what it is:
//
//   mov.b64 t0, %rd1;  and, or into t1;
//   isspacep.shared p0, t0;  selp.b64 t1, t0, t1, p0;
//   isspacep.local p1, t0;  sub, and, add: t0 into the arena;  selp.b64 t1, t0, t1, p1;
//   ld.u32 %r1, [t1];
//
// .local goes by `sub, and, add` alone, or needs nothing where the place is a constant.
//
// A constant address is fenced here rather than at run time, to a mov.
#include <algorithm>
#include <array>
#include <charconv>

#include "gpu/fence/instruction_set.h"
#include "gpu/fence/rewriter.h"

namespace fairlead::fence {
namespace {

// What rows that lie close together take, and the last row of any.
constexpr std::uint64_t kLargestFragment = 4096;
// A vector that is wider exists in .global only; the arena has room for no more behind its last byte.
constexpr std::uint64_t kWidestInArena = 16;
constexpr std::string_view kTooWideForArena = "it may reach local memory, of which one access takes at most 16 bytes";

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

}  // namespace

std::uint64_t FunctionRewriter::fenced(std::uint64_t address) const {
  return (address & (options_.bytes - 1)) | options_.base;
}

void FunctionRewriter::fence(std::string_view to, std::string_view from) {
  emit("and.b64 {}, {}, 0x{:x};", to, from, options_.bytes - 1);
  emit("or.b64 {}, {}, 0x{:x};", to, to, options_.base);
}

// Numbered in the order of their first use, so that the same text gives the same text.
std::string FunctionRewriter::companion(int register_id) {
  const auto number = companions_.try_emplace(register_id, static_cast<int>(companions_.size())).first->second;
  return fmt::format("%__fence_a{}", number);
}

std::string FunctionRewriter::constant_address(std::uint64_t address) {
  uses_temporaries_ = true;
  emit("mov.b64 %__fence_t1, 0x{:x};", fenced(address));
  return "%__fence_t1";
}

// to = register + offset, in 64 bits.
bool FunctionRewriter::sum(std::string_view to, const Operand& address) {
  uses_temporaries_ = true;
  const unsigned bits = bits_of(address);
  if (bits != 32 && bits != 64) return refuse(fmt::format("'{}' is no register of 32 or 64 bits", address.name));
  if (bits == 32) emit("cvt.u64.u32 {}, {};", to, address.name);
  if (bits == 32 && address.offset != 0) emit("add.s64 {}, {}, {};", to, to, address.offset);
  if (bits == 64 && address.offset != 0) emit("add.s64 {}, {}, {};", to, address.name, address.offset);
  if (bits == 64 && address.offset == 0) emit("mov.b64 {}, {};", to, address.name);
  return true;
}

std::optional<std::string> FunctionRewriter::global_address(const Operand& address) {
  const auto offset = static_cast<std::uint64_t>(address.offset);
  if (address.name.empty()) return constant_address(address.bits + offset);
  if (const auto place = layout_.placed.find(address.name);
      place != layout_.placed.end() && address.register_id < 0 && address.variable < 0) {
    return constant_address(place->second.address + offset);
  }
  if (address.register_id < 0) {
    refuse(fmt::format("'{}' is no variable in global memory", address.name));
    return std::nullopt;
  }
  const auto index = static_cast<std::size_t>(address.register_id);
  const bool has_companion = plan_.where[index] != AddressPlan::Where::kNowhere && bits_of(address) == 64 &&
                             is_within_guard(address.offset, options_);
  if (!has_companion) {
    if (!sum("%__fence_t0", address)) return std::nullopt;
    fence("%__fence_t1", "%__fence_t0");
    return "%__fence_t1";
  }
  const std::string name = companion(address.register_id);
  if (plan_.where[index] == AddressPlan::Where::kAtUse && fresh_in_[index] != region_) {
    fence(name, address.name);
    fresh_in_[index] = region_;
  }
  return address.offset == 0 ? name : name + offset_text(address.offset);
}

// Atomic operations write, too.
bool FunctionRewriter::may_write() const {
  return now_.opcode != "ld" && now_.opcode != "ldu" && !now_.opcode.starts_with("prefetch");
}

// Addresses in the window of shared memory stay what they are, those of local memory are bounded to the arena, as
// local_address() says; all others are fenced. A module without variables in shared memory has no such addresses.
std::optional<std::string> FunctionRewriter::generic_address(const Operand& address) {
  const bool is_constant = address.name.empty() || address.register_id < 0;
  if (is_constant) return global_address(address);
  if (!sum("%__fence_t0", address)) return std::nullopt;
  fence("%__fence_t1", "%__fence_t0");
  if (layout_.has_shared) {
    emit("isspacep.shared %__fence_p0, %__fence_t0;");
    emit("selp.b64 %__fence_t1, %__fence_t0, %__fence_t1, %__fence_p0;");
  }
  if (layout_.arena_bytes == 0) return "%__fence_t1";
  if (most_access_bytes(now_) > kWidestInArena) {
    refuse(kTooWideForArena);
    return std::nullopt;
  }
  emit("isspacep.local %__fence_p1, %__fence_t0;");
  uses_generic_arena_ = true;
  bound_local("%__fence_t0", "%__fence_t0", "%__fence_generic_arena");
  emit("selp.b64 %__fence_t1, %__fence_t0, %__fence_t1, %__fence_p1;");
  return "%__fence_t1";
}

// (x - arena) & mask + arena: an address inside stays what it is, as the arena is where offsets begin.
void FunctionRewriter::bound_local(std::string_view to, std::string_view from, std::string_view arena) {
  emit("sub.s64 {}, {}, {};", to, from, arena);
  emit("and.b64 {}, {}, 0x{:x};", to, to, layout_.arena_bytes - 1);
  emit("add.s64 {}, {}, {};", to, to, arena);
}

std::string FunctionRewriter::frame_address(std::uint64_t offset) const {
  return function_.is_entry ? fmt::format("__fence_arena+{}", offset) : fmt::format("%__fence_frame+{}", offset);
}

// A thread's local memory also holds what the compiler spills there, fenced addresses and return addresses among them,
// and behind that what other kernels left. So accesses must stay within the variables.
std::optional<std::string> FunctionRewriter::local_address(const Operand& address) {
  if (most_access_bytes(now_) > kWidestInArena) {
    refuse(kTooWideForArena);
    return std::nullopt;
  }
  if (const auto place = local_place(address)) {
    const Variable& variable = function_.variables[static_cast<std::size_t>(place->variable)];
    const bool is_inside = place->offset >= 0 && static_cast<std::uint64_t>(place->offset) < variable.bytes;
    if (!is_inside) {
      refuse(
          fmt::format("offset {} is outside variable '{}' of {} bytes", place->offset, variable.name, variable.bytes));
      return std::nullopt;
    }
    uses_arena_ |= !function_.is_entry;
    return frame_address(layout_.frames.at(function_.name).offsets.at(place->variable) +
                         static_cast<std::uint64_t>(place->offset));
  }
  if (address.register_id < 0 || address.variable >= 0) {
    refuse("its address is no variable in local memory and no register");
    return std::nullopt;
  }
  if (layout_.arena_bytes == 0) {
    refuse("the module has no variable in local memory");
    return std::nullopt;
  }
  uses_arena_ = true;
  if (!sum("%__fence_t0", address)) return std::nullopt;
  bound_local("%__fence_t0", "%__fence_t0", "%__fence_arena");
  return "%__fence_t0";
}

std::vector<Operand*> FunctionRewriter::addresses() {
  std::vector<Operand*> found;
  for (Operand& operand : now_.operands) {
    if (operand.kind == Operand::Kind::kAddress && operand.elements.empty()) found.push_back(&operand);
  }
  return found;
}

bool FunctionRewriter::access() {
  // An instruction with two addresses would be fenced at one of them.
  const std::vector<Operand*> found = addresses();
  if (found.size() != 1) return refuse("it must have one address");
  for (const Operand& operand : now_.operands) {
    if (operand.kind != Operand::Kind::kAddress && !operand_is_plain(operand)) return false;
  }
  Space space = space_of(now_);
  if (space == Space::kConst && layout_.consts_are_placed) {
    std::ranges::replace_if(
        now_.modifiers, [](std::string_view modifier) { return modifier.starts_with(".const"); }, ".global");
    space = Space::kGlobal;
  }
  // What memory held before may come to light where zeros are thrown away that are not in memory yet.
  if (now_.opcode == "discard") return true;
  // A hint about any generic address is as good about a fenced one.
  if (space == Space::kGeneric && knowledge_of(now_).family == Family::kHint) space = Space::kGlobal;
  return access_in(space, *found[0]);
}

bool FunctionRewriter::access_in(Space space, Operand& address) {
  std::optional<std::string> bounded;
  const bool is_named = address.register_id < 0 && !address.name.empty();
  const Space named_space =
      address.variable >= 0 ? function_.variables[static_cast<std::size_t>(address.variable)].space : Space::kGlobal;
  const auto kept = layout_.kept.find(address.name);
  const bool is_kept = is_named && address.variable < 0 && kept != layout_.kept.end();
  switch (space) {
    case Space::kGlobal: bounded = global_address(address); break;
    case Space::kGeneric: bounded = generic_address(address); break;
    case Space::kLocal: bounded = local_address(address); break;
    case Space::kShared:
      if (is_named && named_space != Space::kShared && !(is_kept && kept->second->space == Space::kShared)) {
        return refuse(fmt::format("'{}' is no variable in shared memory", address.name));
      }
      emit("{}", text_of(now_));
      return true;
    case Space::kConst: {
      const bool is_inside =
          is_kept && address.offset >= 0 && static_cast<std::uint64_t>(address.offset) < kept->second->bytes;
      if (is_named && !(is_inside && kept->second->space == Space::kConst)) {
        return refuse(
            fmt::format("'{}{}' is not inside a variable in .const", address.name, offset_text(address.offset)));
      }
      emit("{}", text_of(now_));
      return true;
    }
    case Space::kParam:
      if (is_named ? named_space != Space::kParam : !(function_.is_entry && !may_write())) {
        return refuse("parameters are written by name, and read by name but for those of an entry");
      }
      if (is_named && !is_inside(function_.variables[static_cast<std::size_t>(address.variable)], address))
        return false;
      emit("{}", text_of(now_));
      return true;
  }
  if (!bounded) return false;
  report_.accesses += space == Space::kLocal ? 0 : 1;
  const std::string operand = *bounded;
  address = Operand{.kind = Operand::Kind::kAddress, .name = operand};
  emit("{}", text_of(now_));
  return true;
}

// Beside a parameter lies what other calls have left.
bool FunctionRewriter::is_inside(const Variable& parameter, const Operand& address) {
  const std::uint64_t bytes = access_bytes(now_) == 0 ? 0 : most_access_bytes(now_);
  const auto begin = static_cast<std::uint64_t>(address.offset);
  if (bytes > 0 && begin <= parameter.bytes && bytes <= parameter.bytes - begin) return true;
  return refuse(fmt::format("{} bytes at offset {} are not inside parameter '{}' of {} bytes", bytes, address.offset,
                            parameter.name, parameter.bytes));
}

// The destination is in shared memory, which hardware bounds; the source is an address like any other.
bool FunctionRewriter::async_copy() {
  const std::vector<Operand*> found = addresses();
  if (found.size() != 2) return refuse("it must have two addresses");
  for (const Operand& operand : now_.operands) {
    if (operand.kind != Operand::Kind::kAddress && !operand_is_plain(operand)) return false;
  }
  const bool is_register = found[0]->register_id >= 0;
  const bool is_shared = found[0]->variable >= 0 &&
                         function_.variables[static_cast<std::size_t>(found[0]->variable)].space == Space::kShared;
  const auto kept = layout_.kept.find(found[0]->name);
  if (!is_register && !is_shared && (kept == layout_.kept.end() || kept->second->space != Space::kShared)) {
    return refuse("its destination is not in shared memory");
  }
  return access_in(Space::kGlobal, *found[1]);
}

// Where no space is named the address is generic, though only shared memory is allowed: it is made one of shared memory.
bool FunctionRewriter::shared_only() {
  const std::vector<Operand*> found = addresses();
  if (found.size() != 1) return refuse("it must have one address");
  for (const Operand& operand : now_.operands) {
    if (operand.kind != Operand::Kind::kAddress && !operand_is_plain(operand)) return false;
  }
  if (space_of(now_) != Space::kGeneric) return access_in(space_of(now_), *found[0]);
  if (found[0]->register_id >= 0) {
    if (!sum("%__fence_t0", *found[0])) return false;
    emit("cvta.to.shared.u64 %__fence_t0, %__fence_t0;");
    *found[0] = Operand{.kind = Operand::Kind::kAddress, .name = "%__fence_t0", .register_id = -2};
    now_.modifiers.insert(now_.modifiers.end() - 1, ".shared");
    emit("{}", text_of(now_));
    return true;
  }
  now_.modifiers.insert(now_.modifiers.end() - 1, ".shared");
  return access_in(Space::kShared, *found[0]);
}

// A fragment's rows lie a stride apart. A stride that leads out of the guarded range becomes 0.
bool FunctionRewriter::matrix() {
  const std::vector<Operand*> found = addresses();
  if (found.size() != 1 || now_.operands.size() > 3) return refuse("it must have one address and at most one stride");
  for (const Operand& operand : now_.operands) {
    if (operand.kind != Operand::Kind::kAddress && !operand_is_plain(operand)) return false;
  }
  const Space space = space_of(now_);
  const Fragment fragment = fragment_of(now_);
  if (fragment.rows < 2 || fragment.rows > 128) return refuse("its shape or its type is not known to the fence");
  if (space == Space::kShared) return access_in(space, *found[0]);
  if (space != Space::kGlobal) return refuse("write .global or .shared: rows from a generic address may be in both");
  const Operand address = *found[0];
  if (address.register_id < 0) return refuse("its address is no register");
  if (options_.guard_bytes < kLargestFragment) {
    return refuse(
        fmt::format("its rows take up to {} bytes, guard_bytes is {}", kLargestFragment, options_.guard_bytes));
  }
  if (!sum("%__fence_t0", address)) return false;
  fence("%__fence_t1", "%__fence_t0");
  ++report_.accesses;
  *found[0] = Operand{.kind = Operand::Kind::kAddress, .name = "%__fence_t1", .register_id = -2};
  if (now_.operands.size() == 3) {
    Operand& stride = now_.operands[2];
    emit("min.u32 %__fence_w0, {}, 0x7fffffff;", text_of(stride));
    emit("mul.wide.u32 %__fence_t0, %__fence_w0, {};", (fragment.rows - 1) * fragment.element_bytes);
    emit("add.s64 %__fence_t0, %__fence_t0, %__fence_t1;");
    emit("setp.ge.u64 %__fence_p0, %__fence_t0, 0x{:x};", options_.base + options_.bytes);
    emit("selp.b32 %__fence_w0, 0, %__fence_w0, %__fence_p0;");
    stride = Operand{.name = "%__fence_w0", .register_id = -2};
  }
  emit("{}", text_of(now_));
  return true;
}

// Registers that hold the address of a .local variable, and nothing else ever, by one definition each.
void FunctionRewriter::find_local_pointers() {
  std::vector<int> definitions(function_.registers.size());
  for (const Item& item : function_.items) {
    for (const int written : registers_written(item.instruction)) ++definitions[static_cast<std::size_t>(written)];
  }
  for (const Item& item : function_.items) {
    const Instruction& instruction = item.instruction;
    const bool is_move = instruction.opcode == "mov" && instruction.operands.size() == 2;
    const bool is_sum = instruction.opcode == "add" && instruction.operands.size() == 3 &&
                        instruction.operands[2].kind == Operand::Kind::kNumber;
    if (!(is_move || is_sum) || !instruction.guard.empty() || instruction.operands[0].register_id < 0) continue;
    const auto to = static_cast<std::size_t>(instruction.operands[0].register_id);
    auto place = local_place(instruction.operands[1]);
    if (!place || definitions[to] != 1) continue;
    if (is_sum) {
      const auto change = static_cast<std::int64_t>(instruction.operands[2].bits);
      if (change < 0 || change > (1 << 24)) continue;
      place->offset += instruction.operands[2].negated ? -change : change;
    }
    local_pointers_[to] = place;
  }
}

std::optional<FunctionRewriter::LocalPlace> FunctionRewriter::local_place(const Operand& operand) const {
  constexpr std::int64_t kFarthest = std::int64_t{1} << 40;
  std::optional<LocalPlace> place;
  if (operand.register_id >= 0) {
    place = local_pointers_[static_cast<std::size_t>(operand.register_id)];
  } else if (operand.variable >= 0 &&
             function_.variables[static_cast<std::size_t>(operand.variable)].space == Space::kLocal) {
    place = LocalPlace{operand.variable, 0};
  }
  if (!place || operand.offset < -kFarthest || operand.offset > kFarthest) return std::nullopt;
  place->offset += operand.offset;
  return place;
}

}  // namespace fairlead::fence
