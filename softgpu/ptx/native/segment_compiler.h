// Emits the native code of one segment.
//
// Registers: rbx the warp, rbp its frame, r13 the end of the constants, r14 the extent cache, r15d the mask, r12 the
// number of active lanes; the patterns of tracked rows lie on the stack. ymm0 to ymm11 hold three rows, ymm12 to ymm15
// are scratch.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <unordered_map>
#include <vector>

#include "softgpu/ptx/native/assembler.h"
#include "softgpu/ptx/native/segment.h"

namespace softgpu::ptx::native {

// Bit l of lane l, to turn masks into vectors.
struct LaneBits {
  alignas(32) std::uint32_t bits[kLanes];
  constexpr LaneBits() : bits{} {
    for (int lane = 0; lane < kLanes; ++lane) bits[lane] = 1u << lane;
  }
};
inline constexpr LaneBits kLaneBits;

inline constexpr std::int32_t kVectorBytes = 32;
inline constexpr int kParts = 4;  // vectors of a row of 32-bit elements
inline constexpr Vector kScratch = 12;

// The fields of a pattern in memory.
inline constexpr std::int32_t kPatternFirst = offsetof(Pattern, first), kPatternSecond = offsetof(Pattern, second),
                              kPatternStride = offsetof(Pattern, stride), kPatternState = offsetof(Pattern, state);

// Which rows the vector registers hold.
struct Slots {
  struct Slot {
    std::int32_t row = kNoRow;
    bool is_dirty = false;  // the row in the frame is older
  };
  static constexpr int kCount = 3;
  std::array<Slot, kCount> held;

  Slot& operator[](int slot) { return held[static_cast<std::size_t>(slot)]; }
  const Slot& operator[](int slot) const { return held[static_cast<std::size_t>(slot)]; }
  // The slot that holds the row, or -1.
  int of(std::int32_t row) const {
    for (int slot = 0; slot < kCount; ++slot) {
      if ((*this)[slot].row == row && row != kNoRow) return slot;
    }
    return -1;
  }
  void forget(std::int32_t row) {
    if (const int slot = of(row); slot >= 0) (*this)[slot] = {};
  }
};

// A row that is also kept as a pattern.
struct TrackedPattern {
  int pattern = 0;
  std::uint8_t bytes = 8;
  bool is_stale = false;  // the row in the frame is older than the pattern
};
using TrackedRows = std::unordered_map<std::int32_t, TrackedPattern>;

// A place in the code as far as rows are concerned: what the registers hold, and behind which step that is. Rows that nobody
// reads from there on are not written back. Code out of line takes the place it belongs to with it.
struct Place {
  int step = 0;
  Slots slots;

  Place with_step(int its_step) const { return {its_step, slots}; }
};

template <class T>
Memory warp_field(T Warp::*field) {
  static const Warp warp;
  const auto at = reinterpret_cast<const char*>(&(warp.*field)) - reinterpret_cast<const char*>(&warp);
  return {rbx, static_cast<std::int32_t>(at)};
}

// The row as a slow call is told of it.
TrackedRow describe(const TrackedRows& rows, std::int32_t row);
// Bytes of global memory that the step moves for each lane.
std::int32_t global_bytes(const Step& step);

class SegmentCompiler {
 public:
  SegmentCompiler(Assembler& assembler, const Runtime& runtime, const Program& program, std::deque<SlowCall>& calls,
                  const Segment& segment, const RowFlow& flow)
      : as_(assembler), runtime_(runtime), program_(program), calls_(calls), segment_(segment), flow_(flow) {}

  // Appends the code. REQUIRES: flow.tracked() is ok. `tracked` are its rows.
  void compile(std::span<const std::pair<std::int32_t, std::uint8_t>> tracked);

 private:
  // Frame of the code.
  void enter();
  void prepare_patterns();
  void leave(const Instruction* next, int steps, int behind, const TrackedRows& rows);
  void leave(const Instruction* next, int steps) { leave(next, steps, now_.step, tracked_); }
  void restore_registers();
  void count(int steps);
  void close_loop();
  void go_round(const Instruction* to, int steps);
  void emit_exit(const Step& step);
  void write_live_patterns(int behind, const TrackedRows& rows);

  // Rows in vector registers.
  int slot_of(std::int32_t row) const { return now_.slots.of(row); }
  int take_slot(int keep_a, int keep_b);
  void define(std::int32_t row, int slot);
  void define_mask(std::int32_t row);
  void forget(std::int32_t row) { now_.slots.forget(row); }
  void write_back(const Place& place);
  void read_back(const Slots& slots);
  void store_slot(int slot, std::int32_t row);
  void load_slot(int slot, std::int32_t row);
  bool is_dead_behind(std::int32_t row, int step) const { return flow_.next_read(row, step) == INT32_MAX; }
  VectorSource lane_source(std::int32_t row, int part) const;
  Vector in_register(const Slots& slots, std::int32_t row, int part, Vector otherwise);
  Vector in_register(std::int32_t row, int part, Vector otherwise) {
    return in_register(now_.slots, row, part, otherwise);
  }
  Memory row_memory(std::int32_t row) const { return {row < 0 ? r13 : rbp, row}; }
  Memory in_memory(std::int32_t row);

  // Tracked rows.
  TrackedPattern* tracked(std::int32_t row);
  Memory pattern(const TrackedPattern& row) const { return {rsp, row.pattern * 32}; }
  void bring_row(std::int32_t row);
  void changed(std::int32_t row);
  void call_slow(const void* function, const SlowCall& call);
  const SlowCall& slow_call(const Step& step);

  // Instructions.
  void emit(const Step& step);
  void emit_pattern(const Step& step);
  void emit_uniform(const Step& step, Memory value);
  void emit_special(const Step& step);
  void emit_narrow(const Step& step);
  void emit_wide(const Step& step);
  void emit_fused(const Step& step);
  void emit_widening(const Step& step);
  void emit_narrowing(const Step& step);
  void emit_compare(const Step& step);
  void emit_predicate(const Step& step);
  void emit_select(const Step& step);
  void emit_parameter(const Step& step);
  void emit_thread_index(const Step& step);

  // Accesses.
  void emit_access(const Step& step);
  void bound(const Step& step, Assembler::Label slow, std::int32_t span);
  void move_consecutive(const Step& step, int slot);
  void move_uniform(const Step& step, int slot);
  void store_masked(const Step& step, const Slots& slots);

  Assembler& as_;
  const Runtime& runtime_;
  const Program& program_;
  std::deque<SlowCall>& calls_;
  const Segment& segment_;
  const RowFlow& flow_;

  TrackedRows tracked_;
  Place now_;  // where code in line is emitted
  std::int32_t stack_bytes_ = 0;
  Assembler::Label loop_ = 0;
  std::vector<std::function<void()>> cold_;  // emits what lies out of line
};

}  // namespace softgpu::ptx::native
