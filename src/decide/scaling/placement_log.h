// Who had seats where, and since when: what pictures of devices over time are drawn from.
//
// Each entry says all seats of one function from a moment on. What is older than the oldest entry is folded into one entry for each function,
// so that the picture is whole from there on.
//
// Example: {0 s, f: GPU 1}, {2 s, f: GPU 1 twice}, {5 s, f: none}, and with room for two entries: {2 s, f: GPU 1 twice}, {5 s, f: none}.
//
// Pure. Time: given. Bounded: kMostEntries of all functions, and one for each function that has seats. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "base/ids.h"

namespace fairlead {

struct PlacementEntry {
  std::int64_t at_ms = 0;  // since 1970
  std::string function;
  int width_percent = 0, quota_percent = 0;  // of each seat
  std::map<GpuId, std::size_t> seats;        // none: it has none from now on
  bool operator==(const PlacementEntry&) const = default;
};

class PlacementLog {
 public:
  static constexpr std::size_t kMostEntries = 1024;

  // What it has from now on. No effect where it has that already. REQUIRES: `at_ms` does not go back.
  void note(PlacementEntry entry);
  // It was deleted: somebody else may have its name next.
  void forget(const std::string& function);
  // In order of time: first those that hold since before the oldest entry.
  std::vector<PlacementEntry> entries() const;

 private:
  std::map<std::string, PlacementEntry> before_;  // by function; those with seats
  std::map<std::string, PlacementEntry> last_;    // the same, now
  std::deque<PlacementEntry> entries_;
};

}  // namespace fairlead
