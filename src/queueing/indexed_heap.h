// A min-heap whose elements can be found again. Elements are dense slot numbers (0, 1, 2, ...), each with a key; a slot's
// key may change and a slot may leave at any place in the heap, in O(log n).
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

// Key: copyable, with a strict total order by operator<. Equal keys of different slots would make the order depend on
// history: put an id into the key.
// Threads: not thread-safe.
template <typename Key>
class IndexedHeap {
 public:
  using Slot = std::uint32_t;

  bool empty() const { return entries_.empty(); }
  std::size_t size() const { return entries_.size(); }
  bool contains(Slot slot) const { return slot < places_.size() && places_[slot] != kAbsent; }

  // REQUIRES: not empty.
  Slot top() const {
    FL_CHECK(!entries_.empty());
    return entries_.front().slot;
  }
  const Key& top_key() const {
    FL_CHECK(!entries_.empty());
    return entries_.front().key;
  }

  // REQUIRES: contains(slot).
  const Key& key_of(Slot slot) const {
    FL_CHECK(contains(slot));
    return entries_[places_[slot]].key;
  }

  // Any slot, by its present place in the heap: for choices at random. REQUIRES: place < size().
  Slot at(std::size_t place) const {
    FL_CHECK(place < entries_.size());
    return entries_[place].slot;
  }

  // Inserts the slot, or changes its key.
  void set(Slot slot, const Key& key) {
    if (slot >= places_.size()) places_.resize(slot + 1, kAbsent);
    std::uint32_t place = places_[slot];
    if (place == kAbsent) {
      place = static_cast<std::uint32_t>(entries_.size());
      entries_.push_back({key, slot});
    }
    settle(place, {key, slot});
  }

  // No effect when the slot is not there.
  void erase(Slot slot) {
    if (!contains(slot)) return;
    const std::uint32_t place = std::exchange(places_[slot], kAbsent);
    const Entry last = entries_.back();
    entries_.pop_back();
    if (place < entries_.size()) settle(place, last);
  }

  // The first slot, in key order, that `accept` takes. O((1 + k) log n) for k slots refused before it; O(1) when the
  // first is taken. The heap is unchanged afterwards. `accept` must not touch the heap.
  template <typename Predicate>
  std::optional<Slot> find_first(Predicate accept) {
    std::optional<Slot> found;
    while (!entries_.empty() && !found) {
      const Entry first = entries_.front();
      if (accept(first.slot)) {
        found = first.slot;
      } else {
        refused_.push_back(first);
        erase(first.slot);
      }
    }
    for (const Entry& entry : refused_) set(entry.slot, entry.key);
    refused_.clear();
    return found;
  }

 private:
  static constexpr std::uint32_t kAbsent = std::numeric_limits<std::uint32_t>::max();
  static constexpr std::uint32_t kArity = 4;
  struct Entry {
    Key key;
    Slot slot;
  };

  void put(std::uint32_t place, const Entry& entry) {
    entries_[place] = entry;
    places_[entry.slot] = place;
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
  std::vector<std::uint32_t> places_;  // by slot
  std::vector<Entry> refused_;         // scratch of find_first
};

}  // namespace fairlead
