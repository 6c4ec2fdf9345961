// Arithmetic on patterns in native code, and rows kept as patterns.
#include <cstddef>

#include "softgpu/ptx/native/segment_compiler.h"

namespace softgpu::ptx::native {
namespace {

constexpr VectorOpcode kAddQuads{1, 1, 0, 0xd4}, kSubtractQuads{1, 1, 0, 0xfb};

}  // namespace

TrackedPattern* SegmentCompiler::tracked(std::int32_t row) {
  const auto entry = tracked_.find(row);
  return entry == tracked_.end() ? nullptr : &entry->second;
}

TrackedRow describe(const TrackedRows& rows, std::int32_t row) {
  const auto entry = row == kNoRow ? rows.end() : rows.find(row);
  if (entry == rows.end()) return {row, -1, 8, false};
  return {row, entry->second.pattern, entry->second.bytes, entry->second.is_stale};
}

void SegmentCompiler::call_slow(const void* function, const SlowCall& call) {
  as_.zero_upper();
  as_.move(rdi, rbx);
  as_.move(rsi, reinterpret_cast<std::uint64_t>(&call));
  as_.move(rdx, rsp);
  as_.call(function);
}

const SlowCall& SegmentCompiler::slow_call(const Step& step) {
  SlowCall call;
  call.handler = step.at->run;
  call.at = step.at;
  const RowUse use = rows_of(step);
  call.a = describe(tracked_, use.reads[0]);
  call.b = describe(tracked_, use.reads[1]);
  call.dst = describe(tracked_, use.write);
  call.global_bytes = static_cast<std::uint32_t>(global_bytes(step));
  call.subtracts = step.meaning.action == Action::kSubtract;
  return calls_.emplace_back(call);
}

// The row was written in the frame; its pattern is out of date.
void SegmentCompiler::changed(std::int32_t row) {
  TrackedPattern* entry = tracked(row);
  if (entry == nullptr) return;
  as_.store(pattern(*entry) + kPatternState, static_cast<std::int32_t>(PatternState::kUnknown));
  entry->is_stale = false;
}

// A step reads the row itself, so it must be up to date.
void SegmentCompiler::bring_row(std::int32_t row) {
  TrackedPattern* entry = row == kNoRow ? nullptr : tracked(row);
  if (entry == nullptr || row < 0 || !entry->is_stale) return;
  const Assembler::Label stale = as_.label(), back = as_.label();
  as_.compare(pattern(*entry) + kPatternState, 0);
  as_.jump_if(Condition::kEqual, stale);
  as_.bind(back);
  SlowCall call;
  call.a = describe(tracked_, row);
  const SlowCall& kept = calls_.emplace_back(call);
  cold_.push_back([this, stale, back, &kept, place = now_.with_step(now_.step - 1)] {
    as_.bind(stale);
    write_back(place);
    call_slow(reinterpret_cast<const void*>(runtime_.materialise), kept);
    read_back(place.slots);
    as_.jump(back);
  });
  entry->is_stale = false;
}

// A sum that leads to an address: one vector instruction on the sources' patterns.
void SegmentCompiler::emit_pattern(const Step& step) {
  const Assembler::Label slow = as_.label(), done = as_.label();
  const bool moves = step.meaning.action == Action::kMove;
  const Memory a = pattern(*tracked(step.at->a)), b = moves ? a : pattern(*tracked(step.at->b));
  as_.load(rax, a + kPatternState);
  as_.op(Integer::kOr, rax, b + kPatternState);
  as_.jump_if(Condition::kNotEqual, slow);
  as_.vector_load(kScratch, a);
  const VectorOpcode opcode = step.meaning.action == Action::kAdd ? kAddQuads : kSubtractQuads;
  if (!moves) as_.vector(opcode, kScratch, kScratch, b);
  as_.vector_store(pattern(*tracked(step.at->dst)), kScratch);
  as_.bind(done);
  const SlowCall& call = slow_call(step);
  cold_.push_back([this, slow, done, &call, place = now_] {
    as_.bind(slow);
    write_back(place);
    call_slow(reinterpret_cast<const void*>(runtime_.arithmetic), call);
    read_back(place.slots);
    as_.jump(done);
  });
  forget(step.at->dst);
  tracked(step.at->dst)->is_stale = true;
}

}  // namespace softgpu::ptx::native
