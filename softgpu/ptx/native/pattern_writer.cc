// Arithmetic on patterns in native code.
#include <cstddef>

#include "softgpu/ptx/native/writers.h"

namespace softgpu::ptx::native {
namespace {

constexpr VectorOpcode kAddQuads{1, 1, 0, 0xd4}, kSubtractQuads{1, 1, 0, 0xfb};

}  // namespace

SlowCall slow_call(const TrackedRows& rows, const Step& step) {
  SlowCall call;
  call.handler = step.at->run;
  call.at = step.at;
  const RowUse use = rows_of(step);
  call.a = describe(rows, use.reads[0]);
  call.b = describe(rows, use.reads[1]);
  call.dst = describe(rows, use.write);
  call.global_bytes = static_cast<std::uint32_t>(global_bytes(step));
  call.subtracts = step.meaning.action == Action::kSubtract;
  return call;
}

// A sum that leads to an address: one vector instruction on the sources' patterns.
void write_pattern(Emission& e, const Step& step) {
  const Assembler::Label slow = e.as.label(), done = e.as.label();
  const bool moves = step.meaning.action == Action::kMove;
  const Memory a = e.patterns.find(step.at->a)->memory(), b = moves ? a : e.patterns.find(step.at->b)->memory();
  e.as.load(rax, a + kPatternState);
  e.as.op(Integer::kOr, rax, b + kPatternState);
  e.as.jump_if(Condition::kNotEqual, slow);
  e.vectors.load(kScratch, a);
  const VectorOpcode opcode = step.meaning.action == Action::kAdd ? kAddQuads : kSubtractQuads;
  if (!moves) e.vectors.op(opcode, kScratch, kScratch, b);
  e.vectors.store(e.patterns.find(step.at->dst)->memory(), kScratch);
  e.as.bind(done);
  const SlowCall& call = e.slow.keep(slow_call(e.patterns.rows(), step));
  e.slow.defer([&e, slow, done, &call, place = e.registers.now()] {
    e.as.bind(slow);
    e.registers.write_back(place);
    e.slow.arithmetic(call);
    e.registers.read_back(place.slots);
    e.as.jump(done);
  });
  e.registers.forget(step.at->dst);
  e.patterns.find(step.at->dst)->is_stale = true;
}

}  // namespace softgpu::ptx::native
