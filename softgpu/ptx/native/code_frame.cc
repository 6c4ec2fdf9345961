#include "softgpu/ptx/native/code_frame.h"

#include <iterator>

namespace softgpu::ptx::native {
namespace {

constexpr Register kSaved[] = {rbx, rbp, r12, r13, r14, r15};

}  // namespace

std::int32_t global_bytes(const Step& step) {
  const Meaning& meaning = step.meaning;
  const bool is_access = meaning.action == Action::kLoad || meaning.action == Action::kStore;
  const bool is_global = meaning.space == Space::kGlobal || meaning.space == Space::kGeneric;
  return is_access && is_global ? meaning.bytes : 0;
}

void CodeFrame::enter(std::int32_t pattern_bytes) {
  const Assembler::Label quick = as_.label();
  Memory whole = warp_field(&Warp::whole);
  whole.base = rdi;
  as_.compare8(whole, 0);
  as_.jump_if(Condition::kNotEqual, quick);
  as_.jump_to(reinterpret_cast<const void*>(segment_.steps.front().at->run));
  as_.bind(quick);
  for (const Register saved : kSaved) as_.push(saved);
  stack_bytes_ = pattern_bytes + 8;
  as_.reserve_stack(stack_bytes_);
  as_.move(rbx, rdi);
  as_.load(rbp, warp_field(&Warp::frame));
  as_.load(r13, warp_field(&Warp::to_constants));
  as_.op(Integer::kAdd, r13, rbp);
  as_.load(r14, warp_field(&Warp::extents));
  as_.load32(r15, warp_field(&Warp::mask));
  as_.population_count(r12, r15);
  take_back_first();
}

// What the interpreter has counted for the first instruction is taken back: the code counts all of its steps.
void CodeFrame::take_back_first() {
  as_.add(warp_field(&Warp::instructions), -1);
  as_.move(rax, 0);
  as_.op(Integer::kSub, rax, r12);
  as_.add(warp_field(&Warp::lane_instructions), rax);
}

void CodeFrame::count(int steps) {
  std::int32_t instructions = 0, bytes = 0;
  for (int i = 0; i < steps; ++i) {
    const Step& step = segment_.steps[static_cast<std::size_t>(i)];
    instructions += step.at->counted;
    bytes += global_bytes(step);
  }
  as_.add(warp_field(&Warp::instructions), instructions);
  as_.multiply(rcx, r12, instructions);
  as_.add(warp_field(&Warp::lane_instructions), rcx);
  if (bytes == 0) return;
  as_.multiply(rcx, r12, bytes);
  as_.add(warp_field(&Warp::global_bytes), rcx);
}

void CodeFrame::restore_and_return() {
  VectorCode(as_).zero_upper();
  as_.op(Integer::kAdd, rsp, stack_bytes_);
  for (auto saved = std::rbegin(kSaved); saved != std::rend(kSaved); ++saved) as_.pop(*saved);
  as_.ret();
}

void CodeFrame::write_live_patterns(int behind, const TrackedRows& rows) {
  for (const auto& [row, tracked] : rows) {
    if (row < 0 || !tracked.is_stale || flow_.next_read(row, behind) == INT32_MAX) continue;
    const Assembler::Label written = as_.label();
    as_.compare(tracked.memory() + kPatternState, 0);
    as_.jump_if(Condition::kNotEqual, written);
    SlowCall call;
    call.a = describe(rows, row);
    slow_.materialise(slow_.keep(call));
    as_.bind(written);
  }
}

void CodeFrame::leave(const Instruction* next, int steps, int behind, const TrackedRows& rows) {
  write_live_patterns(behind, rows);
  if (steps > 0) count(steps);
  as_.move(rax, reinterpret_cast<std::uint64_t>(next));
  restore_and_return();
}

}  // namespace softgpu::ptx::native
