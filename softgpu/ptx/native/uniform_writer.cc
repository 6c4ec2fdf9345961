// Values that a launch brings, in native code: parameters, sizes and indices.
#include <cstddef>

#include "softgpu/ptx/native/writers.h"

namespace softgpu::ptx::native {
namespace {

// dst = the value in memory, for all lanes. May clobber rax.
void write_uniform(Emission& e, const Step& step, Memory value) {
  const std::int32_t row = step.at->dst;
  e.registers.forget(row);
  if (TrackedPattern* entry = e.patterns.find(row)) {
    step.meaning.bytes == 8 ? e.as.load(rax, value) : e.as.load32(rax, value);
    return e.patterns.set_uniform(*entry, rax);
  }
  e.vectors.op(step.meaning.bytes == 8 ? VectorOpcode{2, 1, 0, 0x59} : VectorOpcode{2, 1, 0, 0x18}, kScratch, 0, value);
  const std::int32_t vectors = step.meaning.bytes == 8 ? 2 * kParts : kParts;
  for (int i = 0; i < vectors; ++i) e.vectors.store(row_memory(row) + i * kVectorBytes, kScratch);
}

}  // namespace

void write_parameter(Emission& e, const Step& step) {
  e.as.load(rax, warp_field(&Warp::parameters));
  write_uniform(e, step, {rax, static_cast<std::int32_t>(step.at->immediate)});
}

// mode: 0 %ntid, 1 %ctaid, 2 %nctaid; immediate: the axis.
void write_special(Emission& e, const Step& step) {
  const auto axis = static_cast<std::int32_t>(step.at->immediate * sizeof(unsigned));
  if (step.at->mode == 1) {
    e.as.load(rax, warp_field(&Warp::block));
    return write_uniform(e, step, {rax, static_cast<std::int32_t>(offsetof(Block, id)) + axis});
  }
  e.as.load(rax, warp_field(&Warp::run));
  e.as.load(rax, {rax, offsetof(LaunchState, launch)});
  const std::size_t size = step.at->mode == 0 ? offsetof(Launch, block) : offsetof(Launch, grid);
  write_uniform(e, step, {rax, static_cast<std::int32_t>(size) + axis});
}

void write_thread_index(Emission& e, const Step& step) {
  const Memory ids = warp_field(&Warp::thread_ids);
  e.as.load(rax, ids + static_cast<std::int32_t>(step.at->mode * sizeof(void*)));
  const int slot = e.registers.take();
  for (int i = 0; i < kParts; ++i) e.vectors.load(slot * kParts + i, {rax, i * kVectorBytes});
  e.define(step.at->dst, slot);
}

}  // namespace softgpu::ptx::native
