// Accesses to memory, with their addresses confined (confinement.h). Scratch registers: t0 is the address as written, t1 as fenced, t2 the way between.
//
// .global, kCompanion and kSum:
//
//   and.b64 a0, %rd1, mask;  or.b64 a0, a0, base;              ld.global.u32 %r1, [a0+16];
//   add.s64 t0, %rd1, 65536;  and.b64 t1, t0, mask;  or ...;   ld.global.u32 %r1, [t1];
//
// kGeneric, where the module has shared and local memory: both are told apart from global by the address itself. A kernel's
// shared memory is its block's alone, so that an address there stays what it is:
//
//   mov.b64 t0, %rd1;  and, or into t1;
//   isspacep.shared p0, t0;  selp.b64 t1, t0, t1, p0;
//   isspacep.local p1, t0;  sub, and, add: t0 into the arena;  selp.b64 t1, t0, t1, p1;
//   ld.u32 %r1, [t1];
//
// .local goes by `sub, and, add` alone, or needs nothing where the place is a constant. A constant address of .global is fenced
// here rather than at run time, to a mov. So an access takes up to ten lines more, and most take none or two.
#include <algorithm>
#include <string>
#include <utility>

#include "gpu/fence/function_writer.h"

namespace fairlead::fence {
namespace {

// name = register + offset, in 64 bits. REQUIRES: can_be_summed().
void write_sum(std::string_view name, const Operand& address, FunctionWriter& to) {
  const bool is_moved = address.offset == 0;
  if (bits_of(to.facts, address) == 32) {
    to.text.line("cvt.u64.u32 {}, {};", name, address.name);
    if (!is_moved) to.text.line("add.s64 {}, {}, {};", name, name, address.offset);
  } else if (is_moved) {
    to.text.line("mov.b64 {}, {};", name, address.name);
  } else {
    to.text.line("add.s64 {}, {}, {};", name, address.name, address.offset);
  }
}

std::string_view write_constant(std::uint64_t address, FunctionWriter& to) {
  const std::string_view name = to.scratch.address(1);
  const FenceOptions& options = to.facts.options;
  to.text.line("mov.b64 {}, 0x{:x};", name, (address & (options.bytes - 1)) | options.base);
  return name;
}

std::string write_companion(const Operand& address, FunctionWriter& to) {
  const auto index = static_cast<std::size_t>(address.register_id);
  std::string name = to.scratch.companion(address.register_id);
  if (to.facts.addresses.where[index] == AddressPlan::Where::kAtUse && to.fresh_in[index] != to.region) {
    write_fence(name, address.name, to);
    to.fresh_in[index] = to.region;
  }
  if (address.offset != 0) name += offset_text(address.offset);
  return name;
}

std::string_view write_fenced_sum(const Operand& address, FunctionWriter& to) {
  const std::string_view sum = to.scratch.address(0), fenced = to.scratch.address(1);
  write_sum(sum, address, to);
  write_fence(fenced, sum, to);
  return fenced;
}

// (x - arena) & mask + arena: an address inside stays what it is, as the arena is where offsets begin.
void write_bound(std::string_view name, std::string_view arena, FunctionWriter& to) {
  to.text.line("sub.s64 {}, {}, {};", name, name, arena);
  to.text.line("and.b64 {}, {}, 0x{:x};", name, name, to.facts.layout.arena_bytes - 1);
  to.text.line("add.s64 {}, {}, {};", name, name, arena);
}

// Addresses in the window of shared memory stay what they are, those of local memory are kept to the arena; all others are
// fenced.
std::string_view write_generic(const Confinement& by, const Operand& address, FunctionWriter& to) {
  const std::string_view fenced = write_fenced_sum(address, to), sum = to.scratch.address(0);
  const auto choose = [&](std::string_view space, std::string_view predicate) {
    to.text.line("isspacep.{} {}, {};", space, predicate, sum);
  };
  const auto take = [&](std::string_view predicate) {
    to.text.line("selp.b64 {}, {}, {}, {};", fenced, sum, fenced, predicate);
  };
  if (by.may_be_shared) {
    choose("shared", to.scratch.predicate(0));
    take(to.scratch.predicate(0));
  }
  if (by.may_be_local) {
    choose("local", to.scratch.predicate(1));
    write_bound(sum, to.scratch.generic_arena(), to);
    take(to.scratch.predicate(1));
  }
  return fenced;
}

std::string frame_text(std::uint64_t place, FunctionWriter& to) {
  return to.facts.function.is_entry ? fmt::format("__fence_arena+{}", place)
                                    : fmt::format("{}+{}", to.scratch.frame(), place);
}

std::string_view write_in_arena(const Operand& address, FunctionWriter& to) {
  const std::string_view sum = to.scratch.address(0);
  write_sum(sum, address, to);
  write_bound(sum, to.scratch.arena(), to);
  return sum;
}

// What stands between the brackets then.
std::string write_confined(const Confinement& by, const Operand& address, FunctionWriter& to) {
  using Way = Confinement::Way;
  switch (by.way) {
    case Way::kConstant: return std::string(write_constant(by.place, to));
    case Way::kCompanion: return write_companion(address, to);
    case Way::kSum: return std::string(write_fenced_sum(address, to));
    case Way::kGeneric: return std::string(write_generic(by, address, to));
    case Way::kFrame: return frame_text(by.place, to);
    case Way::kArena: break;
  }
  return std::string(write_in_arena(address, to));
}

bool is_local(const Confinement& confinement) {
  return confinement.way == Confinement::Way::kFrame || confinement.way == Confinement::Way::kArena;
}

Operand address_operand(std::string_view text) {
  return Operand{.kind = Operand::Kind::kAddress, .name = text, .elements = {}};
}

}  // namespace

void write_fence(std::string_view name, std::string_view from, FunctionWriter& to) {
  to.text.line("and.b64 {}, {}, 0x{:x};", name, from, to.facts.options.bytes - 1);
  to.text.line("or.b64 {}, {}, 0x{:x};", name, name, to.facts.options.base);
}

void write(const Access& plan, const Instruction& instruction, FunctionWriter& to) {
  const std::string confined = write_confined(plan.confinement, instruction.operands[plan.operand], to);
  to.accesses += is_local(plan.confinement) ? 0 : 1;
  Instruction access = instruction;
  if (plan.const_is_global) {
    std::ranges::replace_if(
        access.modifiers, [](std::string_view modifier) { return modifier.starts_with(".const"); }, ".global");
  }
  access.operands[plan.operand] = address_operand(confined);
  to.text.line(access);
}

void write(const SharedAccess& plan, const Instruction& instruction, FunctionWriter& to) {
  Instruction access = instruction;
  if (plan.is_register) {
    const std::string_view address = to.scratch.address(0);
    write_sum(address, instruction.operands[plan.operand], to);
    to.text.line("cvta.to.shared.u64 {}, {};", address, address);
    access.operands[plan.operand] = address_operand(address);
  }
  access.modifiers.insert(access.modifiers.end() - 1, ".shared");
  to.text.line(access);
}

void write(const MatrixAccess& plan, const Instruction& instruction, FunctionWriter& to) {
  const std::string_view fenced = write_fenced_sum(instruction.operands[plan.operand], to);
  ++to.accesses;
  Instruction access = instruction;
  access.operands[plan.operand] = address_operand(fenced);
  if (access.operands.size() == 3) {
    const std::string_view stride = to.scratch.word(0), last = to.scratch.address(0),
                           leads_out = to.scratch.predicate(0);
    to.text.line("min.u32 {}, {}, 0x7fffffff;", stride, text_of(instruction.operands[2]));
    to.text.line("mul.wide.u32 {}, {}, {};", last, stride, plan.reach_bytes);
    to.text.line("add.s64 {}, {}, {};", last, last, fenced);
    to.text.line("setp.ge.u64 {}, {}, 0x{:x};", leads_out, last, to.facts.options.base + to.facts.options.bytes);
    to.text.line("selp.b32 {}, 0, {}, {};", stride, stride, leads_out);
    access.operands[2] = Operand{.name = stride, .elements = {}};
  }
  to.text.line(access);
}

}  // namespace fairlead::fence
