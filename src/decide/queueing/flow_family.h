// Flows that are one to others: the versions of a function. Whatever one of them is charged is all of theirs, and they share a limit of what is
// in flight, so that nobody gets more by being several.
//
// Example: A has ten versions with work, B has one flow, both weigh 1. A version of A that ran for a second puts all ten a second ahead, so B
// is next: A gets half, as if it were called through one.
//
// Threads, determinism: as flow_queue.h.
#pragma once

#include <cstddef>
#include <map>
#include <vector>

#include "base/ids.h"
#include "decide/queueing/indexed_heap.h"

namespace fairlead {

struct FlowFamily {
  std::vector<IndexedHeap<int>::Row> rows;  // of its flows in their table
  std::size_t in_flight = 0;                // of all of them
};

// The families of one table. Pointers to them stay valid until they are dissolved.
class FlowFamilies {
 public:
  // `first` is the row of the flow that the family is called by, and `in_flight` what that has; looked at where the family is new.
  FlowFamily& join(FlowId family, IndexedHeap<int>::Row first, std::size_t in_flight, IndexedHeap<int>::Row row) {
    const auto [it, is_new] = by_first_.try_emplace(family);
    if (is_new) it->second = {.rows = {first}, .in_flight = in_flight};
    it->second.rows.push_back(row);
    return it->second;
  }
  // What `row` has in flight is nobody's any more. True: one row is left, which is alone now, and the family is no more once this is told.
  bool leave(FlowFamily& family, IndexedHeap<int>::Row row, std::size_t in_flight) {
    family.in_flight -= in_flight;
    std::erase(family.rows, row);
    return family.rows.size() == 1;
  }
  void dissolve(const FlowFamily& family) {
    std::erase_if(by_first_, [&](const auto& known) { return &known.second == &family; });
  }

 private:
  std::map<FlowId, FlowFamily> by_first_;
};

}  // namespace fairlead
