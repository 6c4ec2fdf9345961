#include "softgpu/ptx/native/row_registers.h"

#include <climits>

namespace softgpu::ptx::native {

int RowRegisters::take(int keep_a, int keep_b) {
  int best = -1, best_read = -1;
  for (int slot = 0; slot < Slots::kCount; ++slot) {
    if (slot == keep_a || slot == keep_b) continue;
    const Slots::Slot& held = now_.slots[slot];
    const int read = held.row == kNoRow ? INT_MAX : flow_.next_read(held.row, now_.step);
    if (read > best_read) {
      best = slot;
      best_read = read;
    }
  }
  const Slots::Slot& slot = now_.slots[best];
  // A source of this very step stays readable until the result is written, element by element.
  if (slot.is_dirty && best_read != INT_MAX) store(best, slot.row);
  return best;
}

void RowRegisters::hold(std::int32_t row, int slot) {
  forget(row);
  now_.slots[slot] = {row, true};
}

void RowRegisters::store(int slot, std::int32_t row) {
  for (int i = 0; i < kParts; ++i) vectors_.store(row_memory(row) + i * kVectorBytes, slot * kParts + i);
}
void RowRegisters::load(int slot, std::int32_t row) {
  for (int i = 0; i < kParts; ++i) vectors_.load(slot * kParts + i, row_memory(row) + i * kVectorBytes);
}

void RowRegisters::write_back(const Place& place) {
  for (int slot = 0; slot < Slots::kCount; ++slot) {
    const Slots::Slot& held = place.slots[slot];
    if (held.is_dirty && !is_dead_behind(held.row, place.step)) store(slot, held.row);
  }
}
void RowRegisters::read_back(const Slots& slots) {
  for (int slot = 0; slot < Slots::kCount; ++slot) {
    const Slots::Slot& held = slots[slot];
    if (held.row != kNoRow) load(slot, held.row);
  }
}

VectorSource RowRegisters::source(std::int32_t row, int part) const {
  const int slot = slot_of(row);
  if (slot >= 0) return slot * kParts + part;
  return row_memory(row) + part * kVectorBytes;
}

Vector RowRegisters::in_register(const Slots& slots, std::int32_t row, int part, Vector otherwise) {
  const int slot = slots.of(row);
  if (slot >= 0) return slot * kParts + part;
  vectors_.load(otherwise, row_memory(row) + part * kVectorBytes);
  return otherwise;
}

Memory RowRegisters::in_memory(std::int32_t row) {
  const int slot = slot_of(row);
  if (slot >= 0 && now_.slots[slot].is_dirty) {
    store(slot, row);
    now_.slots[slot].is_dirty = false;
  }
  return row_memory(row);
}

}  // namespace softgpu::ptx::native
