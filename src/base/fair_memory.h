// What is kept of many owners for a while, within limits in number and in bytes: which item is forgotten when there are too many.
// The oldest one of who holds the most, so that nobody's flood makes the node forget what it keeps for others.
//
// Example, 1,000 items: a flooder's 1,500 beside a victim's 3 are forgotten down to 997, and the victim's 3 stay. With k owners,
// who holds at most a k-th of both limits loses nothing, whatever the others do.
//
// Who holds the most: by the larger of the owner's parts of the two limits. An item larger than the limit in bytes is forgotten
// alone, at once. Cost: logarithmic. Pure. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

namespace fairlead {

class FairMemory {
 public:
  using Item = std::uint64_t;  // the smallest is the oldest

  struct Limits {
    std::size_t items, bytes;  // at least 1
  };
  explicit FairMemory(Limits limits) : limits_(limits) {}

  // REQUIRES: the item is not there.
  void add(const std::string& owner, Item item, std::size_t bytes);
  void remove(Item item);  // no effect: it is not there
  // What is to be removed now, so that the limits hold; empty: they do.
  std::optional<Item> to_forget() const;

  std::size_t items() const { return items_.size(); }
  std::size_t bytes() const { return bytes_; }

 private:
  struct Owner {
    std::set<Item> items;  // never empty
    std::size_t bytes = 0;
  };
  struct Kept {
    std::map<std::string, Owner>::iterator owner;
    std::size_t bytes;
  };
  std::pair<double, std::string> rank(const std::map<std::string, Owner>::iterator& owner) const;

  const Limits limits_;
  std::map<std::string, Owner> owners_;
  std::map<Item, Kept> items_;
  std::set<std::pair<double, std::string>> by_part_;  // of the limits; who holds the most is last
  std::size_t bytes_ = 0;
};

}  // namespace fairlead
