// What is known of memory that the driver laid out: a pointer or handle, and how many bytes were counted for it.
//
// A hash map with open addressing and linear probing, in 16 shards with a lock each; a removal shifts its successors
// back, so that there are no tombstones and a look-up costs the same after any history. Example: 100,000 entries are
// 6,250 in each shard of 16,384 places (2.2 probes on average in the worst moment before it grows, at 3/4 full), and an
// insert with its removal takes some 40 ns.
#pragma once

#include <cstddef>
#include <cstdint>

#include "abi/cuda_types.h"
#include "shim/memory/os.h"

namespace fairlead::shim::memory {

class Ledger {
 public:
  enum class Kind : std::uint8_t {
    kRecorded,  // somebody else allocates and frees it; only counted here
    kOurs,      // allocate() took it from the driver, and free() gives it back
  };
  struct Entry {
    std::uint64_t key = 0;
    std::size_t bytes = 0;
    CUcontext context = nullptr;  // current when it was made
    Kind kind = Kind::kRecorded;
  };

  constexpr Ledger() = default;
  Ledger(const Ledger&) = delete;
  Ledger& operator=(const Ledger&) = delete;

  // False: the system has no memory for it, or the key is 0. An entry of the same key is replaced, and `replaced` is
  // what it was (key 0: there was none). Thread-safe, as is everything here.
  bool insert(const Entry& entry, Entry* replaced);
  // False: unknown.
  bool find(std::uint64_t key, Entry* entry);
  // Only if it is of this kind.
  bool remove(std::uint64_t key, Kind kind, Entry* entry);
  // Removes all entries of the context; the sum of their bytes. Costs a look at every entry.
  std::size_t remove_all(CUcontext context);

 private:
  static constexpr unsigned kShardBits = 4;
  struct alignas(64) Shard {
    Lock mutex;
    Entry* places FL_GUARDED_BY(mutex) FL_PT_GUARDED_BY(mutex) = nullptr;
    std::size_t capacity FL_GUARDED_BY(mutex) = 0;  // a power of two
    std::size_t count FL_GUARDED_BY(mutex) = 0;
  };
  static std::uint64_t hash(std::uint64_t key);
  Shard& shard_of(std::uint64_t key);
  static std::size_t place_of(const Shard& shard, std::uint64_t key) FL_REQUIRES(shard.mutex);
  static bool grow(Shard& shard) FL_REQUIRES(shard.mutex);
  static void erase(Shard& shard, std::size_t place) FL_REQUIRES(shard.mutex);

  Shard shards_[1 << kShardBits];
};

}  // namespace fairlead::shim::memory
