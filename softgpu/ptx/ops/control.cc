// bra brx call ret exit trap, barriers, and the handlers the decoder puts between instructions. A backward branch or a
// call is where a warp may be suspended: a recursion can run for ever without a branch.
#include "softgpu/ptx/budget.h"
#include "softgpu/ptx/builtin.h"
#include "softgpu/ptx/ops/ops.h"
#include "softgpu/ptx/schedule.h"

#include "softgpu/ptx/isa_begin.h"
namespace softgpu::ptx::SOFTGPU_ISA {
namespace {

using u32 = std::uint32_t;

// All current lanes go to `to`.
inline const Instruction* jump(Warp& warp, const Instruction* from, const Instruction* to) {
  if (to <= from) {
    if (spend_branch(warp, from, to)) [[unlikely]]
      return pause(warp, to);
    if (!warp.whole && !warp.others.empty() && --warp.patience < 0) return give_way(warp, to);
  }
  if (to >= warp.limit) [[unlikely]]
    return switch_group(warp, to);
  return to;
}

const Instruction* branch(Warp& warp, const Instruction* at) {
  return jump(warp, at, at->target);
}

// mode: 1 to branch where the predicate is false.
const Instruction* branch_if(Warp& warp, const Instruction* at) {
  const u32 p = predicate(warp, at->a) ^ (at->mode != 0 ? ~0u : 0u);
  const u32 taken = p & warp.mask;
  if (taken == warp.mask) return jump(warp, at, at->target);
  if (taken != 0) return diverge(warp, at, taken);
  if (at + 1 >= warp.limit) [[unlikely]]
    return switch_group(warp, at + 1);
  return at + 1;
}

// Guards of instructions that cannot be masked: the lanes for which the guard is false go round.
const Instruction* branch_unless(Warp& warp, const Instruction* at) {
  const u32 p = predicate(warp, at->a) ^ (at->mode != 0 ? ~0u : 0u);
  const u32 taken = ~p & warp.mask;
  if (taken == warp.mask) return jump(warp, at, at->target);
  if (taken != 0) return diverge(warp, at, taken);
  return at + 1;
}

const Instruction* branch_indexed(Warp& warp, const Instruction* at) {
  const auto& targets = static_cast<const BranchTargets*>(at->data)->targets;
  const u32* index = source<u32>(warp, at->a);
  const int first = __builtin_ctz(warp.mask);
  u32 same = 0;
  for (int lane = 0; lane < kLanes; ++lane) same |= static_cast<u32>(index[lane] == index[first]) << lane;
  if (index[first] >= targets.size()) return raise(warp, at, FaultKind::kInvalidPc, index[first], first);
  const Instruction* target = targets[index[first]];
  if ((same & warp.mask) == warp.mask) return jump(warp, at, target);
  split_off(warp, at, same);
  return switch_group(warp, target);
}

const Instruction* label(Warp& warp, const Instruction* at) {
  if (at + 1 >= warp.limit) [[unlikely]]
    return switch_group(warp, at + 1);
  return at + 1;
}

const Instruction* guard(Warp& warp, const Instruction* at) {
  const u32 p = predicate(warp, at->a) ^ (at->mode != 0 ? ~0u : 0u);
  if ((p & warp.mask) == 0) return at->target;
  warp.guarded = warp.mask;
  warp.guarded_whole = warp.whole;
  warp.whole = warp.whole && (p & warp.mask) == warp.mask;
  warp.mask &= p;
  return at + 1;
}

const Instruction* unguard(Warp& warp, const Instruction* at) {
  warp.mask = warp.guarded;
  warp.whole = warp.guarded_whole;
  return at + 1;
}

const Instruction* exit_thread(Warp& warp, const Instruction*) {
  return exit_lanes(warp);
}

// ---- calls

// Copies variables, lane after lane, between the frames of caller and callee.
void copy_variables(std::byte* to, const std::vector<FunctionVariable>& to_layout, const std::byte* from,
                    const std::vector<FunctionVariable>& from_layout, u32 mask) {
  const std::size_t count = std::min(to_layout.size(), from_layout.size());
  for (std::size_t i = 0; i < count; ++i) {
    const FunctionVariable& out = to_layout[i];
    const FunctionVariable& in = from_layout[i];
    const std::size_t bytes = std::min(out.bytes, in.bytes);
    for (u32 rest = mask; rest != 0; rest &= rest - 1) {
      const auto lane = static_cast<std::size_t>(__builtin_ctz(rest));
      std::memcpy(to + out.frame_offset + lane * out.bytes, from + in.frame_offset + lane * in.bytes, bytes);
    }
  }
}

const Instruction* enter(Warp& warp, const Instruction* at, const Code& callee) {
  const auto& site = *static_cast<const CallSite*>(at->data);
  const std::byte* caller = warp.frame;
  if (!push_call(warp, at, callee)) return nullptr;
  copy_variables(warp.frame, callee.parameters, caller, site.arguments, warp.mask);
  const Instruction* first = callee.instructions.data();
  return spend(warp, 1) ? pause(warp, first) : first;
}

const Instruction* call(Warp& warp, const Instruction* at) {
  return enter(warp, at, *warp.run->program->functions[at->slot]);
}

const Instruction* call_indirect(Warp& warp, const Instruction* at) {
  const auto* address = source<std::uint64_t>(warp, at->a);
  const int first = __builtin_ctz(warp.mask);
  u32 same = 0;
  for (int lane = 0; lane < kLanes; ++lane) same |= static_cast<u32>(address[lane] == address[first]) << lane;
  const std::uint64_t index = (address[first] - kCodeWindow) / 16;
  const auto& functions = warp.run->program->functions;
  if (index >= functions.size() || functions[index]->instructions.empty() || functions[index]->is_entry) {
    return raise(warp, at, FaultKind::kInvalidPc, address[first], first);
  }
  if ((same & warp.mask) != warp.mask) split_off(warp, at, same);
  return enter(warp, at, *functions[index]);
}

const Instruction* return_from(Warp& warp, const Instruction* at) {
  if (warp.calls.empty()) return exit_lanes(warp);
  const std::byte* callee_frame = warp.frame;
  const CallRecord record = pop_call(warp);
  spend_branch(warp, at, record.callee->instructions.data());  // the next branch or call stops the warp
  const auto& site = *static_cast<const CallSite*>(record.call->data);
  copy_variables(warp.frame, site.results, callee_frame, record.callee->returns, warp.mask);
  const Instruction* next = record.call + 1;
  return warp.others.empty() ? next : switch_group(warp, next);
}

const Instruction* call_builtin(Warp& warp, const Instruction* at) {
  const auto& site = *static_cast<const CallSite*>(at->data);
  return run_builtin(static_cast<Builtin>(at->mode), warp, at, site) ? at + 1 : nullptr;
}

// ---- barriers and traps

// The lanes that go to the same barrier as lane `first`, with the same number of threads.
u32 lanes_at_barrier(const Warp& warp, const Instruction* at, int first) {
  u32 same = ~0u;
  for (const std::int32_t operand : {at->a, at->b}) {
    if (operand < 0 || operand == kNoRow) continue;  // a constant, or none
    const u32* values = source<u32>(warp, operand);
    for (int lane = 0; lane < kLanes; ++lane) same &= ~(static_cast<u32>(values[lane] != values[first]) << lane);
  }
  return same;
}

const Instruction* barrier(Warp& warp, const Instruction* at) {
  const int first = __builtin_ctz(warp.mask);
  const u32 id = source<u32>(warp, at->a)[first];
  const u32 count = at->b == kNoRow ? 0 : source<u32>(warp, at->b)[first];
  const u32 p = at->c == kNoRow ? 0 : predicate(warp, at->c);
  const u32 same = lanes_at_barrier(warp, at, first);
  if ((same & warp.mask) != warp.mask) split_off(warp, at, same);
  if (id >= kNamedBarriers) return raise(warp, at, FaultKind::kIllegalInstruction, id, first);
  return arrive(warp, at, id, count, p);
}

const Instruction* trap(Warp& warp, const Instruction* at) {
  return raise(warp, at, FaultKind::kLaunchFailed, "trap");
}

// Gives the other warps and blocks of this host thread a turn.
const Instruction* yield_warp(Warp& warp, const Instruction* at) {
  if (!warp.others.empty()) {
    const Instruction* next = give_way(warp, at + 1);
    return next == nullptr ? nullptr : pause(warp, next);
  }
  return pause(warp, at + 1);
}

// ---- decoding

void decode_bra(Decoder& decoder) {
  decoder.text.take("uni");
  if (!decoder.text.expect_operands(1, 1)) return;
  const std::string_view target = decoder.text.label(decoder.text.operands()[0]);
  const ast::Instruction& current = decoder.text.current();
  if (current.guard < 0) {
    decoder.writer.emit(branch);
  } else {
    ast::Operand guard_operand;
    guard_operand.kind = ast::Operand::Kind::kRegister;
    guard_operand.index = current.guard;
    const auto a = decoder.rows.read_predicate(guard_operand);
    Instruction& instruction = decoder.writer.emit(branch_if);
    instruction.a = a;
    instruction.mode = current.guard_negated;
  }
  decoder.writer.branch_to(target);
}

void decode_brx(Decoder& decoder) {
  decoder.text.take("uni");
  if (!decoder.text.take("idx") || !decoder.text.expect_operands(2, 2)) return decoder.text.refuse(".idx is missing");
  const auto a = decoder.rows.read(decoder.text.operands()[0], Type::kU32);
  const BranchTargets* targets = decoder.writer.branch_table(decoder.text.label(decoder.text.operands()[1]));
  Instruction& instruction = decoder.writer.emit(branch_indexed);
  instruction.a = a;
  instruction.data = targets;
}

bool add_variables(Decoder& decoder, const ast::Operand& list, std::vector<FunctionVariable>& out) {
  for (const ast::Operand& element : decoder.function.elements_of(list)) {
    const FunctionVariable* variable = decoder.frame.variable(element);
    if (variable == nullptr || variable->space != Space::kParam || variable->frame_offset == kNoRow) {
      decoder.text.refuse("arguments and results of a call must be .param variables");
      return false;
    }
    out.push_back(*variable);
  }
  return true;
}

bool has_layout(const std::vector<FunctionVariable>& given, const std::vector<ast::Variable>& wanted) {
  if (given.size() != wanted.size()) return false;
  for (std::size_t i = 0; i < given.size(); ++i) {
    if (given[i].bytes != wanted[i].bytes) return false;
  }
  return true;
}

void decode_direct_call(Decoder& decoder, const ast::Operand& callee, CallSite site) {
  const Symbol* symbol = decoder.module.find_symbol(callee.name);
  const auto builtin = builtin_from_name(callee.name);
  const bool is_function = symbol != nullptr && symbol->kind == Symbol::Kind::kFunction;
  const ast::Function* function = is_function ? &decoder.module.functions[symbol->value] : nullptr;
  if (function != nullptr && !has_layout(site.arguments, function->parameters)) {
    return decoder.text.refuse("the arguments do not fit function '" + std::string(callee.name) + "'");
  }
  if (builtin && (function == nullptr || !function->has_body)) {
    decoder.module.program.allocates |= *builtin == Builtin::kMalloc;
    Instruction& instruction = decoder.writer.emit(call_builtin);
    instruction.mode = static_cast<std::uint16_t>(*builtin);
    instruction.data = decoder.writer.keep(std::move(site));
    return;
  }
  if (function == nullptr || !function->has_body || function->is_entry) {
    return decoder.text.refuse("function '" + std::string(callee.name) + "' is not defined in the module",
                               LoadError::Kind::kUnresolvedSymbol);
  }
  const CallSite* kept = decoder.writer.keep(std::move(site));
  Instruction& instruction = decoder.writer.emit(call);
  instruction.slot = static_cast<u32>(symbol->value);
  instruction.data = kept;
  instruction.immediate = static_cast<std::int64_t>(decoder.writer.code().local_bytes);
  decoder.writer.code().calls = true;
}

// call (result), callee, (arguments), prototype;
void decode_call(Decoder& decoder) {
  decoder.text.take("uni");
  const auto operands = decoder.text.operands();
  std::size_t next = 0;
  CallSite site;
  const auto is_list = [&] { return next < operands.size() && operands[next].kind == ast::Operand::Kind::kList; };
  if (is_list() && !add_variables(decoder, operands[next++], site.results)) return;
  if (next == operands.size()) return decoder.text.refuse("the function to call is missing", LoadError::Kind::kSyntax);
  const ast::Operand& callee = operands[next++];
  if (is_list() && !add_variables(decoder, operands[next++], site.arguments)) return;
  if (callee.kind == ast::Operand::Kind::kSymbol) return decode_direct_call(decoder, callee, std::move(site));
  const auto a = decoder.rows.read(callee, Type::kU64);
  const CallSite* kept = decoder.writer.keep(std::move(site));
  Instruction& instruction = decoder.writer.emit(call_indirect);
  instruction.a = a;
  instruction.data = kept;
  instruction.immediate = static_cast<std::int64_t>(decoder.writer.code().local_bytes);
  decoder.writer.code().calls = true;
}

void decode_return(Decoder& decoder) {
  decoder.text.take("uni");
  decoder.writer.emit(decoder.text.opcode() == "ret" ? return_from : exit_thread);
}

void decode_trap(Decoder& decoder) {
  decoder.writer.emit(trap);
}
void decode_nanosleep(Decoder& decoder) {
  decoder.text.take("u32");
  decoder.writer.emit(yield_warp);
}
void decode_pmevent(Decoder& decoder) {
  decoder.text.take("mask");
  decoder.writer.emit(nothing);
}

// bar.warp.sync is decoded with the warp instructions.
void emit_reduction(Decoder& decoder) {
  const Type type = decoder.text.take_type();
  const BarrierMode mode = decoder.text.take("popc")  ? BarrierMode::kPopc
                           : decoder.text.take("and") ? BarrierMode::kAnd
                                                      : BarrierMode::kOr;
  if (mode == BarrierMode::kOr) decoder.text.take("or");
  const auto operands = decoder.text.operands();
  if ((mode == BarrierMode::kPopc) != (type == Type::kU32))
    return decoder.text.refuse("result type and reduction do not agree");
  if (!decoder.text.expect_operands(3, 4)) return;
  const auto a = decoder.rows.read(operands[1], Type::kU32);
  const auto b = operands.size() == 4 ? decoder.rows.read(operands[2], Type::kU32) : kNoRow;
  const auto c = decoder.rows.read_predicate(operands.back());
  const auto dst = decoder.rows.write(operands[0], mode == BarrierMode::kPopc ? Type::kU32 : Type::kPred);
  Instruction& instruction = decoder.writer.emit(barrier);
  instruction.dst = dst;
  instruction.a = a;
  instruction.b = b;
  instruction.c = c;
  instruction.mode = static_cast<std::uint16_t>(mode);
}

void decode_bar(Decoder& decoder) {
  if (decoder.text.take("warp")) return decode_warp_barrier(decoder);
  if (decoder.text.take("cluster")) return decode_cluster_barrier(decoder);
  decoder.text.take("cta");
  decoder.text.take("aligned");
  if (decoder.text.take("red")) return emit_reduction(decoder);
  const bool arrives = decoder.text.take("arrive");
  decoder.text.take("sync");
  const auto operands = decoder.text.operands();
  if (!decoder.text.expect_operands(arrives ? 2 : 1, 2)) return;
  const auto a = decoder.rows.read(operands[0], Type::kU32);
  const auto b = operands.size() == 2 ? decoder.rows.read(operands[1], Type::kU32) : kNoRow;
  Instruction& instruction = decoder.writer.emit(barrier);
  instruction.a = a;
  instruction.b = b;
  instruction.mode = static_cast<std::uint16_t>(arrives ? BarrierMode::kArrive : BarrierMode::kSync);
}

constexpr Opcode kOpcodes[] = {
    {"bra", decode_bra, GuardMode::kOwn},
    {"brx", decode_brx, GuardMode::kBranch},
    {"call", decode_call, GuardMode::kBranch},
    {"ret", decode_return, GuardMode::kBranch},
    {"exit", decode_return, GuardMode::kBranch},
    {"trap", decode_trap, GuardMode::kBranch},
    {"bar", decode_bar, GuardMode::kBranch},
    {"barrier", decode_bar, GuardMode::kBranch},
    {"brkpt", decode_trap, GuardMode::kBranch},
    {"nanosleep", decode_nanosleep, GuardMode::kBranch},
    {"pmevent", decode_pmevent},
};

}  // namespace

std::span<const Opcode> control_opcodes() {
  return kOpcodes;
}

void add_control_helpers(InstructionSet& set) {
  set.guard = guard;
  set.unguard = unguard;
  set.label = label;
  set.branch_unless = branch_unless;
  set.function_end = return_from;
}

void add_control_meanings(native::Meanings& meanings) {
  meanings[branch_if] = {native::Action::kBranchIf};
  meanings[branch] = {native::Action::kBranch};
}

}  // namespace softgpu::ptx::SOFTGPU_ISA
#include "softgpu/ptx/isa_end.h"
