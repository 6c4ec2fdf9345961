// Loads and stores in native code: the address row's pattern, two range checks, two copies.
#include <cstddef>

#include "softgpu/ptx/native/segment_compiler.h"

namespace softgpu::ptx::native {
namespace {

constexpr int kHalf = kLanes / 2;
constexpr VectorOpcode kBroadcast4{2, 1, 0, 0x18}, kBroadcast8{2, 1, 0, 0x59};

// The first and second address, the stride between lanes, and where the region begins and how many bytes an access may begin before its end.
constexpr Register kFirstAddress = rax, kSecondAddress = rcx, kStep = rdx, kBegin = r8, kBytes = r9, kSpare = r10;

}  // namespace

std::int32_t global_bytes(const Step& step) {
  const Meaning& meaning = step.meaning;
  const bool is_access = meaning.action == Action::kLoad || meaning.action == Action::kStore;
  const bool is_global = meaning.space == Space::kGlobal || meaning.space == Space::kGeneric;
  return is_access && is_global ? meaning.bytes : 0;
}

// Goes to `slow` unless both halves are aligned and their `span` bytes lie in the region; then makes host addresses.
void SegmentCompiler::bound(const Step& step, Assembler::Label slow, std::int32_t span) {
  as_.move(kSpare, kFirstAddress);
  as_.op32(Integer::kOr, kSpare, kSecondAddress);
  as_.test32(kSpare, step.meaning.bytes - 1);
  as_.jump_if(Condition::kNotEqual, slow);
  const bool is_shared = step.meaning.space == Space::kShared;
  if (is_shared) {
    as_.load(kBytes, warp_field(&Warp::shared_bytes));
  } else {
    const Memory extent{r14, static_cast<std::int32_t>(step.at->slot * sizeof(AddressSpace::Extent))};
    as_.load(kBegin, extent);
    as_.load(kBytes, extent + offsetof(AddressSpace::Extent, end));
    as_.op(Integer::kSub, kBytes, kBegin);
  }
  as_.op(Integer::kSub, kBytes, span);
  as_.jump_if(Condition::kBelow, slow);
  for (const Register address : {kFirstAddress, kSecondAddress}) {
    as_.move(kSpare, address);
    if (!is_shared) as_.op(Integer::kSub, kSpare, kBegin);
    as_.op(Integer::kCmp, kSpare, kBytes);
    as_.jump_if(Condition::kAbove, slow);
  }
  if (!is_shared) return;
  as_.op(Integer::kAdd, kFirstAddress, warp_field(&Warp::shared));
  as_.op(Integer::kAdd, kSecondAddress, warp_field(&Warp::shared));
}

void SegmentCompiler::move_consecutive(const Step& step, int slot) {
  const bool is_load = step.meaning.action == Action::kLoad;
  const std::int32_t value = is_load ? step.at->dst : step.at->b;
  const int parts = step.meaning.bytes == 8 ? kParts : kParts / 2;  // of half a warp
  for (int i = 0; i < 2 * parts; ++i) {
    const Memory host{i < parts ? kFirstAddress : kSecondAddress, i % parts * kVectorBytes};
    const Memory row = row_memory(value) + i * kVectorBytes;
    if (is_load) {
      const Vector t = slot >= 0 ? slot * kParts + i : kScratch + i % kParts;
      as_.vector_load(t, host);
      if (slot < 0) as_.vector_store(row, t);
    } else {
      Vector t = slot_of(value) >= 0 ? slot_of(value) * kParts + i : kScratch + i % kParts;
      if (slot_of(value) < 0) as_.vector_load(t, row);
      as_.vector_store(host, t);
    }
  }
}

void SegmentCompiler::move_uniform(const Step& step, int slot) {
  const bool is_wide = step.meaning.bytes == 8;
  const int parts = is_wide ? kParts : kParts / 2;
  for (int half = 0; half < 2; ++half) {
    const Vector t = slot >= 0 ? slot * kParts + half * parts : kScratch + half;
    as_.vector(is_wide ? kBroadcast8 : kBroadcast4, t, 0, Memory{half == 0 ? kFirstAddress : kSecondAddress, 0});
    for (int i = 0; i < parts; ++i) {
      if (slot >= 0) as_.vector_move(t + i, t);
      if (slot < 0) as_.vector_store(row_memory(step.at->dst) + (half * parts + i) * kVectorBytes, t);
    }
  }
}

// Some lanes are missing.
void SegmentCompiler::store_masked(const Step& step, const Slots& slots) {
  constexpr VectorOpcode kBroadcast{2, 1, 0, 0x58}, kAnd{1, 1, 0, 0xdb}, kEqual{1, 1, 0, 0x76}, kStore{2, 1, 0, 0x2e};
  constexpr Vector kMask = 14, kLanesOfPart = 15;
  as_.move(kSpare, reinterpret_cast<std::uint64_t>(kLaneBits.bits));
  as_.vector(kBroadcast, kMask, 0, warp_field(&Warp::mask));
  for (int i = 0; i < kParts; ++i) {
    const Memory bits{kSpare, i * kVectorBytes};
    const Memory host{i < kParts / 2 ? kFirstAddress : kSecondAddress, i % (kParts / 2) * kVectorBytes};
    as_.vector(kAnd, kLanesOfPart, kMask, bits);
    as_.vector(kEqual, kLanesOfPart, kLanesOfPart, bits);
    as_.vector(kStore, in_register(slots, step.at->b, i, kScratch), kLanesOfPart, host);
  }
}

void SegmentCompiler::emit_access(const Step& step) {
  const Meaning& meaning = step.meaning;
  const bool is_load = meaning.action == Action::kLoad;
  const Assembler::Label again = as_.label(), slow = as_.label(), other = as_.label(), done = as_.label();
  if (!is_load) bring_row(step.at->b);
  const int slot = is_load && meaning.bytes == 4 ? take_slot(-1, -1) : -1;
  const Memory addresses = pattern(*tracked(step.at->a));
  const bool is_narrow = meaning.address_bytes == 4;
  as_.bind(again);
  as_.compare(addresses + kPatternState, 0);
  as_.jump_if(Condition::kNotEqual, slow);
  for (const Register address : {kFirstAddress, kSecondAddress}) {
    const Memory from = addresses + (address == kFirstAddress ? kPatternFirst : kPatternSecond);
    is_narrow ? as_.load32(address, from) : as_.load(address, from);
    const std::int64_t offset = step.at->immediate;
    if (offset == 0) continue;
    if (is_narrow) {
      as_.op32(Integer::kAdd, address, static_cast<std::int32_t>(offset));
    } else if (offset == static_cast<std::int32_t>(offset)) {
      as_.op(Integer::kAdd, address, static_cast<std::int32_t>(offset));
    } else {
      as_.move(kSpare, static_cast<std::uint64_t>(offset));
      as_.op(Integer::kAdd, address, kSpare);
    }
  }
  const Memory stride = addresses + kPatternStride;
  is_narrow ? as_.load32(kStep, stride) : as_.load(kStep, stride);
  as_.op(Integer::kCmp, kStep, meaning.bytes);
  as_.jump_if(Condition::kNotEqual, is_load ? other : slow);
  bound(step, slow, kHalf * meaning.bytes);
  if (!is_load) {
    as_.op32(Integer::kCmp, r15, -1);
    as_.jump_if(Condition::kNotEqual, other);
  }
  move_consecutive(step, slot);
  as_.bind(done);
  const SlowCall& call = slow_call(step);
  cold_.push_back([this, &step, &call, again, slow, other, done, slot, place = now_] {
    const bool loads = step.meaning.action == Action::kLoad;
    as_.bind(other);
    if (loads) {
      as_.op(Integer::kOr, kStep, kStep);
      as_.jump_if(Condition::kNotEqual, slow);
      bound(step, slow, step.meaning.bytes);
      move_uniform(step, slot);
      as_.jump(done);
    } else if (step.meaning.bytes == 4) {
      store_masked(step, place.slots);
      as_.jump(done);
    }
    as_.bind(slow);
    write_back(place.with_step(place.step - 1));  // the handler reads the step's rows, too
    call_slow(reinterpret_cast<const void*>(runtime_.access), call);
    read_back(place.slots);
    as_.op(Integer::kCmp, rax, static_cast<std::int32_t>(SlowResult::kAgain));
    as_.jump_if(Condition::kEqual, again);
    if (slot >= 0) load_slot(slot, step.at->dst);
    as_.op(Integer::kOr, rax, rax);
    as_.jump_if(Condition::kNotEqual, done);
    count(place.step + 1);
    as_.move(rax, 0);
    restore_registers();
  });
  if (!is_load) return;
  if (slot >= 0) return define(step.at->dst, slot);
  forget(step.at->dst);
  changed(step.at->dst);
}

}  // namespace softgpu::ptx::native
