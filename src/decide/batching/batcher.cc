#include "decide/batching/batcher.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace fairlead {

Batcher::Batch Batcher::take_all() {
  Batch batch;
  for (const Waits& one : waiting_) batch.push_back(one.request);
  waiting_.clear();
  latest_.clear();
  waiting_rows_ = 0;
  ++under_way_;
  return batch;
}

Batcher::Batches Batcher::add(Instant now, Request request, std::size_t rows, Duration most) {
  Batches batches;
  if (waiting_rows_ + rows > rows_) batches.push_back(take_all());
  const Instant latest = now + std::min(most, patience());
  waiting_.push_back({request, rows, latest});
  latest_.insert(latest);
  waiting_rows_ += rows;
  if (waiting_rows_ == rows_ || under_way_ == 0 || latest <= now) batches.push_back(take_all());
  return batches;
}

Batcher::Batches Batcher::ended(Instant now, std::optional<Instant> began) {
  FL_CHECK(under_way_ > 0, "no call is under way");
  if (began) mean_ += (std::min<Duration>(now - *began, kMostMean) - mean_) / 8;
  --under_way_;
  if (under_way_ > 0 || waiting_.empty()) return {};
  return {take_all()};
}

Batcher::Batches Batcher::tick(Instant now) {
  const auto next = next_tick();
  if (!next || *next > now) return {};
  return {take_all()};
}

bool Batcher::gone(Request request) {
  const auto found = std::ranges::find(waiting_, request, &Waits::request);
  if (found == waiting_.end()) return false;
  waiting_rows_ -= found->rows;
  latest_.erase(latest_.find(found->latest));
  waiting_.erase(found);
  return true;
}

std::optional<Instant> Batcher::next_tick() const {
  return latest_.empty() ? std::nullopt : std::optional(*latest_.begin());
}

}  // namespace fairlead
