// The kinds of plans that take a line or two, and what stands around each instruction.
#include "gpu/fence/function_writer.h"

#include <type_traits>
#include <variant>

#include "gpu/fence/address_plan.h"

namespace fairlead::fence {
namespace {

void write(AsWritten, const Instruction& instruction, FunctionWriter& to) {
  to.text.line(instruction);
}

void write(LeftOut, const Instruction&, FunctionWriter&) {}

// `name`, of `bits`, is given the address of the instruction's second operand.
void write_address(const SymbolAddress& address, std::string_view name, unsigned bits, const Instruction& instruction,
                   FunctionWriter& to) {
  switch (address.kind) {
    case SymbolAddress::Kind::kFrame: {
      const std::string_view sum = to.scratch.address(0), frame = to.scratch.frame();
      const auto offset = static_cast<std::int64_t>(address.value);
      if (bits == 64) return to.text.guarded(instruction, "add.s64 {}, {}, {};", name, frame, offset);
      to.text.line("add.s64 {}, {}, {};", sum, frame, offset);
      return to.text.guarded(instruction, "cvt.u32.u64 {}, {};", name, sum);
    }
    case SymbolAddress::Kind::kSymbol:
      return to.text.guarded(instruction, "mov.b{} {}, {};", bits, name, text_of(instruction.operands[1]));
    case SymbolAddress::Kind::kNumber: return to.text.guarded(instruction, "mov.b64 {}, 0x{:x};", name, address.value);
  }
}

void write(const SymbolMove& plan, const Instruction& instruction, FunctionWriter& to) {
  write_address(plan.address, instruction.operands[0].name, plan.bits, instruction, to);
}

void write(const SymbolConversion& plan, const Instruction& instruction, FunctionWriter& to) {
  const std::string_view between = to.scratch.address(2);
  if (plan.is_global_already) {
    return write_address(plan.address, instruction.operands[0].name, 64, instruction, to);
  }
  write_address(plan.address, between, 64, instruction, to);
  Instruction conversion = instruction;
  conversion.operands[1] = Operand{.name = between, .elements = {}};
  to.text.line(conversion);
}

void write(AddressCopy, const Instruction& instruction, FunctionWriter& to) {
  to.text.guarded(instruction, "mov.b64 {}, {};", text_of(instruction.operands[0]), text_of(instruction.operands[1]));
}

void write(const TableBranch& plan, const Instruction& instruction, FunctionWriter& to) {
  const std::string_view index = to.scratch.word(0);
  to.text.line("min.u32 {}, {}, {};", index, instruction.operands[0].name, plan.targets - 1);
  Instruction branch = instruction;
  branch.operands[0].name = index;
  to.text.line(branch);
}

// Behind the instruction and without its predicate: a fence of what the register holds is right on either way.
void write_companions(const Instruction& instruction, FunctionWriter& to) {
  for (const int id : registers_written(instruction)) {
    to.fresh_in[static_cast<std::size_t>(id)] = -1;
    if (to.facts.addresses.where[static_cast<std::size_t>(id)] != AddressPlan::Where::kAtDefinition) continue;
    write_fence(to.scratch.companion(id), name_of_register(to.facts, id), to);
  }
}

}  // namespace

Status write(const InstructionPlan& plan, const Instruction& instruction, FunctionWriter& to) {
  write_lane_check(instruction, to);
  Status written = std::visit(
      [&](const auto& kind) -> Status {
        using Kind = std::decay_t<decltype(kind)>;
        if constexpr (std::is_same_v<Kind, IndirectCall>) {
          return write(kind, instruction, to);
        } else {
          write(kind, instruction, to);
          return {};
        }
      },
      plan);
  if (written) write_companions(instruction, to);
  return written;
}

}  // namespace fairlead::fence
