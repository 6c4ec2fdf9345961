// A decoded module: what the executor runs. Immutable after load; shared by all launches.
//
// Registers live in rows of 32 lanes. An operand is the byte offset of a row: not negative, in the frame of the called
// function; negative, counted back from the end of the module's constant pool. A predicate's row is one 32-bit
// mask, bit l for lane l.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "softgpu/mutex.h"
#include "softgpu/ptx/machine.h"
#include "softgpu/ptx/types.h"

namespace softgpu::ptx {

inline constexpr int kLanes = 32;
inline constexpr std::size_t kRowAlignment = 64;
inline constexpr std::int32_t kNoRow = std::numeric_limits<std::int32_t>::max();

struct Warp;
struct Instruction;
struct CallSite;
struct Code;

// Executes one instruction for the warp's active lanes. Returns the next one, or null when the warp stops running: it
// has exited, waits, used up its budget, or faulted (Warp::status says which).
using Handler = const Instruction* (*)(Warp&, const Instruction*);

struct Instruction {
  Handler run = nullptr;
  std::int32_t dst = kNoRow, a = kNoRow, b = kNoRow, c = kNoRow;
  std::int64_t immediate = 0;
  const Instruction* target = nullptr;  // of a branch; the decoder stores an index until the code is complete
  const void* data = nullptr;           // operand lists: RowList, CallSite, BranchTargets, Code
  std::int32_t d = kNoRow;              // a fourth source or second destination
  std::uint32_t slot = 0;               // of the extent cache
  std::uint16_t mode = 0;               // meaning is the handler's
  std::uint16_t counted = 0;            // 1 on the first of the handlers that make up a PTX instruction
  std::int32_t line = 0;
};
static_assert(sizeof(Instruction) == 64, "one instruction fills one cache line");

struct RowList {
  std::vector<std::int32_t> rows;  // kNoRow for a sink
};

// A .param or .local variable of a function. A parameter lies in the frame, lane after lane: lane l's copy begins at
// frame_offset + l * bytes. A local variable lies in each lane's local memory at local_offset.
struct FunctionVariable {
  Space space = Space::kParam;
  std::size_t bytes = 0;
  std::int32_t frame_offset = 0;
  std::size_t local_offset = 0;
  bool has_local_copy = false;  // a parameter of a function whose address is taken: also at local_offset
};

// A register's life: its row holds a value of it from handler `first` to handler `last`.
struct RowLife {
  std::int32_t row = 0;
  int first = 0, last = 0;
};

struct Code {
  std::string name;
  std::uint32_t index = 0;
  std::vector<Instruction> instructions;
  std::size_t frame_bytes = 0;
  std::size_t local_bytes = 0;
  unsigned registers = 0;      // 32-bit registers per thread, after sharing
  std::vector<RowLife> lives;  // by row
  std::vector<FunctionVariable> returns, parameters;
  bool calls = false;  // needs a call stack
  bool is_entry = false;
};

// Where a call takes its arguments from and puts its results: variables of the caller.
struct CallSite {
  std::vector<FunctionVariable> results, arguments;
};

struct BranchTargets {
  std::vector<const Instruction*> targets;
};

// Sink of device printf. Passes on complete lines, one call at a time.
class Printer {
 public:
  explicit Printer(std::function<void(std::string_view)> sink) : sink_(std::move(sink)) {}
  void append(std::string_view text);
  void flush();  // also an unfinished last line

 private:
  Mutex mutex_;
  std::string pending_ SOFTGPU_GUARDED_BY(mutex_);
  std::function<void(std::string_view)> sink_;
};

struct Program {
  std::vector<std::unique_ptr<Code>> functions;  // by index, the order of function addresses
  std::vector<std::byte> constants;              // rows; operands count back from constants_end
  const std::byte* constants_end = nullptr;
  std::uint32_t cache_slots = 0;
  AddressSpace::Extent constant_bank;  // the .const variables
  std::size_t deepest_frame = 0;       // largest frame and local memory of any function that can be called
  std::size_t deepest_local = 0;
  std::vector<std::unique_ptr<RowList>> row_lists;
  std::vector<std::unique_ptr<CallSite>> call_sites;
  std::vector<std::unique_ptr<BranchTargets>> branch_targets;
  bool allocates = false;              // calls malloc
  DeviceHeap* heap = nullptr;          // of malloc; null when nothing allocates
  std::shared_ptr<const void> native;  // keeps compiled code alive
  mutable Printer printer;

  explicit Program(std::function<void(std::string_view)> sink) : printer(std::move(sink)) {}
};

}  // namespace softgpu::ptx
