#include "softgpu/ptx/native/emission.h"

namespace softgpu::ptx::native {

void Emission::define(std::int32_t row, int slot) {
  registers.hold(row, slot);
  if (patterns.find(row) == nullptr) return;
  registers.store(slot, row);
  define_in_frame(row);
}

void Emission::define_in_frame(std::int32_t row) {
  registers.forget(row);
  patterns.changed(row);
}

// No register shares such a row, but that of a sink (`_`) is scratch, which held lanes in the instruction before.
void Emission::define_mask(std::int32_t row) {
  as.store32(row_memory(row), rax);
  define_in_frame(row);
}

void Emission::bring_row(std::int32_t row) {
  TrackedPattern* entry = row == kNoRow ? nullptr : patterns.find(row);
  if (entry == nullptr || row < 0 || !entry->is_stale) return;
  const Assembler::Label stale = as.label(), back = as.label();
  as.compare(entry->memory() + kPatternState, 0);
  as.jump_if(Condition::kEqual, stale);
  as.bind(back);
  SlowCall call;
  call.a = describe(patterns.rows(), row);
  const SlowCall& kept = slow.keep(call);
  slow.defer([this, stale, back, &kept, place = registers.now().with_step(registers.now().step - 1)] {
    as.bind(stale);
    registers.write_back(place);
    slow.materialise(kept);
    registers.read_back(place.slots);
    as.jump(back);
  });
  entry->is_stale = false;
}

}  // namespace softgpu::ptx::native
