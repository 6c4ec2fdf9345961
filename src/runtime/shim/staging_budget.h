// Host memory that functions' device memory is copied into when it leaves the device: how much of the node's budget each
// process has, and where in its arena.
//
// A process has an arena of its own, a sparse file as large as the whole budget, so that none can read or overwrite what
// another has staged. The budget is in pages behind the files: granules (2 MiB) that are granted, or were given back and
// kept, because a function that is swapped once is swapped again and finds its pages there. Kept granules of whoever used
// staging longest ago are dropped when another process needs the room.
//
//   budget 8: A is granted 5, gives 5 back (kept)          used 5
//             B asks for 4: 5 + 4 > 8, so 1 of A's goes    used 8: grant {offset 0, 4}, drop {A, last granule}
//
// Threads: not thread-safe. Pure: carries nothing out; the caller makes and drops the pages.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "base/units.h"

namespace fairlead {

class StagingBudget {
 public:
  using Process = std::uint64_t;
  struct Range {
    Process process = 0;
    std::uint64_t offset = 0;  // bytes, in the process's arena; multiples of wire::kStagingGranule
    std::uint64_t bytes = 0;
    bool operator==(const Range&) const = default;
  };
  struct Grant {
    Range range;
    bool fresh = false;          // some of its pages are not there yet
    std::vector<Range> dropped;  // pages that must go first
  };

  // Rounded down to whole granules.
  explicit StagingBudget(Bytes budget);

  Bytes budget() const { return bytes_of(total_); }
  Bytes used() const { return bytes_of(used_); }  // granted and kept
  Bytes granted(Process process) const;
  Bytes granted() const;

  // `bytes` in one piece, first fit. Empty: the budget, less what is granted, or the arena has no such piece; nothing has
  // changed then. REQUIRES: `bytes` is a multiple of the granule, above 0.
  std::optional<Grant> allocate(Process process, std::uint64_t bytes);
  // False: no grant of that process has exactly this place and size; nothing has changed.
  bool give_back(Process process, std::uint64_t offset, std::uint64_t bytes);
  // The process is dead: its pages go with its arena.
  void remove(Process process);

 private:
  enum class Granule : std::uint8_t { kEmpty, kKept, kGranted };
  struct Arena {
    std::vector<Granule> granules;                  // as far as they were ever granted
    std::map<std::uint64_t, std::uint64_t> grants;  // first granule -> count
    std::uint64_t kept = 0;
    std::uint64_t last_used = 0;
  };

  static Bytes bytes_of(std::uint64_t granules);
  std::optional<std::uint64_t> find_free(const Arena& arena, std::uint64_t count) const;
  std::uint64_t kept_in_all() const;
  void drop_kept(std::uint64_t count, Process asking, std::uint64_t spare_first, std::uint64_t spare_count,
                 std::vector<Range>& dropped);

  std::uint64_t total_;
  std::uint64_t used_ = 0;
  std::uint64_t clock_ = 0;
  std::map<Process, Arena> arenas_;
};

}  // namespace fairlead
