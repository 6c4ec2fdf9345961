// A min-heap whose elements can be found again. Elements are dense row numbers (0, 1, 2, ...), each with a key; a row's
// key may change and a row may leave at any place in the heap, in O(log n).
//
// Layout: 4-ary, keys stored in the heap itself, so that a sift touches one line of children per level and never the
// flow table. With 10,000 flows and 24-byte keys it is 7 levels and 320 KB.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "base/check.h"

namespace fairlead {

// Key: copyable, with a strict total order by operator<. Equal keys of different rows would make the order depend on
// history: put an id into the key.
// Threads: not thread-safe.
template <typename Key>
class IndexedHeap {
 public:
  using Row = std::uint32_t;

  bool empty() const { return entries_.empty(); }
  std::size_t size() const { return entries_.size(); }
  bool contains(Row row) const { return row < places_.size() && places_[row] != kAbsent; }

  // REQUIRES: not empty.
  Row top() const {
    FL_CHECK(!entries_.empty());
    return entries_.front().row;
  }
  const Key& top_key() const {
    FL_CHECK(!entries_.empty());
    return entries_.front().key;
  }

  // REQUIRES: contains(row).
  const Key& key_of(Row row) const {
    FL_CHECK(contains(row));
    return entries_[places_[row]].key;
  }

  // Any row, by its present place in the heap: for choices at random. REQUIRES: place < size().
  Row at(std::size_t place) const {
    FL_CHECK(place < entries_.size());
    return entries_[place].row;
  }

  // Inserts the row, or changes its key.
  void set(Row row, const Key& key) {
    if (row >= places_.size()) places_.resize(row + 1, kAbsent);
    std::uint32_t place = places_[row];
    if (place == kAbsent) {
      place = static_cast<std::uint32_t>(entries_.size());
      entries_.push_back({key, row});
    }
    settle(place, {key, row});
  }

  // No effect when the row is not there.
  void erase(Row row) {
    if (!contains(row)) return;
    const std::uint32_t place = std::exchange(places_[row], kAbsent);
    const Entry last = entries_.back();
    entries_.pop_back();
    if (place < entries_.size()) settle(place, last);
  }

  // The first row, in key order, that `accept` takes. O((1 + k) log n) for k rows refused before it; O(1) when the
  // first is taken. The heap is unchanged afterwards. `accept` must not touch the heap.
  template <typename Predicate>
  std::optional<Row> find_first(Predicate accept) {
    std::optional<Row> found;
    while (!entries_.empty() && !found) {
      const Entry first = entries_.front();
      if (accept(first.row)) {
        found = first.row;
      } else {
        refused_.push_back(first);
        erase(first.row);
      }
    }
    for (const Entry& entry : refused_) set(entry.row, entry.key);
    refused_.clear();
    return found;
  }

 private:
  static constexpr std::uint32_t kAbsent = std::numeric_limits<std::uint32_t>::max();
  static constexpr std::uint32_t kArity = 4;
  struct Entry {
    Key key;
    Row row;
  };

  void put(std::uint32_t place, const Entry& entry) {
    entries_[place] = entry;
    places_[entry.row] = place;
  }

  // Writes `entry` at `place`, which is free, and moves it up or down to where it belongs.
  void settle(std::uint32_t place, const Entry& entry) {
    const std::uint32_t start = place;
    while (place > 0) {
      const std::uint32_t parent = (place - 1) / kArity;
      if (!(entry.key < entries_[parent].key)) break;
      put(place, entries_[parent]);
      place = parent;
    }
    if (place == start) place = sink(place, entry.key);
    put(place, entry);
  }

  // Moves smaller children up until `key` fits; returns the free place.
  std::uint32_t sink(std::uint32_t place, const Key& key) {
    const auto size = static_cast<std::uint32_t>(entries_.size());
    for (std::uint32_t child = place * kArity + 1; child < size; child = place * kArity + 1) {
      const std::uint32_t end = child + kArity < size ? child + kArity : size;
      std::uint32_t least = child;
      for (std::uint32_t other = child + 1; other < end; ++other) {
        if (entries_[other].key < entries_[least].key) least = other;
      }
      if (!(entries_[least].key < key)) break;
      put(place, entries_[least]);
      place = least;
    }
    return place;
  }

  std::vector<Entry> entries_;
  std::vector<std::uint32_t> places_;  // by row
  std::vector<Entry> refused_;         // scratch of find_first
};

}  // namespace fairlead
