// Statements, one after the other. Each handler checks what it needs to know of its operands, writes what goes before, and then
// the instruction itself: what reaches the output was judged by one of these functions, and there is no way past them.
#include "gpu/fence/rewriter.h"

#include <algorithm>

#include "gpu/fence/instruction_set.h"
#include "gpu/fence/parser.h"

namespace fairlead::fence {
namespace {

bool is_table(const Item& item) {
  return item.kind == Item::Kind::kBranchTargets || item.kind == Item::Kind::kCallTargets ||
         item.kind == Item::Kind::kPrototype;
}

}  // namespace

std::string name_in_output(const Function& function) {
  return (function.has_body ? "" : "__fence_") + std::string(function.name);
}

std::string too_large() {
  return "fenced, the module is larger than 4 times what it was and 64 KiB: an access may take ten instructions more, "
         "and a call through an address becomes a choice among all functions that fit it; split the module";
}

std::string signature_text(const Function& function, std::string_view name, const Layout& layout) {
  std::string text = text_of(function.signature, name);
  if (function.is_entry || layout.arena_bytes == 0) return text;
  text.pop_back();
  text += function.signature.parameters.empty() ? "" : ", ";
  return text + ".param .align 8 .b64 __fence_arena, .param .align 8 .b64 __fence_frame)";
}

FunctionRewriter::FunctionRewriter(const Function& function, const Layout& layout, const Clears& clears,
                                   const FenceOptions& options, std::size_t most_bytes)
    : function_(function),
      layout_(layout),
      options_(options),
      clears_(clears),
      most_bytes_(most_bytes),
      plan_(plan_addresses(function, layout, options)),
      read_first_(options.clears_leftovers ? read_before_written(function) : ReadFirst()),
      call_parameters_(parameters_read_before_written(function)),
      mentioned_(function.variables.size()),
      local_pointers_(function.registers.size()),
      fresh_in_(function.registers.size(), -1) {
  report_.name = function.name;
  report_.is_entry = function.is_entry;
  for (std::size_t i = 0; i < function.items.size(); ++i) {
    const Item& item = function.items[i];
    if (item.kind == Item::Kind::kLabel) labels_[item.name] = true;
    if (is_table(item)) tables_[item.name] = i;
    mention(item.instruction.operands);
  }
  find_local_pointers();
  name_anew();
}

bool FunctionRewriter::refuse(std::string_view reason) {
  if (error_) return false;
  const std::string what = source_ == nullptr ? "" : "'" + text_of(*source_) + "': ";
  error_ = Error{Errc::kInvalidArgument, at_line(function_.name, line_) + what + std::string(reason)};
  return false;
}

// Asked after each statement, so that a module cannot take more memory than one statement beyond its bound.
bool FunctionRewriter::has_room() {
  if (text_.size() <= most_bytes_) return true;
  if (!error_) error_ = Error{Errc::kTooLarge, at_line(function_.name, line_) + too_large()};
  return false;
}

std::string FunctionRewriter::guard_text() const {
  if (now_.guard.empty()) return "";
  return fmt::format("@{}{} ", now_.guard_negated ? "!" : "", now_.guard);
}

void FunctionRewriter::emit_guarded(const std::string& text) {
  emit("{}{}", guard_text(), text);
}

// The body first and the prologue after it, as only the body tells which companions, scratch registers and arena are needed.
Result<std::string> FunctionRewriter::run() {
  for (std::size_t i = 0; i < function_.items.size(); ++i) {
    region_ = plan_.regions[i];
    if (!item(function_.items[i]) || !has_room()) return tl::unexpected<Error>(*error_);
  }
  // Nothing runs on behind the end of a function, whatever lies there.
  text_ += "ret;\n";
  report_.added = emitted_ - report_.instructions;
  std::string start = prologue();
  if (error_) return tl::unexpected<Error>(*error_);
  return "{\n" + start + text_ + "}\n";
}

bool FunctionRewriter::item(const Item& item) {
  line_ = item.line;
  if (const auto table = tables_.find(item.name); table != tables_.end() && is_table(item)) {
    // In two scopes that would be two tables, and an index held within one of them may leave the other.
    if (&function_.items[table->second] != &item)
      return refuse(fmt::format("'{}' is the name of two tables", item.name));
  }
  switch (item.kind) {
    case Item::Kind::kOpen:
      text_ += "{\n";
      ++depth_;
      return true;
    case Item::Kind::kClose:
      text_ += "}\n";
      --depth_;
      return true;
    case Item::Kind::kText: text_ += item.text + "\n"; return true;
    // The function's start may set those of its outermost scope.
    case Item::Kind::kRegisters: (depth_ == 0 ? declarations_ : text_) += item.text + "\n"; return true;
    case Item::Kind::kLabel:
      text_ += std::string(item.name) + ":\n";
      forget_lanes();
      return true;
    case Item::Kind::kVariable: return variable(function_.variables[static_cast<std::size_t>(item.index)]);
    case Item::Kind::kBranchTargets: {
      if (!targets_are_labels(tables_.at(item.name))) return false;  // also of one that nothing branches by
      std::string targets;
      for (const std::string_view target : item.targets) targets += (targets.empty() ? "" : ", ") + std::string(target);
      text_ += fmt::format("{}: .branchtargets {};\n", item.name, targets);
      return true;
    }
    case Item::Kind::kCallTargets:
    case Item::Kind::kPrototype: return true;  // indirect calls become direct ones
    case Item::Kind::kInstruction: break;
  }
  source_ = &item.instruction;
  now_ = item.instruction;
  apply_names(now_.operands);
  if (const auto name = register_names_.find(now_.guard_id); name != register_names_.end()) now_.guard = name->second;
  ++report_.instructions;
  if (call_parameters_.behind_label == &item) {
    return refuse("a parameter of a call is used behind a label that stands behind its declaration");
  }
  return instruction();
}

bool FunctionRewriter::variable(const Variable& variable) {
  // One in .local lies in the arena. One in .shared that nobody names NVIDIA's compiler puts behind dynamic memory, whose
  // end could not be told then.
  const auto index = static_cast<std::size_t>(&variable - function_.variables.data());
  if (variable.space == Space::kLocal || (variable.space == Space::kShared && !mentioned_[index])) return true;
  text_ += text_of(variable) + ";\n";
  return !call_parameters_.needs_zeros[index] || store_zeros(variable, text_);
}

bool FunctionRewriter::instruction() {
  const Knowledge known = knowledge_of(now_);
  if (known.family != Family::kRefused) look_for_lanes();
  bool ok = false;
  switch (known.family) {
    case Family::kRefused: return refuse(known.reason);
    case Family::kPlain: ok = plain(); break;
    case Family::kMove: ok = move(); break;
    case Family::kConvert: ok = convert(); break;
    case Family::kAccess:
    case Family::kHint: ok = access(); break;
    case Family::kAsyncCopy: ok = async_copy(); break;
    case Family::kSharedOnly: ok = shared_only(); break;
    case Family::kMatrix: ok = matrix(); break;
    case Family::kShuffle: ok = shuffle(); break;
    case Family::kBranch: ok = branch(); break;
    case Family::kTable: ok = table_branch(); break;
    case Family::kCall: ok = call(); break;
  }
  if (ok) fence_written_registers();
  source_ = nullptr;
  now_ = {};
  return ok;
}

// Behind the instruction and without its predicate: a fence of what the register holds is right on either way.
void FunctionRewriter::fence_written_registers() {
  for (const int written : registers_written(now_)) {
    const auto index = static_cast<std::size_t>(written);
    fresh_in_[index] = -1;
    if (plan_.where[index] != AddressPlan::Where::kAtDefinition) continue;
    fence(companion(written), name_of_register(index));
  }
}

bool FunctionRewriter::plain() {
  if (!operands_are_plain(now_.operands)) return false;
  emit("{}", text_of(now_));
  return true;
}

bool FunctionRewriter::operands_are_plain(const std::vector<Operand>& operands, std::size_t from) {
  return std::all_of(operands.begin() + static_cast<std::ptrdiff_t>(std::min(from, operands.size())), operands.end(),
                     [&](const Operand& operand) { return operand_is_plain(operand); });
}

// A register, a number, or lists of them: nothing that names memory.
// Special registers are values of the hardware, all harmless but for one: where the driver keeps its workspace.
bool FunctionRewriter::operand_is_plain(const Operand& operand) {
  if (operand.kind == Operand::Kind::kNumber) return true;
  if (operand.kind == Operand::Kind::kAddress) return refuse("an address where none is known to stand");
  if (operand.kind == Operand::Kind::kList) return operands_are_plain(operand.elements);
  if (operand.name.starts_with("%envreg")) {
    return refuse("the driver's workspace for cooperative launches lies outside the tenant's memory");
  }
  const bool is_special = operand.name.starts_with("%") || operand.name == "WARP_SZ" || operand.name == "_";
  if (operand.register_id >= 0 || (is_special && operand.variable < 0)) return true;
  return refuse(fmt::format("'{}' is no register, and only mov and cvta may take an address", operand.name));
}

// To a label of this function and nowhere else: the name of a function would be taken for code without its prologue.
bool FunctionRewriter::branch() {
  if (now_.operands.size() != 1 || !labels_.contains(now_.operands[0].name)) {
    return refuse("its target is no label of this function");
  }
  emit("{}", text_of(now_));
  return true;
}

bool FunctionRewriter::targets_are_labels(std::size_t table) {
  if (!tables_of_labels_.insert(table).second) return true;
  for (const std::string_view target : function_.items[table].targets) {
    if (!labels_.contains(target)) return refuse(fmt::format("'{}' is no label of this function", target));
  }
  return true;
}

// An index beyond the table would read a target from behind it.
bool FunctionRewriter::table_branch() {
  const auto table = now_.operands.size() == 2 ? tables_.find(now_.operands[1].name) : tables_.end();
  if (table == tables_.end() || function_.items[table->second].kind != Item::Kind::kBranchTargets) {
    return refuse("its targets are no .branchtargets of this function");
  }
  const Item& targets = function_.items[table->second];
  if (!targets_are_labels(table->second)) return false;
  if (bits_of(now_.operands[0]) != 32) return refuse("its index is no register of 32 bits");
  uses_temporaries_ = true;
  emit("min.u32 %__fence_w0, {}, {};", now_.operands[0].name, targets.targets.size() - 1);
  now_.operands[0].name = "%__fence_w0";
  emit("{}", text_of(now_));
  return true;
}

unsigned FunctionRewriter::bits_of(const Operand& operand) const {
  if (operand.register_id < 0) return 0;
  return function_.registers[static_cast<std::size_t>(operand.register_id)].bits;
}

// A mov of registers passes; one that takes an address is where kernels get addresses from, so that each kind has its rule.
bool FunctionRewriter::move() {
  const bool is_symbol = now_.operands.size() == 2 && now_.operands[1].kind == Operand::Kind::kName &&
                         now_.operands[1].register_id < 0 && !now_.operands[1].name.starts_with("%") &&
                         now_.operands[1].name != "WARP_SZ";
  if (!is_symbol) return plain();
  const Operand& to = now_.operands[0];
  if (to.kind != Operand::Kind::kName || to.register_id < 0) return refuse("an address goes to one register");
  return move_of_symbol(std::string(to.name), bits_of(to), now_.operands[1]);
}

bool FunctionRewriter::move_of_symbol(const std::string& to, unsigned bits, const Operand& symbol) {
  if (const auto place = local_place(symbol)) {
    uses_arena_ = true;
    const std::uint64_t offset =
        layout_.frames.at(function_.name).offsets.at(place->variable) + static_cast<std::uint64_t>(place->offset);
    uses_temporaries_ = true;
    if (bits == 64) {
      emit_guarded(fmt::format("add.s64 {}, %__fence_frame, {};", to, static_cast<std::int64_t>(offset)));
    } else {
      emit("add.s64 %__fence_t0, %__fence_frame, {};", static_cast<std::int64_t>(offset));
      emit_guarded(fmt::format("cvt.u32.u64 {}, %__fence_t0;", to));
    }
    return bits == 64 || bits == 32 || refuse("an address goes to a register of 32 or 64 bits");
  }
  // What the fence has placed is a number by now: of variables their address, of functions their number.
  std::uint64_t value = 0;
  if (symbol.variable >= 0) {
    const Variable& variable = function_.variables[static_cast<std::size_t>(symbol.variable)];
    const bool is_known =
        variable.space == Space::kShared || (variable.space == Space::kParam && function_.is_entry &&
                                             symbol.variable < static_cast<int>(function_.signature.parameters.size()));
    if (!is_known) return refuse("the address of a parameter of a device function is on the stack; copy the parameter");
    emit_guarded(fmt::format("mov.b{} {}, {};", bits, to, text_of(symbol)));
    return true;
  }
  const auto kept = layout_.kept.find(symbol.name);
  if (kept != layout_.kept.end()) {
    emit_guarded(fmt::format("mov.b{} {}, {};", bits, to, text_of(symbol)));
    return true;
  }
  const auto place = layout_.placed.find(symbol.name);
  const auto id = layout_.function_ids.find(symbol.name);
  if (place != layout_.placed.end()) {
    value = place->second.address + static_cast<std::uint64_t>(symbol.offset);
  } else if (id != layout_.function_ids.end() && !symbol.has_offset) {
    value = id->second;
  } else {
    return refuse(fmt::format("'{}' is no variable and no function with a body", symbol.name));
  }
  if (bits != 64) return refuse("an address goes to a register of 64 bits");
  emit_guarded(fmt::format("mov.b64 {}, 0x{:x};", to, value));
  return true;
}

// Global and generic addresses of one place are the same number.
// A cvta changes nothing between global and generic; of shared and local memory it adds where their windows begin.
bool FunctionRewriter::convert() {
  const Space space = space_of(now_);
  if (now_.operands.size() != 2) return refuse("it takes two operands");
  Operand& from = now_.operands[1];
  if (space == Space::kParam) return refuse("parameters have no generic address that a fence lets through");
  if (has_modifier(now_, ".shared::cluster")) return refuse("generic addresses of other blocks look like global ones");
  if (from.kind == Operand::Kind::kName && from.register_id < 0 && now_.operands[0].register_id >= 0) {
    uses_temporaries_ = true;
    const std::string to =
        space == Space::kGlobal || space == Space::kConst ? std::string(now_.operands[0].name) : "%__fence_t2";
    if (!move_of_symbol(to, 64, from)) return false;
    if (to != "%__fence_t2") return true;
    from = Operand{.name = "%__fence_t2", .register_id = -2};
    emit("{}", text_of(now_));
    return true;
  }
  if (!operands_are_plain(now_.operands)) return false;
  if (space == Space::kConst) {
    emit_guarded(fmt::format("mov.b64 {}, {};", text_of(now_.operands[0]), text_of(from)));
    return true;
  }
  emit("{}", text_of(now_));
  return true;
}

}  // namespace fairlead::fence
