#include "softgpu/ptx/native/segment_compiler.h"

#include <climits>
#include <cstddef>
#include <cstring>
#include <iterator>

namespace softgpu::ptx::native {
namespace {

constexpr Register kSaved[] = {rbx, rbp, r12, r13, r14, r15};

}  // namespace

// ---- frame

void SegmentCompiler::compile(std::span<const std::pair<std::int32_t, std::uint8_t>> rows) {
  for (const auto& [row, bytes] : rows) {
    tracked_.emplace(row, TrackedPattern{static_cast<int>(tracked_.size()), bytes, false});
  }
  // In a loop a row may come round as a pattern.
  for (const Step& step : segment_.steps) {
    TrackedPattern* written = segment_.is_loop ? tracked(rows_of(step).write) : nullptr;
    if (written != nullptr) written->is_stale = true;
  }
  enter();
  const auto last = static_cast<int>(segment_.steps.size()) - (segment_.is_loop ? 1 : 0);
  for (now_.step = 0; now_.step < last; ++now_.step) emit(segment_.steps[static_cast<std::size_t>(now_.step)]);
  --now_.step;
  write_back(now_);
  if (segment_.is_loop) {
    close_loop();
  } else {
    leave(segment_.steps.back().at + 1, last);
  }
  for (std::size_t i = 0; i < cold_.size(); ++i) cold_[i]();
}

// What the interpreter has counted for the first instruction is taken back: the code counts all of its steps.
void SegmentCompiler::enter() {
  const Assembler::Label quick = as_.label();
  Memory whole = warp_field(&Warp::whole);
  whole.base = rdi;
  as_.compare8(whole, 0);
  as_.jump_if(Condition::kNotEqual, quick);
  as_.jump_to(reinterpret_cast<const void*>(segment_.steps.front().at->run));
  as_.bind(quick);
  for (const Register saved : kSaved) as_.push(saved);
  stack_bytes_ = static_cast<std::int32_t>(tracked_.size()) * 32 + 8;
  as_.reserve_stack(stack_bytes_);
  as_.move(rbx, rdi);
  as_.load(rbp, warp_field(&Warp::frame));
  as_.load(r13, warp_field(&Warp::to_constants));
  as_.op(Integer::kAdd, r13, rbp);
  as_.load(r14, warp_field(&Warp::extents));
  as_.load32(r15, warp_field(&Warp::mask));
  as_.population_count(r12, r15);
  as_.add(warp_field(&Warp::instructions), -1);
  as_.move(rax, 0);
  as_.op(Integer::kSub, rax, r12);
  as_.add(warp_field(&Warp::lane_instructions), rax);
  prepare_patterns();
  loop_ = as_.label();
  as_.bind(loop_);
}

void SegmentCompiler::prepare_patterns() {
  for (const auto& [row, tracked] : tracked_) {
    const Memory at = pattern(tracked);
    if (row >= 0) {
      as_.store(at + kPatternState, static_cast<std::int32_t>(PatternState::kUnknown));
      continue;
    }
    std::uint64_t value = 0;
    std::memcpy(&value, program_.constants_end + row, tracked.bytes);
    as_.move(rax, value);
    as_.store(at + kPatternFirst, rax);
    as_.store(at + kPatternSecond, rax);
    as_.store(at + kPatternStride, 0);
    as_.store(at + kPatternState, 0);
  }
}

void SegmentCompiler::count(int steps) {
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

void SegmentCompiler::restore_registers() {
  as_.zero_upper();
  as_.op(Integer::kAdd, rsp, stack_bytes_);
  for (auto saved = std::rbegin(kSaved); saved != std::rend(kSaved); ++saved) as_.pop(*saved);
  as_.ret();
}

void SegmentCompiler::write_live_patterns(int behind, const TrackedRows& rows) {
  for (const auto& [row, tracked] : rows) {
    if (row < 0 || !tracked.is_stale || is_dead_behind(row, behind)) continue;
    const Assembler::Label written = as_.label();
    as_.compare(pattern(tracked) + kPatternState, 0);
    as_.jump_if(Condition::kNotEqual, written);
    SlowCall call;
    call.a = describe(rows, row);
    call_slow(reinterpret_cast<const void*>(runtime_.materialise), calls_.emplace_back(call));
    as_.bind(written);
  }
}

// Continues at `next`; null when the warp stops. All dirty slots have been written back.
void SegmentCompiler::leave(const Instruction* next, int steps, int behind, const TrackedRows& rows) {
  write_live_patterns(behind, rows);
  if (steps > 0) count(steps);
  as_.move(rax, reinterpret_cast<std::uint64_t>(next));
  restore_registers();
}

// A backward branch that all lanes take, none, or some: the last is the interpreter's business, not counted here.
void SegmentCompiler::close_loop() {
  const Instruction* branch = segment_.steps.back().at;
  const auto steps = static_cast<int>(segment_.steps.size());
  if (segment_.steps.back().meaning.action == Action::kBranch) return go_round(branch->target, steps);
  const Assembler::Label not_all = as_.label(), some = as_.label();
  as_.load32(rax, row_memory(branch->a));
  if (branch->mode != 0) as_.not32(rax);
  as_.op32(Integer::kAnd, rax, r15);
  as_.op32(Integer::kCmp, rax, r15);
  as_.jump_if(Condition::kNotEqual, not_all);
  go_round(branch->target, steps);
  as_.bind(not_all);
  as_.test32(rax, -1);
  as_.jump_if(Condition::kNotEqual, some);
  leave(branch + 1, steps);
  as_.bind(some);
  leave(branch, steps - 1);
}

// The backward branch: the warp stops when its budget is used up.
void SegmentCompiler::go_round(const Instruction* to, int steps) {
  const Assembler::Label pauses = as_.label();
  count(steps);
  as_.subtract32(warp_field(&Warp::budget), steps);
  as_.jump_if(Condition::kSign, pauses);
  as_.jump(loop_);
  as_.bind(pauses);
  as_.move(rax, reinterpret_cast<std::uint64_t>(to));
  as_.store(warp_field(&Warp::next), rax);
  leave(nullptr, 0);
}

// A branch forward: when any lane takes it, it is the interpreter's business, not counted here.
void SegmentCompiler::emit_exit(const Step& step) {
  const Assembler::Label taken = as_.label();
  as_.load32(rax, row_memory(step.at->a));
  if (step.at->mode != 0) as_.not32(rax);
  as_.op32(Integer::kAnd, rax, r15);
  as_.jump_if(Condition::kNotEqual, taken);
  cold_.push_back([this, &step, taken, place = now_.with_step(now_.step - 1), rows = tracked_] {
    as_.bind(taken);
    write_back(place);
    leave(step.at, place.step + 1, place.step, rows);
  });
}

// ---- rows in vector registers

void SegmentCompiler::store_slot(int slot, std::int32_t row) {
  for (int i = 0; i < kParts; ++i) as_.vector_store(row_memory(row) + i * kVectorBytes, slot * kParts + i);
}
void SegmentCompiler::load_slot(int slot, std::int32_t row) {
  for (int i = 0; i < kParts; ++i) as_.vector_load(slot * kParts + i, row_memory(row) + i * kVectorBytes);
}

// A slot for a result: an empty one, one whose row nobody reads again, or the one needed last.
int SegmentCompiler::take_slot(int keep_a, int keep_b) {
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
  if (slot.is_dirty && best_read != INT_MAX) store_slot(best, slot.row);
  return best;
}

// eax becomes the row of a predicate. No register shares such a row, but that of a sink (`_`) is scratch, which held
// lanes in the instruction before.
void SegmentCompiler::define_mask(std::int32_t row) {
  as_.store32(row_memory(row), rax);
  forget(row);
  changed(row);
}

void SegmentCompiler::define(std::int32_t row, int slot) {
  forget(row);
  now_.slots[slot] = {row, true};
  if (tracked(row) == nullptr) return;
  store_slot(slot, row);
  forget(row);
  changed(row);
}

void SegmentCompiler::write_back(const Place& place) {
  for (int slot = 0; slot < Slots::kCount; ++slot) {
    const Slots::Slot& held = place.slots[slot];
    if (held.is_dirty && !is_dead_behind(held.row, place.step)) store_slot(slot, held.row);
  }
}
void SegmentCompiler::read_back(const Slots& slots) {
  for (int slot = 0; slot < Slots::kCount; ++slot) {
    const Slots::Slot& held = slots[slot];
    if (held.row != kNoRow) load_slot(slot, held.row);
  }
}

// Part `part` of a row of 32-bit elements, wherever it is.
VectorSource SegmentCompiler::lane_source(std::int32_t row, int part) const {
  const int slot = slot_of(row);
  if (slot >= 0) return slot * kParts + part;
  return row_memory(row) + part * kVectorBytes;
}

Vector SegmentCompiler::in_register(const Slots& slots, std::int32_t row, int part, Vector otherwise) {
  const int slot = slots.of(row);
  if (slot >= 0) return slot * kParts + part;
  as_.vector_load(otherwise, row_memory(row) + part * kVectorBytes);
  return otherwise;
}

// The row, up to date in the frame.
Memory SegmentCompiler::in_memory(std::int32_t row) {
  const int slot = slot_of(row);
  if (slot >= 0 && now_.slots[slot].is_dirty) {
    store_slot(slot, row);
    now_.slots[slot].is_dirty = false;
  }
  return row_memory(row);
}

// ---- instructions

void SegmentCompiler::emit(const Step& step) {
  const Meaning& meaning = step.meaning;
  if (is_sum(meaning.action) && tracked(step.at->dst) != nullptr) return emit_pattern(step);
  if (meaning.action == Action::kLoad || meaning.action == Action::kStore) return emit_access(step);
  for (const std::int32_t row : rows_of(step).reads) bring_row(row);
  switch (meaning.action) {
    case Action::kFused:
    case Action::kMultiplyAdd: return emit_fused(step);
    case Action::kWiden:
    case Action::kMultiplyWide:
    case Action::kShift64: return emit_widening(step);
    case Action::kCompareFloat:
    case Action::kCompareSigned:
    case Action::kCompareUnsigned: return emit_compare(step);
    case Action::kNarrow: return emit_narrowing(step);
    case Action::kBranchIf: return emit_exit(step);
    case Action::kPredicate: return emit_predicate(step);
    case Action::kSelect: return emit_select(step);
    case Action::kParameter: return emit_parameter(step);
    case Action::kThreadIndex: return emit_thread_index(step);
    case Action::kSpecial: return emit_special(step);
    default: return meaning.bytes == 4 ? emit_narrow(step) : emit_wide(step);
  }
}

}  // namespace softgpu::ptx::native
