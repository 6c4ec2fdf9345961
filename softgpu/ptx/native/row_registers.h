// Which rows of 32-bit elements the vector registers hold while a segment is emitted.
//
// There are three slots of four registers. A result takes an empty slot, one whose row nobody reads again, or the one
// that is needed last; its row is written to the frame before another moves in. A row that nobody reads again is never
// written. Example: of `c = a + b; d = c * c` in which only d is alive at the end, c is never in memory.
#pragma once

#include <array>
#include <cstdint>

#include "softgpu/ptx/native/layout.h"
#include "softgpu/ptx/native/segment.h"

namespace softgpu::ptx::native {

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

// A place in the code as far as rows are concerned: what the registers hold, and behind which step that is. Rows that nobody
// reads from there on are not written back. Code out of line takes the place it belongs to with it.
struct Place {
  int step = 0;
  Slots slots;

  Place with_step(int its_step) const { return {its_step, slots}; }
};

class RowRegisters {
 public:
  // Both must outlive this.
  RowRegisters(CodeBuffer& buffer, const RowFlow& flow) : vectors_(buffer), flow_(flow) {}

  // Where code in line is emitted.
  const Place& now() const { return now_; }
  void go_to(int step) { now_.step = step; }
  // Nobody reads the row behind the step any more.
  bool is_dead_behind(std::int32_t row, int step) const { return flow_.next_read(row, step) == INT32_MAX; }

  int slot_of(std::int32_t row) const { return now_.slots.of(row); }
  // A slot for a result, other than the two. Its row has been written where somebody reads it.
  int take(int keep_a, int keep_b);
  int take() { return take(-1, -1); }
  // The slot's registers have become the row, which the frame does not have yet.
  void hold(std::int32_t row, int slot);
  // The row was written elsewhere.
  void forget(std::int32_t row) { now_.slots.forget(row); }

  // Code that moves a row between a slot and the frame.
  void store(int slot, std::int32_t row);
  void load(int slot, std::int32_t row);
  // Code that brings the frame up to date, and the registers from it.
  void write_back(const Place& place);
  void read_back(const Slots& slots);

  // Part `part` of a row, wherever it is.
  VectorSource source(std::int32_t row, int part) const;
  // The same in a register, `otherwise` when the row is in the frame.
  Vector in_register(const Slots& slots, std::int32_t row, int part, Vector otherwise);
  Vector in_register(std::int32_t row, int part, Vector otherwise) {
    return in_register(now_.slots, row, part, otherwise);
  }
  // The row, up to date in the frame.
  Memory in_memory(std::int32_t row);

 private:
  VectorCode vectors_;
  const RowFlow& flow_;
  Place now_;
};

}  // namespace softgpu::ptx::native
