// Calls. A function pointer may be forged to lead into the middle of a function, behind its fences. So the address of a
// function is a number of ours, and a call through one becomes a choice among the functions whose address is taken:
//
//   setp.ne.u64 p, %rd1, 16;  @p bra next;  call (r), f, (a);  bra done;  next: ... trap;  done:
//
// Where a module has variables in .local, a call hands over two more parameters, so that the callee knows where its frame is:
//
//   add.s64 t0, frame, 48;                       behind the caller's own 48 bytes
//   st.param.b64 [__fence_arena_out], arena;     what masks go by, the same for all functions of the thread
//   st.param.b64 [__fence_frame_out], t0;
//   call (r), f, (a, __fence_arena_out, __fence_frame_out);
//
// *Instead of* a stack pointer of our own in local memory, which a kernel's stores could reach.
#include "gpu/fence/rewriter.h"

namespace fairlead::fence {

bool FunctionRewriter::call_operands_are_plain(const CallParts& parts) {
  for (const Operand* list : {parts.results, parts.arguments}) {
    if (list == nullptr) continue;
    for (const Operand& operand : list->elements) {
      const bool is_parameter = operand.variable >= 0 && !operand.has_offset &&
                                function_.variables[static_cast<std::size_t>(operand.variable)].space == Space::kParam;
      if (!is_parameter && !operand_is_plain(operand)) return false;
    }
  }
  return true;
}

bool FunctionRewriter::call() {
  const CallParts parts = call_parts(now_);
  if (parts.target == nullptr || parts.target->kind != Operand::Kind::kName) return refuse("it names no function");
  if (!call_operands_are_plain(parts)) return false;
  if (parts.target->register_id >= 0) return indirect_call(parts);
  const Function* callee = layout_.function(parts.target->name);
  if (callee == nullptr || callee->is_entry) return refuse("its target is no function of this module");
  const bool is_known = callee->has_body || callee->name == "vprintf" || callee->name == "__assertfail";
  if (!is_known) {
    return refuse(
        "its target is outside the module, where nothing is fenced; link it in, and take memory from a buffer "
        "of the task instead of malloc");
  }
  return direct_call(parts, *callee, guard_text());
}

// What is handed over has the size of what it is taken for: behind its end lies what other calls have left.
bool FunctionRewriter::fits(const Operand* given, const std::vector<Variable>& wanted) {
  const std::size_t count = given == nullptr ? 0 : given->elements.size();
  if (count != wanted.size()) return refuse(fmt::format("{} parameters or results for {}", count, wanted.size()));
  for (std::size_t i = 0; i < count; ++i) {
    const Operand& operand = given->elements[i];
    const bool is_variable = operand.variable >= 0;
    if (!is_variable && operand.register_id < 0) continue;
    const std::uint64_t bytes =
        is_variable ? function_.variables[static_cast<std::size_t>(operand.variable)].bytes : bits_of(operand) / 8;
    if (bytes != wanted[i].bytes) {
      return refuse(
          fmt::format("'{}' has {} bytes, '{}' has {}", operand.name, bytes, wanted[i].name, wanted[i].bytes));
    }
  }
  return true;
}

bool FunctionRewriter::direct_call(const CallParts& parts, const Function& callee, std::string_view guard) {
  if (!fits(parts.results, callee.signature.results) || !fits(parts.arguments, callee.signature.parameters))
    return false;
  std::string arguments = parts.arguments == nullptr ? "" : text_of(*parts.arguments);
  if (layout_.arena_bytes > 0) {
    uses_arena_ = true;
    uses_temporaries_ = true;
    const auto frame = layout_.frames.find(function_.name);
    text_ += "{\n.param .align 8 .b64 __fence_arena_out;\n.param .align 8 .b64 __fence_frame_out;\n";
    emit("add.s64 %__fence_t0, %__fence_frame, {};", frame == layout_.frames.end() ? 0 : frame->second.bytes);
    emit("st.param.b64 [__fence_arena_out], %__fence_arena;");
    emit("st.param.b64 [__fence_frame_out], %__fence_t0;");
    const bool is_empty = parts.arguments == nullptr || parts.arguments->elements.empty();
    arguments = is_empty ? "(" : arguments.substr(0, arguments.size() - 1) + ", ";
    arguments += "__fence_arena_out, __fence_frame_out)";
  }
  std::string text(guard);
  text += "call";
  for (const std::string_view modifier : now_.modifiers) text += modifier;
  text += " ";
  if (parts.results != nullptr) text += text_of(*parts.results) + ", ";
  text += name_in_output(callee);
  if (!arguments.empty()) text += ", " + arguments;
  emit("{};", text);
  if (layout_.arena_bytes > 0) text_ += "}\n";
  return true;
}

// Found once for each table, as calls by one table may be as many as its targets.
const std::vector<std::string_view>& FunctionRewriter::possible_targets(std::size_t table) {
  static const std::vector<std::string_view> kNone;
  const Item& item = function_.items[table];
  if (item.kind == Item::Kind::kPrototype) {
    const auto found =
        layout_.functions_of_shape.find(shape_of(function_.prototypes[static_cast<std::size_t>(item.index)]));
    return found == layout_.functions_of_shape.end() ? kNone : found->second;
  }
  const auto [known, is_new] = functions_of_table_.try_emplace(table);
  if (is_new) {
    for (const std::string_view name : item.targets) {
      if (layout_.function_ids.contains(name)) known->second.push_back(name);
    }
  }
  return known->second;
}

bool FunctionRewriter::indirect_call(const CallParts& parts) {
  const auto table = tables_.find(parts.prototype);
  if (table == tables_.end() || function_.items[table->second].kind == Item::Kind::kBranchTargets) {
    return refuse("it states neither .callprototype nor .calltargets");
  }
  if (bits_of(*parts.target) != 64) return refuse("its target is no register of 64 bits");
  uses_temporaries_ = true;
  const int first = labels_made_++;
  // Labels of the fence, by number: one for each choice, unique in the function.
  const std::string done = fmt::format("__fence_done_{}", first);
  if (!now_.guard.empty()) emit("@{}{} bra {};", now_.guard_negated ? "" : "!", now_.guard, done);
  for (const std::string_view target : possible_targets(table->second)) {
    const std::string next = fmt::format("__fence_next_{}", labels_made_++);
    emit("setp.ne.u64 %__fence_p2, {}, {};", parts.target->name, layout_.function_ids.at(target));
    emit("@%__fence_p2 bra {};", next);
    if (!direct_call(parts, *layout_.function(target), {})) return false;
    emit("bra {};", done);
    text_ += next + ":\n";
    if (!has_room()) return false;
  }
  // The number is of no function that fits: forged, or of another shape.
  emit("trap;");
  text_ += done + ":\n";
  return true;
}

}  // namespace fairlead::fence
