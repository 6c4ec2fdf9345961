// A hash table from words to small values: open addressing, linear probing, at most half full, deletion by moving back
// what follows. Its memory comes from the kernel, because the host's malloc may be the host's own and may be locked.
//
// Values are trivially copyable; keys are not 0. Pointers to values hold until the next insert or erase.
// Not thread-safe. Zero-initialised is empty, so a table may be a static object without a constructor.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace fairlead::shim {

template <typename Value>
class Table {
  static_assert(std::is_trivially_copyable_v<Value>);

 public:
  Value* find(std::uint64_t key) {
    if (count_ == 0) return nullptr;
    Entry& entry = entries_[position(key)];
    return entry.key == key ? &entry.value : nullptr;
  }

  // In place of what was there. False: no memory.
  bool insert(std::uint64_t key, const Value& value) {
    if ((count_ + 1) * 2 > capacity_ && !grow()) return false;
    Entry& entry = entries_[position(key)];
    if (entry.key == 0) ++count_;
    entry = {key, value};
    return true;
  }

  void erase(std::uint64_t key) {
    if (find(key) == nullptr) return;
    --count_;
    std::size_t hole = position(key);
    for (std::size_t i = next(hole); entries_[i].key != 0; i = next(i)) {
      // An entry may move back only if its own place is not between the hole and where it is.
      const std::size_t home = home_of(entries_[i].key);
      const bool stays = hole <= i ? hole < home && home <= i : hole < home || home <= i;
      if (stays) continue;
      entries_[hole] = entries_[i];
      hole = i;
    }
    entries_[hole].key = 0;
  }

  std::size_t size() const { return count_; }

  // The first key whose value `wanted` accepts; 0: none.
  template <typename Wanted>
  std::uint64_t find_if(Wanted wanted) const {
    for (std::size_t i = 0; i < capacity_; ++i) {
      if (entries_[i].key != 0 && wanted(entries_[i].value)) return entries_[i].key;
    }
    return 0;
  }

  void clear() {
    if (entries_ != nullptr) ::munmap(entries_, capacity_ * sizeof(Entry));
    entries_ = nullptr;
    capacity_ = count_ = 0;
  }

 private:
  struct Entry {
    std::uint64_t key;
    Value value;
  };
  static constexpr std::size_t kFirstCapacity = 256;

  std::size_t home_of(std::uint64_t key) const {
    return static_cast<std::size_t>((key * 0x9e3779b97f4a7c15U) >> 20) & (capacity_ - 1);
  }
  std::size_t next(std::size_t i) const { return (i + 1) & (capacity_ - 1); }
  // Of the key, or of the empty entry where it would be.
  std::size_t position(std::uint64_t key) const {
    std::size_t i = home_of(key);
    while (entries_[i].key != 0 && entries_[i].key != key) i = next(i);
    return i;
  }

  bool grow() {
    const std::size_t capacity = capacity_ == 0 ? kFirstCapacity : 2 * capacity_;
    void* const memory =
        ::mmap(nullptr, capacity * sizeof(Entry), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return false;
    Entry* const old = entries_;
    const std::size_t old_capacity = capacity_;
    entries_ = static_cast<Entry*>(memory);
    capacity_ = capacity;
    for (std::size_t i = 0; i < old_capacity; ++i) {
      if (old[i].key != 0) entries_[position(old[i].key)] = old[i];
    }
    if (old != nullptr) ::munmap(old, old_capacity * sizeof(Entry));
    return true;
  }

  Entry* entries_ = nullptr;
  std::size_t capacity_ = 0;  // a power of two
  std::size_t count_ = 0;
};

}  // namespace fairlead::shim
