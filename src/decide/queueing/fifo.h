// The queue of one flow: first in, first out, one contiguous allocation, none while it was never used. (std::deque takes
// 576 bytes empty; a node may hold 100,000 flows.)
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "base/check.h"

namespace fairlead {

template <typename T>
class Fifo {
 public:
  bool empty() const { return head_ == items_.size(); }
  std::size_t size() const { return items_.size() - head_; }

  // REQUIRES: not empty.
  const T& front() const {
    FL_CHECK(!empty());
    return items_[head_];
  }

  void push_back(T item) { items_.push_back(std::move(item)); }

  // O(1) when something was popped since the last compaction, else O(n).
  void push_front(T item) {
    if (head_ > 0) {
      items_[--head_] = std::move(item);
    } else {
      items_.insert(items_.begin(), std::move(item));
    }
  }

  // REQUIRES: not empty. Amortised O(1): the dead front is dropped once it is half of the allocation.
  T pop_front() {
    FL_CHECK(!empty());
    T item = std::move(items_[head_++]);
    if (head_ * 2 >= items_.size()) {
      items_.erase(items_.begin(), items_.begin() + static_cast<std::ptrdiff_t>(head_));
      head_ = 0;
    }
    return item;
  }

  // Removes the first item that `match` takes; false when there is none. O(n).
  template <typename Predicate>
  bool remove_first(Predicate match) {
    for (std::size_t i = head_; i < items_.size(); ++i) {
      if (!match(items_[i])) continue;
      items_.erase(items_.begin() + static_cast<std::ptrdiff_t>(i));
      return true;
    }
    return false;
  }

 private:
  std::vector<T> items_;
  std::size_t head_ = 0;  // items before it are gone
};

}  // namespace fairlead
