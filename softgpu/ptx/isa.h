// The instruction set as data: which opcodes exist and how each is decoded. There is one InstructionSet for every CPU
// instruction set the ops/*.cc files are compiled for; all have the same opcodes.
//
// To add an opcode: write its handler and its decode function in the ops/*.cc file of its family and add a line to that
// file's table. Nothing else needs to change.
#pragma once

#include <span>
#include <string_view>
#include <unordered_map>

#include "softgpu/ptx/native/meaning.h"
#include "softgpu/ptx/native/runtime.h"
#include "softgpu/ptx/program.h"
#include "softgpu/ptx/warp.h"

namespace softgpu::ptx {

struct Decoder;

// How `@p instruction` is carried out.
enum class GuardMode : std::uint8_t {
  kMask,    // execute with the lanes for which p holds
  kBranch,  // branch round it: the instruction may suspend or divide the warp
  kOwn,     // the opcode's decoder deals with the guard
};

struct Opcode {
  std::string_view name;
  void (*decode)(Decoder&) = nullptr;
  GuardMode guard = GuardMode::kMask;
};

struct InstructionSet {
  std::string_view name;
  std::unordered_map<std::string_view, Opcode> opcodes;

  // Runs a ready warp until it stops; adds to its counts.
  void (*run)(Warp&) = nullptr;

  // Called when decoding ends. Decode functions may return with the upper halves of the vector registers in use, and then
  // every SSE instruction of the host program takes a hundred times as long. `run` leaves them clean itself.
  void (*leave)() = nullptr;

  // Handlers the decoder puts between instructions.
  Handler guard = nullptr;  // mask &= a; jumps to `target` when no lane is left
  Handler unguard = nullptr;
  Handler label = nullptr;  // lanes that fall into a label meet those that wait there
  Handler branch_unless = nullptr;
  Handler not_predicate = nullptr;
  Handler local_address = nullptr;           // dst = the current call's local memory + immediate
  Handler spill_parameter = nullptr;         // copies `slot` bytes per lane from the frame to local memory
  Handler dynamic_shared_address = nullptr;  // dst = first byte of dynamic shared memory + immediate
  Handler function_end = nullptr;
  Handler (*resize)(std::size_t to, std::size_t from, bool sign) = nullptr;
  // Makes `out` read the special register of that name as `bytes` wide value; false when there is none.
  bool (*special_register)(std::string_view name, std::size_t bytes, Instruction& out) = nullptr;

  // For the native compiler. Without meanings nothing is compiled.
  native::Meanings meanings;
  native::Runtime runtime;
};

// The set in use: unless another was chosen, the best this CPU can run.
const InstructionSet& instruction_set();

// Uses "baseline", "v3" or "v4" from now on, for tests and comparisons. False when this CPU cannot run it. Not
// thread-safe: call before the first module is loaded.
bool choose_instruction_set(std::string_view name);

}  // namespace softgpu::ptx
