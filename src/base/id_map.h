// What is known by id, where it is looked up several times per event: std::unordered_map without its division, and without
// an allocation for each entry.
//
// Idea. A table of (id, place of the value), a power of two in size and at most half full; an id begins its search at the
// top bits of id x 2^64 / golden ratio, which spreads ids that count up as evenly as can be, and goes on to the next entry
// until it is found or an entry is empty. The values lie beside the table and do not move, so that a reference holds until
// its own entry is erased. The place of an erased value is given to the next.
//
// Example: 10,000 functions, ids 1 to 10,000, take a table of 32,768 entries of 16 bytes; every search ends at the first.
//
// Has no order and cannot be walked, so no decision can depend on one: ids() gives them sorted.
// Threads: not thread-safe.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "base/check.h"

namespace fairlead {

// Id: an Id<> of base/ids.h; 0, "none", is never there. T: default constructible, assignable.
template <typename Id, typename T>
class IdMap {
 public:
  IdMap() = default;
  IdMap(const IdMap&) = delete;
  IdMap& operator=(const IdMap&) = delete;

  bool empty() const { return size_ == 0; }
  std::size_t size() const { return size_; }

  // Null: not there.
  T* find(Id id) { return entries_[place_of(id)].value; }
  const T* find(Id id) const { return entries_[place_of(id)].value; }
  bool contains(Id id) const { return find(id) != nullptr; }

  // REQUIRES: it is there.
  T& at(Id id) { return const_cast<T&>(std::as_const(*this).at(id)); }
  const T& at(Id id) const {
    const T* found = find(id);
    FL_CHECK(found != nullptr, "id {} is not there", id.value());
    return *found;
  }

  // The value that is there, or else `value`, which then is; and whether it was put there.
  std::pair<T*, bool> try_emplace(Id id, T value) {
    FL_CHECK(id, "id 0 is none");
    std::size_t place = place_of(id);
    if (entries_[place].id) return {entries_[place].value, false};
    if (2 * (size_ + 1) > entries_.size()) {
      grow();
      place = place_of(id);
    }
    entries_[place] = {id, new_value(std::move(value))};
    ++size_;
    return {entries_[place].value, true};
  }
  T& operator[](Id id) { return *try_emplace(id, T()).first; }

  // False: it was not there.
  bool erase(Id id) {
    std::size_t hole = place_of(id);
    if (!entries_[hole].id) return false;
    *entries_[hole].value = T();
    free_.push_back(entries_[hole].value);
    --size_;
    // Those behind the hole that were pushed past it come back, or they would not be found.
    for (std::size_t next = after(hole); entries_[next].id; next = after(next)) {
      const std::size_t pushed = (next - home(entries_[next].id)) & mask();
      if (pushed < ((next - hole) & mask())) continue;
      entries_[hole] = entries_[next];
      hole = next;
    }
    entries_[hole] = Entry();
    return true;
  }

  std::vector<Id> ids() const {
    std::vector<Id> sorted;
    for (const Entry& entry : entries_) {
      if (entry.id) sorted.push_back(entry.id);
    }
    std::sort(sorted.begin(), sorted.end());
    return sorted;
  }

 private:
  struct Entry {
    Id id;
    T* value = nullptr;
  };

  std::size_t mask() const { return entries_.size() - 1; }
  std::size_t after(std::size_t place) const { return (place + 1) & mask(); }
  std::size_t home(Id id) const { return static_cast<std::size_t>(id.value() * 0x9e3779b97f4a7c15u >> shift_); }

  // Where the id is, or the empty entry where it would be put.
  std::size_t place_of(Id id) const {
    std::size_t place = home(id);
    while (entries_[place].id && entries_[place].id != id) place = after(place);
    return place;
  }

  void grow() {
    std::vector<Entry> old(entries_.size() * 2);
    old.swap(entries_);
    --shift_;
    for (const Entry& entry : old) {
      if (entry.id) entries_[place_of(entry.id)] = entry;
    }
  }

  T* new_value(T&& value) {
    if (free_.empty()) return &values_.emplace_back(std::move(value));
    T* reused = free_.back();
    free_.pop_back();
    *reused = std::move(value);
    return reused;
  }

  static constexpr int kFirstBits = 3;
  std::vector<Entry> entries_{std::size_t{1} << kFirstBits};
  int shift_ = 64 - kFirstBits;
  std::size_t size_ = 0;
  std::deque<T> values_;
  std::vector<T*> free_;
};

}  // namespace fairlead
