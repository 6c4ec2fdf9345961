// The union of intervals of time. Work of several contexts overlaps, and what is told of it comes in any order: an interval
// that began long ago may end after many short ones have been added.
//
//   add(0, 10) = 10    add(20, 30) = 10    add(5, 25) = 10, from 10 to 20    add(0, 30) = 0
//
// Threads: not thread-safe.
#pragma once

#include <cstdint>

namespace fairlead::shim {

class CoveredTime {
 public:
  // Returns how much of [begin, end) was not covered before; 0 where begin >= end.
  std::uint64_t add(std::uint64_t begin, std::uint64_t end);
  void clear() { count_ = 0; }

 private:
  struct Span {
    std::uint64_t begin, end;
  };
  // Beyond so many gaps the oldest are forgotten: what is added there later counts again.
  static constexpr int kMostSpans = 64;

  void replace(int first, int last, Span by);

  Span spans_[kMostSpans] = {};  // the first `count_`: disjoint, ascending
  int count_ = 0;
};

}  // namespace fairlead::shim
