// The order of things: judge a line by what is proved before it, then let it prove what it does. A refusal ends the pass, so
// that a fact is never used that rests on a line which was not judged.
#include "gpu/fence/verifier_function.h"

#include <algorithm>
#include <cstdlib>

#include "gpu/fence/parser.h"
#include "gpu/fence/verifier_instructions.h"

namespace fairlead::fence {
namespace {

using Kind = Proven::Kind;

// What one access may take behind its address: a vector, or the line of a cache.
constexpr std::int64_t kWidestAccess = 256;
// A fragment whose rows lie close together, and the last row of any.
constexpr std::uint64_t kLargestFragment = 4096;

}  // namespace

bool FunctionVerifier::refuse(std::string_view reason) {
  if (!refusal_.empty()) return false;
  refusal_ =
      at_line(function_.name, line_) + (now_ == nullptr ? "" : "'" + text_of(*now_) + "': ") + std::string(reason);
  return false;
}

bool FunctionVerifier::run() {
  line_ = function_.line;
  if (!find_names()) return false;
  for (const Item& next : function_.items) {
    line_ = next.line;
    now_ = next.kind == Item::Kind::kInstruction ? &next.instruction : nullptr;
    if (!item(next)) return false;
  }
  // What lies behind a function's last line would run next.
  const bool ends = now_ != nullptr && now_->opcode == "ret" && now_->guard.empty();
  return ends || refuse("the function does not end with a return");
}

// All labels first, as branches lead forwards, too. A table's name must be its only one: a branch by the other of two would be
// held within the wrong table.
bool FunctionVerifier::find_names() {
  for (const Item& item : function_.items) {
    if (item.kind == Item::Kind::kLabel) labels_[item.name] = true;
  }
  for (const Item& item : function_.items) {
    if (item.kind != Item::Kind::kBranchTargets) continue;
    line_ = item.line;
    if (!tables_.try_emplace(item.name, item.targets.size()).second) return refuse("two tables have one name");
    const auto is_label = [&](std::string_view target) { return labels_.contains(target); };
    if (!std::ranges::all_of(item.targets, is_label)) return refuse("a table leads to what is no label");
  }
  return true;
}

bool FunctionVerifier::item(const Item& item) {
  switch (item.kind) {
    case Item::Kind::kOpen:
    case Item::Kind::kClose:
    case Item::Kind::kText:
    case Item::Kind::kRegisters:
    case Item::Kind::kBranchTargets: return true;
    case Item::Kind::kLabel: proofs_.pass_label(); return true;
    case Item::Kind::kVariable: return variable(function_.variables[static_cast<std::size_t>(item.index)]);
    case Item::Kind::kCallTargets:
    case Item::Kind::kPrototype: return refuse("calls through registers have no place in a fenced module");
    case Item::Kind::kInstruction: break;
  }
  if (!instruction()) return false;
  proofs_.add(*now_);
  return true;
}

// Of .local there is the arena alone, so that whatever has an address there is bounded by it.
bool FunctionVerifier::variable(const Variable& variable) {
  if (variable.space == Space::kShared || variable.space == Space::kParam) return true;
  const bool is_arena = variable.space == Space::kLocal && variable.name == kArenaName && function_.is_entry;
  return is_arena || refuse(fmt::format("variable '{}' has no place in a fenced function", variable.name));
}

bool FunctionVerifier::instruction() {
  switch (reach_of(*now_)) {
    case Reach::kRefused: return refuse("the verifier does not know this instruction");
    case Reach::kRegisters: return operands_are_plain(now_->operands);
    case Reach::kMove: return move();
    case Reach::kMemory:
    case Reach::kSharedOnly:
    case Reach::kRows: return memory(1);
    case Reach::kCopy: return memory(2);
    case Reach::kBranch: return branch();
    case Reach::kTable: return table();
    case Reach::kCall: return call();
  }
  return refuse("it is of no kind");
}

bool FunctionVerifier::operands_are_plain(const std::vector<Operand>& operands) {
  return std::ranges::all_of(operands, [&](const Operand& operand) { return is_plain(operand); });
}

// A register, a number, a value that hardware has, or lists of them.
bool FunctionVerifier::is_plain(const Operand& operand) {
  if (operand.kind == Operand::Kind::kNumber) return true;
  if (operand.kind == Operand::Kind::kAddress) return refuse("an address where none belongs");
  if (operand.kind == Operand::Kind::kList) return operands_are_plain(operand.elements);
  if (operand.register_id >= 0) return true;
  if (operand.name.starts_with("%envreg")) return refuse("it reads where the driver's own memory is");
  const bool is_special = operand.name.starts_with("%") || operand.name == "WARP_SZ" || operand.name == "_";
  return (is_special && operand.variable < 0) || refuse(fmt::format("'{}' is no register", operand.name));
}

bool FunctionVerifier::move() {
  const std::vector<Operand>& operands = now_->operands;
  const bool is_symbol = operands.size() == 2 && operands[1].kind == Operand::Kind::kName &&
                         operands[1].register_id < 0 && !operands[1].name.starts_with("%") &&
                         operands[1].name != "WARP_SZ";
  if (!is_symbol) return operands_are_plain(operands);
  return is_plain(operands[0]) && names_what_may_be_named(operands[1]);
}

// An address is harmless where accesses by it are bounded: to shared and constant memory, the arena, an entry's parameters.
bool FunctionVerifier::names_what_may_be_named(const Operand& symbol) {
  if (symbol.variable < 0) {
    return names_.variables.contains(symbol.name) || refuse(fmt::format("the address of '{}' is taken", symbol.name));
  }
  const Variable& variable = function_.variables[static_cast<std::size_t>(symbol.variable)];
  const bool is_of_entry =
      function_.is_entry && static_cast<std::size_t>(symbol.variable) < function_.signature.parameters.size();
  return variable.space != Space::kParam || is_of_entry || refuse("the address of a parameter is on the stack");
}

bool FunctionVerifier::branch() {
  const std::vector<Operand>& operands = now_->operands;
  const bool is_label = operands.size() == 1 && operands[0].kind == Operand::Kind::kName &&
                        operands[0].register_id < 0 && labels_.contains(operands[0].name);
  if (!is_label) return refuse("it leads to no label of this function");
  proofs_.pass_branch();
  return true;
}

bool FunctionVerifier::table() {
  const std::vector<Operand>& operands = now_->operands;
  const auto table = operands.size() == 2 ? tables_.find(operands[1].name) : tables_.end();
  if (table == tables_.end()) return refuse("it names no table of this function");
  const Proven index = proofs_.of(operands[0]);
  const bool is_within = index.kind == Kind::kAtMost && index.number < table->second && bits_of(operands[0]) == 32;
  if (!is_within) return refuse(fmt::format("nothing holds its index within the table's {} labels", table->second));
  proofs_.pass_branch();
  return true;
}

// (results), function, (arguments)
bool FunctionVerifier::call() {
  const std::vector<Operand>& operands = now_->operands;
  const auto is_list = [&](std::size_t i) { return i < operands.size() && operands[i].kind == Operand::Kind::kList; };
  const std::size_t target = is_list(0) ? 1 : 0, end = target + (is_list(target + 1) ? 2 : 1);
  if (operands.size() != end) return refuse("it is no call of one function by its name");
  const Operand& name = operands[target];
  const bool is_name = name.kind == Operand::Kind::kName && name.register_id < 0 && name.variable < 0;
  const auto callee = is_name ? names_.functions.find(name.name) : names_.functions.end();
  if (callee == names_.functions.end()) return refuse("its target is no function with a body of this module");
  if (callee->second->is_entry) return refuse("its target is a kernel");
  const Signature& signature = callee->second->signature;
  const Operand* const arguments = is_list(target + 1) ? &operands[target + 1] : nullptr;
  if (!fit(target == 1 ? operands.data() : nullptr, signature.results) || !fit(arguments, signature.parameters)) {
    return false;
  }
  FrameUse::Call call;
  for (std::size_t i = 0; i < signature.parameters.size(); ++i) {
    if (!hands_over(arguments->elements[i], signature.parameters[i], call)) return false;
  }
  call.callee = callee->second;
  frame_use_.calls.push_back(call);
  return true;
}

bool FunctionVerifier::fit(const Operand* given, const std::vector<Variable>& wanted) {
  if ((given == nullptr ? 0 : given->elements.size()) != wanted.size())
    return refuse("it has too few or too many operands");
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const Operand& operand = given->elements[i];
    const bool is_parameter = operand.variable >= 0 && !operand.has_offset &&
                              function_.variables[static_cast<std::size_t>(operand.variable)].space == Space::kParam;
    if (!is_parameter && !is_plain(operand)) return false;
    if (!is_parameter && operand.register_id < 0) continue;  // a number
    const std::uint64_t bytes =
        is_parameter ? function_.variables[static_cast<std::size_t>(operand.variable)].bytes : bits_of(operand) / 8;
    if (bytes != wanted[i].bytes) return refuse(fmt::format("'{}' has not the size of its parameter", operand.name));
  }
  return true;
}

// The callee takes what is in these two for its arena and its frame.
bool FunctionVerifier::hands_over(const Operand& argument, const Variable& parameter, FrameUse::Call& call) {
  const bool is_arena = parameter.name == kArenaName, is_frame = parameter.name == kFrameName;
  if (!is_arena && !is_frame) return true;
  const Proven given = proofs_.of_parameter(argument.variable);
  if (is_arena) return given.kind == Kind::kArena || refuse("what it hands over is not the arena");
  const bool begins_arena = given.kind == Kind::kArena && function_.is_entry;
  if (given.kind != Kind::kFrame && !begins_arena) return refuse("what it hands over is no place in the arena");
  call.step = begins_arena ? 0 : given.number;
  return true;
}

// All operands but the addresses are plain, and there are as many addresses as are judged: none is left over.
bool FunctionVerifier::memory(std::size_t addresses) {
  std::vector<const Operand*> found;
  for (const Operand& operand : now_->operands) {
    if (operand.kind != Operand::Kind::kAddress) {
      if (!is_plain(operand)) return false;
    } else {
      found.push_back(&operand);
      if (!operand.elements.empty()) return refuse("its address has coordinates");
    }
  }
  if (found.size() != addresses) return refuse(fmt::format("it has {} addresses, not {}", found.size(), addresses));
  const NamedSpace named = named_space(*now_);
  const Reach reach = reach_of(*now_);
  if (reach == Reach::kCopy) return shared(*found[0]) && global(*found[1]);
  if (!named.is_clear) return refuse("it names two spaces");
  if (reach == Reach::kSharedOnly && named.space != Space::kShared) return refuse("it does not name shared memory");
  if (reach == Reach::kRows && named.space != Space::kShared) return rows(*found[0]);
  return access(named.space, *found[0]);
}

// The first row is an access like any other. The last one begins stride * (rows - 1) behind it, and those between lie between.
bool FunctionVerifier::rows(const Operand& address) {
  if (named_space(*now_).space != Space::kGlobal) return refuse("its rows may lie in two spaces");
  if (proofs_.of_address(address).kind != Kind::kInRange || address.offset != 0) return global(address);
  if (options_.guard_bytes < kLargestFragment) return refuse("its rows may lie behind the guard");
  const std::uint64_t step = bytes_per_stride(*now_);
  if (step == 0 || now_->operands.size() > 3) return refuse("the verifier does not know its shape");
  if (now_->operands.size() < 3) return true;
  const Proven stride = proofs_.of(now_->operands[2]);
  const bool is_safe =
      stride.kind == Kind::kStride && stride.number >= step && stride.from == proofs_.latest_write(address);
  return is_safe || refuse("nothing holds its last row in the range");
}

bool FunctionVerifier::access(Space space, const Operand& address) {
  const bool is_read = now_->opcode == "ld" || now_->opcode == "ldu" || now_->opcode.starts_with("prefetch");
  const bool is_atomic = now_->opcode == "atom" || now_->opcode == "red";
  switch (space) {
    case Space::kGlobal: return global(address);
    case Space::kGeneric: return generic(address);
    case Space::kShared: return shared(address);
    case Space::kLocal: return is_atomic ? refuse("no such access is known there") : local(address);
    case Space::kConst: return is_read ? constant(address) : refuse("constants are written");
    case Space::kParam:
      if (is_atomic) return refuse("no such access is known there");
      if (address.variable >= 0) return parameter(address);
      return (function_.is_entry && is_read) || refuse("a parameter is not reached by its name");
  }
  return refuse("it is in no space");
}

// Offset 0 needs no guard: hardware wants accesses aligned to their width, and the range is a multiple of every width.
bool FunctionVerifier::is_within_guard(std::int64_t offset) const {
  const auto guard = static_cast<std::int64_t>(options_.guard_bytes);
  return offset == 0 || (offset >= -guard && offset <= guard - kWidestAccess);
}

bool FunctionVerifier::global(const Operand& address) {
  if (proofs_.of_address(address).kind != Kind::kInRange) {
    return refuse(fmt::format("nothing holds '{}' in the tenant's range", text_of(address)));
  }
  return is_within_guard(address.offset) || refuse(fmt::format("offset {} leaves the guard zone", address.offset));
}

// Shared memory and the arena are windows beside each other; an offset, which is added behind the choice, could lead across.
bool FunctionVerifier::generic(const Operand& address) {
  const Proven proven = proofs_.of_address(address);
  if (proven.kind != Kind::kMayBeAccessed) return global(address);
  if (address.offset != 0) return refuse("an offset may lead from one kind of memory to another");
  const std::uint64_t width = width_of(*now_).bytes;
  return proven.number + width <= names_.smallest_arena || refuse("it may leave the arena of local memory");
}

bool FunctionVerifier::local(const Operand& address) {
  const std::uint64_t width = width_of(*now_).bytes;
  const bool is_near = address.offset >= 0 && address.offset <= (1 << 30);
  const std::uint64_t end = is_near ? static_cast<std::uint64_t>(address.offset) + width : 0;
  if (address.variable >= 0) {
    const Variable& variable = function_.variables[static_cast<std::size_t>(address.variable)];
    const bool is_inside = is_near && variable.space == Space::kLocal && end <= variable.bytes;
    return is_inside || refuse("it leaves the arena of local memory");
  }
  const Proven proven = proofs_.of_address(address);
  if (proven.kind == Kind::kInArena) {
    const bool is_inside =
        address.offset == 0 && proven.number <= names_.smallest_arena && width <= names_.smallest_arena - proven.number;
    return is_inside || refuse("it may leave the arena of local memory");
  }
  const bool is_frame = proven.kind == Kind::kFrame || (proven.kind == Kind::kArena && function_.is_entry);
  if (!is_frame || !is_near) return refuse("nothing holds it in the arena of local memory");
  frame_use_.bytes = std::max(frame_use_.bytes, proven.number + end);
  return true;
}

// By number, by register, or by the name of a variable there; any other name would be an address in some other memory.
bool FunctionVerifier::shared(const Operand& address) {
  if (address.name.empty() || address.register_id >= 0) return true;
  if (address.variable >= 0) {
    const Variable& variable = function_.variables[static_cast<std::size_t>(address.variable)];
    return variable.space == Space::kShared || refuse("its address is not in shared memory");
  }
  const auto found = names_.variables.find(address.name);
  const bool is_shared = found != names_.variables.end() && found->second->space == Space::kShared;
  return is_shared || refuse("its address is not in shared memory");
}

bool FunctionVerifier::parameter(const Operand& address) {
  const Variable& variable = function_.variables[static_cast<std::size_t>(address.variable)];
  const Width width = width_of(*now_);
  const bool is_inside = variable.space == Space::kParam && width.is_known && address.offset >= 0 &&
                         static_cast<std::uint64_t>(address.offset) <= variable.bytes &&
                         width.bytes <= variable.bytes - static_cast<std::uint64_t>(address.offset);
  if (!is_inside) return refuse("it is not inside of the parameter");
  const std::size_t handed = function_.signature.results.size() + function_.signature.parameters.size();
  const bool is_handed = static_cast<std::size_t>(address.variable) < handed;
  // PTX would let a function store to its own parameters; then the arena would be where it says.
  const bool is_kept = is_handed && (variable.name == kArenaName || variable.name == kFrameName);
  return !is_kept || now_->opcode == "ld" || refuse("the function's own arena is overwritten");
}

// By register the constant bank bounds it. By name it must be a variable that the module has.
bool FunctionVerifier::constant(const Operand& address) {
  if (address.name.empty() || address.register_id >= 0) return true;
  const auto found = address.variable >= 0 ? names_.variables.end() : names_.variables.find(address.name);
  const bool is_inside = found != names_.variables.end() && found->second->space == Space::kConst &&
                         address.offset >= 0 && static_cast<std::uint64_t>(address.offset) < found->second->bytes;
  return is_inside || refuse("it is not inside of a variable in .const");
}

std::uint64_t FunctionVerifier::bits_of(const Operand& operand) const {
  return operand.register_id < 0 ? 0 : function_.registers[static_cast<std::size_t>(operand.register_id)].bits;
}

}  // namespace fairlead::fence
