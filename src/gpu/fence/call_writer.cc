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
#include <string>

#include "gpu/fence/call_plan.h"
#include "gpu/fence/function_writer.h"

namespace fairlead::fence {
namespace {

// The frame that the callee's begins behind, handed over in parameters of a scope around the call.
void write_arena_parameters(FunctionWriter& to) {
  const std::string_view frame = to.scratch.frame(), arena = to.scratch.arena(), next = to.scratch.address(0);
  const auto own = to.facts.layout.frames.find(to.facts.function.name);
  to.text.raw("{\n.param .align 8 .b64 __fence_arena_out;\n.param .align 8 .b64 __fence_frame_out;\n");
  to.text.line("add.s64 {}, {}, {};", next, frame, own == to.facts.layout.frames.end() ? 0 : own->second.bytes);
  to.text.line("st.param.b64 [__fence_arena_out], {};", arena);
  to.text.line("st.param.b64 [__fence_frame_out], {};", next);
}

std::string arguments_text(const Operand* arguments, bool has_arena) {
  std::string text = arguments == nullptr ? "" : text_of(*arguments);
  if (!has_arena) return text;
  const bool is_empty = arguments == nullptr || arguments->elements.empty();
  text = is_empty ? "(" : text.substr(0, text.size() - 1) + ", ";
  return text + "__fence_arena_out, __fence_frame_out)";
}

// The call of one function, without the predicate of the module's own.
std::string call_text(const CallParts& parts, const Function& callee, const Instruction& instruction, bool has_arena) {
  std::string text = "call";
  for (const std::string_view modifier : instruction.modifiers) text += modifier;
  text += " ";
  if (parts.results != nullptr) text += text_of(*parts.results) + ", ";
  text += name_in_output(callee);
  const std::string arguments = arguments_text(parts.arguments, has_arena);
  if (!arguments.empty()) text += ", " + arguments;
  return text;
}

// Without a predicate where `guard` is null.
void write_call(const CallParts& parts, const Function& callee, const Instruction& instruction,
                const Instruction* guard, FunctionWriter& to) {
  const bool has_arena = to.facts.layout.arena_bytes > 0;
  if (has_arena) write_arena_parameters(to);
  const std::string text = call_text(parts, callee, instruction, has_arena);
  if (guard != nullptr) {
    to.text.guarded(*guard, "{};", text);
  } else {
    to.text.line("{};", text);
  }
  if (has_arena) to.text.raw("}\n");
}

}  // namespace

void write(const DirectCall& plan, const Instruction& instruction, FunctionWriter& to) {
  write_call(plan.parts, *plan.callee, instruction, &instruction, to);
}

Status write(const IndirectCall& plan, const Instruction& instruction, FunctionWriter& to) {
  const std::string_view is_other = to.scratch.predicate(2);
  // Labels of the fence, by number: one for each choice, unique in the function.
  const std::string done = fmt::format("__fence_done_{}", to.labels_made++);
  if (!instruction.guard.empty()) {
    to.text.line("@{}{} bra {};", instruction.guard_negated ? "" : "!", instruction.guard, done);
  }
  for (const std::string_view name : plan.table->possible_targets()) {
    const Function& target = *to.facts.layout.function(name);
    const std::string next = fmt::format("__fence_next_{}", to.labels_made++);
    to.text.line("setp.ne.u64 {}, {}, {};", is_other, plan.parts.target->name, to.facts.layout.function_ids.at(name));
    to.text.line("@{} bra {};", is_other, next);
    if (Status fitting = fits(plan.parts, target, to.facts); !fitting) return fitting;
    write_call(plan.parts, target, instruction, nullptr, to);
    to.text.line("bra {};", done);
    to.text.raw(next + ":\n");
    if (!to.text.has_room()) return fail(Error{Errc::kTooLarge, {}});
  }
  // The number is of no function that fits: forged, or of another shape.
  to.text.line("trap;");
  to.text.raw(done + ":\n");
  return {};
}

}  // namespace fairlead::fence
