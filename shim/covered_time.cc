#include "shim/covered_time.h"

#include <algorithm>

namespace fairlead::shim {

std::uint64_t CoveredTime::add(std::uint64_t begin, std::uint64_t end) {
  if (begin >= end) return 0;
  int first = count_;  // mostly behind all others
  while (first > 0 && spans_[first - 1].end >= begin) --first;
  int last = first;
  std::uint64_t fresh = end - begin;
  Span merged = {begin, end};
  for (; last < count_ && spans_[last].begin <= end; ++last) {
    fresh -= std::min(end, spans_[last].end) - std::max(begin, spans_[last].begin);
    merged = {std::min(merged.begin, spans_[last].begin), std::max(merged.end, spans_[last].end)};
  }
  replace(first, last, merged);
  return fresh;
}

// Puts one span in place of those from `first` to before `last`.
void CoveredTime::replace(int first, int last, Span by) {
  if (first == last && count_ == kMostSpans) {
    if (first == 0) return;  // older than all that is remembered
    std::move(spans_ + 1, spans_ + count_, spans_);
    --count_;
    first = --last;
  }
  if (first == last) {
    std::move_backward(spans_ + first, spans_ + count_, spans_ + count_ + 1);
    ++count_;
  } else {
    std::move(spans_ + last, spans_ + count_, spans_ + first + 1);
    count_ -= last - first - 1;
  }
  spans_[first] = by;
}

}  // namespace fairlead::shim
