#include "sharing/dynamic_tokens.h"

#include <algorithm>

#include "base/check.h"

namespace fairlead {

DynamicTokens::DynamicTokens(std::size_t max) : max_(max) {
  FL_CHECK(max >= 1);
}

std::size_t DynamicTokens::update(Instant now, const Sample& sample) {
  average_ += kWeight * (std::clamp(sample.utilisation, 0.0, 1.0) - average_);
  if (tokens_ > 1 && now - grown_ > kProbation + hold_) hold_ = kFirstHold;  // no step failed for so long
  if (must_shrink(now, sample)) {
    shrink(now, sample.tokens_in_use);
  } else if (may_grow(now, sample)) {
    grow(now);
  }
  return tokens_;
}

// Only what binds is raised: with tokens left over, or nothing waiting, one more would change nothing.
bool DynamicTokens::may_grow(Instant now, const Sample& sample) const {
  if (tokens_ >= max_ || !sample.waiting || sample.tokens_in_use < tokens_) return false;
  if (now - changed_ < kSettle || now < held_until_) return false;
  if (average_ > kThreshold - 1.0 / static_cast<double>(max_)) return false;
  const auto running = static_cast<std::int64_t>(std::max<std::size_t>(1, sample.tokens_in_use));
  const Bytes one_more(sample.memory_running.count() / running);
  return sample.memory_total == Bytes(0) || sample.memory_running + one_more <= sample.memory_total;
}

bool DynamicTokens::must_shrink(Instant now, const Sample& sample) const {
  if (tokens_ == 1 || sample.tokens_in_use < 2 || now - changed_ < kSettle) return false;
  const bool outgrown = sample.memory_total != Bytes(0) && sample.memory_running > sample.memory_total;
  return average_ > kThreshold || outgrown;
}

void DynamicTokens::grow(Instant now) {
  ++tokens_;
  changed_ = now;
  grown_ = now;
}

// What is above those in use goes at once: it was no part of the load that is too high.
void DynamicTokens::shrink(Instant now, std::size_t tokens_in_use) {
  if (now - grown_ <= kProbation) {
    held_until_ = now + hold_;
    hold_ = std::min(2 * hold_, kLongestHold);
  } else {
    held_until_ = now + kFirstHold;
  }
  tokens_ = std::max<std::size_t>(1, std::min(tokens_, tokens_in_use) - 1);
  changed_ = now;
}

}  // namespace fairlead
