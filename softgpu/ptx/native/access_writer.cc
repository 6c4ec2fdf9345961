// Loads and stores in native code: the address row's pattern, two range checks, two copies.
#include <cstddef>

#include "softgpu/ptx/native/writers.h"

namespace softgpu::ptx::native {
namespace {

constexpr int kHalf = kLanes / 2;
constexpr VectorOpcode kBroadcast4{2, 1, 0, 0x18}, kBroadcast8{2, 1, 0, 0x59};

// The first and second address, the stride between lanes, and where the region begins and how many bytes an access may begin before its end.
constexpr Register kFirstAddress = rax, kSecondAddress = rcx, kStep = rdx, kBegin = r8, kBytes = r9, kSpare = r10;

// Goes to `slow` unless both halves are aligned and their `span` bytes lie in the region; then makes host addresses.
void bound(Emission& e, const Step& step, Assembler::Label slow, std::int32_t span) {
  e.as.move(kSpare, kFirstAddress);
  e.as.op32(Integer::kOr, kSpare, kSecondAddress);
  e.as.test32(kSpare, step.meaning.bytes - 1);
  e.as.jump_if(Condition::kNotEqual, slow);
  const bool is_shared = step.meaning.space == Space::kShared;
  if (is_shared) {
    e.as.load(kBytes, warp_field(&Warp::shared_bytes));
  } else {
    const Memory extent{r14, static_cast<std::int32_t>(step.at->slot * sizeof(AddressSpace::Extent))};
    e.as.load(kBegin, extent);
    e.as.load(kBytes, extent + offsetof(AddressSpace::Extent, end));
    e.as.op(Integer::kSub, kBytes, kBegin);
  }
  e.as.op(Integer::kSub, kBytes, span);
  e.as.jump_if(Condition::kBelow, slow);
  for (const Register address : {kFirstAddress, kSecondAddress}) {
    e.as.move(kSpare, address);
    if (!is_shared) e.as.op(Integer::kSub, kSpare, kBegin);
    e.as.op(Integer::kCmp, kSpare, kBytes);
    e.as.jump_if(Condition::kAbove, slow);
  }
  if (!is_shared) return;
  e.as.op(Integer::kAdd, kFirstAddress, warp_field(&Warp::shared));
  e.as.op(Integer::kAdd, kSecondAddress, warp_field(&Warp::shared));
}

void move_consecutive(Emission& e, const Step& step, int slot) {
  const bool is_load = step.meaning.action == Action::kLoad;
  const std::int32_t value = is_load ? step.at->dst : step.at->b;
  const int parts = step.meaning.bytes == 8 ? kParts : kParts / 2;  // of half a warp
  for (int i = 0; i < 2 * parts; ++i) {
    const Memory host{i < parts ? kFirstAddress : kSecondAddress, i % parts * kVectorBytes};
    const Memory row = row_memory(value) + i * kVectorBytes;
    if (is_load) {
      const Vector t = slot >= 0 ? slot * kParts + i : kScratch + i % kParts;
      e.vectors.load(t, host);
      if (slot < 0) e.vectors.store(row, t);
    } else {
      Vector t = e.registers.slot_of(value) >= 0 ? e.registers.slot_of(value) * kParts + i : kScratch + i % kParts;
      if (e.registers.slot_of(value) < 0) e.vectors.load(t, row);
      e.vectors.store(host, t);
    }
  }
}

void move_uniform(Emission& e, const Step& step, int slot) {
  const bool is_wide = step.meaning.bytes == 8;
  const int parts = is_wide ? kParts : kParts / 2;
  for (int half = 0; half < 2; ++half) {
    const Vector t = slot >= 0 ? slot * kParts + half * parts : kScratch + half;
    e.vectors.op(is_wide ? kBroadcast8 : kBroadcast4, t, 0, Memory{half == 0 ? kFirstAddress : kSecondAddress, 0});
    for (int i = 0; i < parts; ++i) {
      if (slot >= 0) e.vectors.move(t + i, t);
      if (slot < 0) e.vectors.store(row_memory(step.at->dst) + (half * parts + i) * kVectorBytes, t);
    }
  }
}

// Some lanes are missing.
void store_masked(Emission& e, const Step& step, const Slots& slots) {
  constexpr VectorOpcode kBroadcast{2, 1, 0, 0x58}, kAnd{1, 1, 0, 0xdb}, kEqual{1, 1, 0, 0x76}, kStore{2, 1, 0, 0x2e};
  constexpr Vector kMask = 14, kLanesOfPart = 15;
  e.as.move(kSpare, reinterpret_cast<std::uint64_t>(kLaneBits.bits));
  e.vectors.op(kBroadcast, kMask, 0, warp_field(&Warp::mask));
  for (int i = 0; i < kParts; ++i) {
    const Memory bits{kSpare, i * kVectorBytes};
    const Memory host{i < kParts / 2 ? kFirstAddress : kSecondAddress, i % (kParts / 2) * kVectorBytes};
    e.vectors.op(kAnd, kLanesOfPart, kMask, bits);
    e.vectors.op(kEqual, kLanesOfPart, kLanesOfPart, bits);
    e.vectors.op(kStore, e.registers.in_register(slots, step.at->b, i, kScratch), kLanesOfPart, host);
  }
}

}  // namespace

void write_access(Emission& e, const Step& step) {
  const Meaning& meaning = step.meaning;
  const bool is_load = meaning.action == Action::kLoad;
  const Assembler::Label again = e.as.label(), slow = e.as.label(), other = e.as.label(), done = e.as.label();
  if (!is_load) e.bring_row(step.at->b);
  const int slot = is_load && meaning.bytes == 4 ? e.registers.take() : -1;
  const Memory addresses = e.patterns.find(step.at->a)->memory();
  const bool is_narrow = meaning.address_bytes == 4;
  e.as.bind(again);
  e.as.compare(addresses + kPatternState, 0);
  e.as.jump_if(Condition::kNotEqual, slow);
  for (const Register address : {kFirstAddress, kSecondAddress}) {
    const Memory from = addresses + (address == kFirstAddress ? kPatternFirst : kPatternSecond);
    is_narrow ? e.as.load32(address, from) : e.as.load(address, from);
    const std::int64_t offset = step.at->immediate;
    if (offset == 0) continue;
    if (is_narrow) {
      e.as.op32(Integer::kAdd, address, static_cast<std::int32_t>(offset));
    } else if (offset == static_cast<std::int32_t>(offset)) {
      e.as.op(Integer::kAdd, address, static_cast<std::int32_t>(offset));
    } else {
      e.as.move(kSpare, static_cast<std::uint64_t>(offset));
      e.as.op(Integer::kAdd, address, kSpare);
    }
  }
  const Memory stride = addresses + kPatternStride;
  is_narrow ? e.as.load32(kStep, stride) : e.as.load(kStep, stride);
  e.as.op(Integer::kCmp, kStep, meaning.bytes);
  e.as.jump_if(Condition::kNotEqual, is_load ? other : slow);
  bound(e, step, slow, kHalf * meaning.bytes);
  if (!is_load) {
    e.as.op32(Integer::kCmp, r15, -1);
    e.as.jump_if(Condition::kNotEqual, other);
  }
  move_consecutive(e, step, slot);
  e.as.bind(done);
  const SlowCall& call = e.slow.keep(slow_call(e.patterns.rows(), step));
  e.slow.defer([&e, &step, &call, again, slow, other, done, slot, place = e.registers.now()] {
    const bool loads = step.meaning.action == Action::kLoad;
    e.as.bind(other);
    if (loads) {
      e.as.op(Integer::kOr, kStep, kStep);
      e.as.jump_if(Condition::kNotEqual, slow);
      bound(e, step, slow, step.meaning.bytes);
      move_uniform(e, step, slot);
      e.as.jump(done);
    } else if (step.meaning.bytes == 4) {
      store_masked(e, step, place.slots);
      e.as.jump(done);
    }
    e.as.bind(slow);
    e.registers.write_back(place.with_step(place.step - 1));  // the handler reads the step's rows, too
    e.slow.access(call);
    e.registers.read_back(place.slots);
    e.as.op(Integer::kCmp, rax, static_cast<std::int32_t>(SlowResult::kAgain));
    e.as.jump_if(Condition::kEqual, again);
    if (slot >= 0) e.registers.load(slot, step.at->dst);
    e.as.op(Integer::kOr, rax, rax);
    e.as.jump_if(Condition::kNotEqual, done);
    e.frame.count(place.step + 1);
    e.as.move(rax, 0);
    e.frame.restore_and_return();
  });
  if (!is_load) return;
  if (slot >= 0) return e.define(step.at->dst, slot);
  e.define_in_frame(step.at->dst);
}

}  // namespace softgpu::ptx::native
