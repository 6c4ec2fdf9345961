#include "decide/sharing/dynamic_slots.h"

#include <algorithm>

#include "base/check.h"

namespace fairlead {

DynamicSlots::DynamicSlots(std::size_t max) : max_(max) {
  FL_CHECK(max >= 1);
}

std::size_t DynamicSlots::update(Instant now, const Sample& sample) {
  average_ += kWeight * (std::clamp(sample.utilisation, 0.0, 1.0) - average_);
  if (slots_ > 1 && now - grown_ > kProbation + hold_) hold_ = kFirstHold;  // no step failed for so long
  if (must_shrink(now, sample)) {
    shrink(now, sample.slots_in_use);
  } else if (may_grow(now, sample)) {
    grow(now);
  }
  return slots_;
}

// Only what binds is raised: with slots left over, or nothing waiting, one more would change nothing.
bool DynamicSlots::may_grow(Instant now, const Sample& sample) const {
  if (slots_ >= max_ || !sample.waiting || sample.slots_in_use < slots_) return false;
  if (now - changed_ < kSettle || now < held_until_) return false;
  if (average_ > kThreshold - 1.0 / static_cast<double>(max_)) return false;
  const auto running = static_cast<std::int64_t>(std::max<std::size_t>(1, sample.slots_in_use));
  const Bytes one_more(sample.memory_running.count() / running);
  return sample.memory_total == Bytes(0) || sample.memory_running + one_more <= sample.memory_total;
}

bool DynamicSlots::must_shrink(Instant now, const Sample& sample) const {
  if (slots_ == 1 || sample.slots_in_use < 2 || now - changed_ < kSettle) return false;
  const bool outgrown = sample.memory_total != Bytes(0) && sample.memory_running > sample.memory_total;
  return average_ > kThreshold || outgrown;
}

void DynamicSlots::grow(Instant now) {
  ++slots_;
  changed_ = now;
  grown_ = now;
}

// What is above those in use goes at once: it was no part of the load that is too high.
void DynamicSlots::shrink(Instant now, std::size_t slots_in_use) {
  if (now - grown_ <= kProbation) {
    held_until_ = now + hold_;
    hold_ = std::min(2 * hold_, kLongestHold);
  } else {
    held_until_ = now + kFirstHold;
  }
  slots_ = std::max<std::size_t>(1, std::min(slots_, slots_in_use) - 1);
  changed_ = now;
}

}  // namespace fairlead
