// Where a function's instances live, and who shares a slice: states with the paper's thresholds, and slices that several functions take in turns.
//
//                 first request                         utilisation above 30 %
//   cold ────────────────────────> time sharing <────────────────────────────> exclusive hot
//     ^                             │        ^           below, for `hold`
//     │ 10 min without a request    │evicted │ request
//     └──────────────────────────  warm ─────┘
//
// Exclusive hot: slices of its own, never evicted; every pipeline of several slices is. Time sharing: at most one instance of a function, of one
// slice, which others use, too. One instance is on a shared slice at a time: that is its isolation. Warm: its memory is in host memory.
//
// Who leaves a shared slice. `lru`, the paper's: the one used longest ago. `cost`, ours: of those that have stayed `least_stay`, the one that costs
// least to miss: the time it takes to come back over the time until it is used again (its mean gap); a slice that holds nobody comes first. Without
// the least stay two functions would push each other out in turns; with LRU a cycle of one more function than slices always misses.
//
// More shared slices where a part of the requests above `grow_missed` is late, fewer where the mean utilisation is below `shrink_below`.
//
// Source: FluidFaaS (HPDC '25), 5.3, Figure 8; `cost` and the least stay are ours. Pure. Not thread-safe. Determinism: of the calls.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/units.h"

namespace fairlead {

enum class KeepAliveState { kCold, kWarm, kTimeSharing, kExclusiveHot };
std::string_view keep_alive_name(KeepAliveState state);  // "cold", "warm", "time sharing", "exclusive hot"
// The arrows above, and from exclusive hot or time sharing to warm or cold when a slice or its process is lost.
bool may_become(KeepAliveState from, KeepAliveState to);

struct KeepAliveTerms {
  double hot_above = 0.3;                   // utilisation of one slice by its requests
  Duration hold = std::chrono::seconds(5);  // below for as long: back to time sharing
  Duration cold_after = std::chrono::minutes(10);
};

// The state of one function.
class KeepAlive {
 public:
  explicit KeepAlive(const KeepAliveTerms& terms = {}) : terms_(terms) {}

  KeepAliveState state() const { return state_; }
  // What it becomes; the same: nothing changes.
  KeepAliveState on_request(Instant now);
  // `utilisation`: of one slice alone by all of its requests lately.
  KeepAliveState on_utilisation(Instant now, double utilisation);
  KeepAliveState on_evicted(Instant now);  // no effect unless time sharing
  KeepAliveState on_lost(Instant now, bool memory_is_in_host);
  KeepAliveState wake(Instant now);
  std::optional<Instant> next_wakeup() const;  // empty: nothing is due

 private:
  KeepAliveState become(KeepAliveState state);

  KeepAliveTerms terms_;
  KeepAliveState state_ = KeepAliveState::kCold;
  Instant last_request_;
  std::optional<Instant> below_since_;
};

using SharedSliceId = Id<struct SharedSliceTag>;

enum class EvictionRule { kLru, kCost };

struct SharedTerms {
  EvictionRule rule = EvictionRule::kCost;
  Duration least_stay = std::chrono::seconds(1);  // of kCost
  double grow_missed = 0.05, shrink_below = 0.3;
};

class SharedSlices {
 public:
  static constexpr std::size_t kMostKnown =
      4096;  // functions whose gaps are known; beyond, who was used longest ago is forgotten

  struct Placement {
    SharedSliceId slice;
    std::optional<FlowId> evicts;
    bool must_load = false;  // it is not there yet
  };

  explicit SharedSlices(const SharedTerms& terms = {}) : terms_(terms) {}
  std::size_t known_functions() const { return uses_.size(); }

  void add(SharedSliceId slice);  // REQUIRES: not there
  // False: somebody runs on it. Who was resident is no more.
  bool remove(SharedSliceId slice);
  bool holds(SharedSliceId slice) const { return slices_.contains(slice); }
  std::size_t size() const { return slices_.size(); }

  // A slice for a request of `function`, which holds it until finished(). Nothing: all are busy, or all who could leave came too recently.
  // `fits`: slices on which the function runs. `comes_back`: its time from host memory.
  std::optional<Placement> place(Instant now, FlowId function, Duration comes_back,
                                 const std::set<SharedSliceId>& fits);
  void finished(Instant now, SharedSliceId slice, Duration busy);
  std::optional<FlowId> resident(SharedSliceId slice) const;
  // The function is gone: nobody asks for it any more. Where it is resident its slice holds nobody. REQUIRES: none of its requests is on a slice.
  void forget(FlowId function);

  void note_answer(bool in_time);
  // Since the last call: how many more slices are wanted (1), or fewer (-1), or neither.
  int wanted_change(Duration passed);

 private:
  struct Slice {
    std::optional<FlowId> resident;
    bool is_busy = false;
    Instant came, used;
    Duration comes_back{0};
  };
  double worth_of(Instant now, const Slice& slice) const;
  void note_use(Instant now, FlowId function);

  struct Use {
    Instant last;
    Duration gap{0};  // mean, moving
  };
  const SharedTerms terms_;
  std::map<SharedSliceId, Slice> slices_;
  std::map<FlowId, Use> uses_;
  Duration busy_{0};
  std::uint64_t answers_ = 0, missed_ = 0;
};

}  // namespace fairlead
