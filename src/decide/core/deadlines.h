// Which instance is overdue next? An instance has one deadline at most (until ready, until the answer, until it asks for
// the next) and gets two or three with every invocation, so setting and clearing one must not allocate: a heap of those
// that have one, in which an instance keeps its row from its first deadline until it is forgotten.
//
// Threads: not thread-safe. Determinism: at one instant the lower id is first.
#pragma once

#include <utility>
#include <vector>

#include "base/id_map.h"
#include "base/ids.h"
#include "base/units.h"
#include "decide/queueing/indexed_heap.h"

namespace fairlead {

class Deadlines {
 public:
  bool empty() const { return heap_.empty(); }
  // REQUIRES: not empty.
  Instant next() const { return heap_.top_key().first; }
  InstanceId first() const { return heap_.top_key().second; }

  void set(InstanceId id, Instant at) { heap_.set(row_of(id), {at, id}); }  // instead of the one it had
  void clear(InstanceId id) {                                               // none: no effect
    if (const Heap::Row* row = rows_.find(id)) heap_.erase(*row);
  }
  // The instance is gone; its row is another's.
  void forget(InstanceId id) {
    const Heap::Row* row = rows_.find(id);
    if (row == nullptr) return;
    heap_.erase(*row);
    free_.push_back(*row);
    rows_.erase(id);
  }

 private:
  using Heap = IndexedHeap<std::pair<Instant, InstanceId>>;

  Heap::Row row_of(InstanceId id) {
    const auto [row, is_new] = rows_.try_emplace(id, static_cast<Heap::Row>(rows_.size()));
    if (is_new && !free_.empty()) {
      *row = free_.back();
      free_.pop_back();
    }
    return *row;
  }

  Heap heap_;
  IdMap<InstanceId, Heap::Row> rows_;
  std::vector<Heap::Row> free_;
};

}  // namespace fairlead
