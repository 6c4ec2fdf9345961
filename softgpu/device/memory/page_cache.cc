#include "softgpu/device/memory/page_cache.h"

#include <algorithm>

#include "softgpu/check.h"

#include "softgpu/mutex.h"

namespace softgpu {
namespace {

// Cuts the first `count` pages off `span`.
Span cut(Span& span, std::uint64_t count) {
  Span first = {span.address, count, {}};
  span.address += count * kPageBytes;
  span.count -= count;
  for (auto run = span.runs.begin(); count > 0;) {
    const std::uint64_t taken = std::min(run->count, count);
    first.runs.push_back({run->first, taken});
    run->first += taken;
    run->count -= taken;
    count -= taken;
    if (run->count == 0) run = span.runs.erase(run);
  }
  return first;
}

void append(Span& span, const Span& next) {
  span.count += next.count;
  span.runs.insert(span.runs.end(), next.runs.begin(), next.runs.end());
}

}  // namespace

Span PageCache::take(std::uint64_t count) {
  const LockGuard guard(mutex_);
  auto best = spans_.end();
  for (auto span = spans_.begin(); span != spans_.end(); ++span) {
    if (span->second.count < count) continue;
    if (best == spans_.end() || span->second.count < best->second.count) best = span;
  }
  if (best == spans_.end()) return {};
  count_ -= count;
  Span rest = std::move(best->second);
  spans_.erase(best);
  Span taken = cut(rest, count);
  if (rest.count != 0) spans_[rest.address] = std::move(rest);
  return taken;
}

void PageCache::give(Span span) {
  const LockGuard guard(mutex_);
  count_ += span.count;
  auto next = spans_.lower_bound(span.address);
  // Given twice, a page would be taken twice.
  SOFTGPU_CHECK(next == spans_.end() || span.address + span.count * kPageBytes <= next->first);
  if (next != spans_.end() && span.address + span.count * kPageBytes == next->first) {
    append(span, next->second);
    next = spans_.erase(next);
  }
  if (next != spans_.begin()) {
    Span& previous = std::prev(next)->second;
    SOFTGPU_CHECK(previous.address + previous.count * kPageBytes <= span.address);
    if (previous.address + previous.count * kPageBytes == span.address) {
      append(previous, span);
      return;
    }
  }
  spans_[span.address] = std::move(span);
}

std::vector<Span> PageCache::trim(std::uint64_t keep) {
  const LockGuard guard(mutex_);
  std::vector<Span> taken;
  while (count_ > keep) {
    const auto last = std::prev(spans_.end());
    Span span = std::move(last->second);
    spans_.erase(last);
    const std::uint64_t wanted = std::min(count_ - keep, span.count);
    count_ -= wanted;
    Span kept = cut(span, span.count - wanted);
    if (kept.count != 0) spans_[kept.address] = std::move(kept);
    taken.push_back(std::move(span));
  }
  return taken;
}

std::uint64_t PageCache::page_count() const {
  const LockGuard guard(mutex_);
  return count_;
}

}  // namespace softgpu
