// What becomes of one instruction: a value, made from the instruction and what is known of its function, and nothing else.
//
//   text -> tree -> FunctionFacts -> plan_instruction() -> InstructionPlan -> write() -> text
//                                    refuses, writes nothing                 refuses what has no room
//
//   add.f32 %f1, %f1, %f2;          AsWritten
//   ld.global.f32 %f1, [%rd4+16];   Access{operand 1, kCompanion}     and.b64, or.b64, ld.global.f32 %f1, [%__fence_a0+16]
//   mov.u64 %rd1, f;                SymbolMove{64, {kNumber, 16}}     mov.b64 %rd1, 0x10
//
// Of the 1,836 instructions of the library's gemm_f32 50 have an Access (fence_bench); nearly all others are AsWritten.
//
// Each kind below is a rule of its own, and there is no way to the output but through one: what has no plan is refused. Plans
// point into the instruction and the facts that they were made from.
//
// Pure. Threads: none of its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <variant>

#include "gpu/fence/confinement.h"
#include "gpu/fence/function_facts.h"
#include "gpu/fence/layout.h"
#include "gpu/fence/ptx.h"

namespace fairlead::fence {

// Nothing in the instruction leads out of the tenant's memory.
struct AsWritten {};

// The instruction has no place in the output: discard.
struct LeftOut {};

// ld, st, atom, cp.async: one operand is an address, which is confined.
struct Access {
  std::size_t operand = 0;
  Confinement confinement;
  bool const_is_global = false;  // .const becomes .global among its modifiers: such variables were placed
};

// ldmatrix, mbarrier without a space: the address is a generic one, though only shared memory is allowed, and is made one of
// .shared.
struct SharedAccess {
  std::size_t operand = 0;
  bool is_register = false;  // else the name of a variable, or a number
};

// wmma.load, wmma.store: rows of .global memory a stride apart. A stride that leads out of the guarded range becomes 0.
struct MatrixAccess {
  std::size_t operand = 0;
  std::uint64_t reach_bytes = 0;  // of the last row behind the first, for each element of the stride
};

// Where the address of a symbol leads, as a register is given it.
struct SymbolAddress {
  enum class Kind : std::uint8_t {
    kFrame,   // `value` behind the beginning of this function's frame
    kSymbol,  // written by its name: it stays in the module
    kNumber,  // `value`: of a variable that was placed its address, of a function its number
  };
  Kind kind = Kind::kNumber;
  std::uint64_t value = 0;
};

// mov: operand 0, of `bits`, is given the address of the symbol in operand 1.
struct SymbolMove {
  unsigned bits = 64;
  SymbolAddress address;
};

// cvta of a symbol, likewise of 64 bits.
struct SymbolConversion {
  SymbolAddress address;
  bool is_global_already = false;  // .global and .const: the address is a generic one as it stands
};

// cvta.const of a register, which holds a global address by now.
struct AddressCopy {};

// brx.idx: an index beyond the table would read a target from behind it.
struct TableBranch {
  std::size_t targets = 0;
};

// shfl: from a lane that is not there comes 0.
struct Shuffle {
  enum class Source : std::uint8_t { kIndexInSegment, kIndex, kUp, kDown, kButterfly };
  Source source = Source::kIndex;
  const Operand* mask = nullptr;  // of .sync
};

// call of a function of this module.
struct DirectCall {
  CallParts parts;
  const Function* callee = nullptr;
};

// call through an address: a choice among the functions it may be of.
struct IndirectCall {
  CallParts parts;
  const Table* table = nullptr;
};

using InstructionPlan = std::variant<AsWritten, LeftOut, Access, SharedAccess, MatrixAccess, SymbolMove,
                                     SymbolConversion, AddressCopy, TableBranch, Shuffle, DirectCall, IndirectCall>;

// The plan, or kInvalidArgument with the reason alone: who asks knows function, line and instruction.
Result<InstructionPlan> plan_instruction(const Instruction& instruction, const FunctionFacts& facts);

}  // namespace fairlead::fence
