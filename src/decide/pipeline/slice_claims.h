// Who gives slices up for a function that waits for some, and who gets what is free first.
//
// First those that nobody has called for `idle`, whoever has them, the longest idle first. The others go only for a request that waits:
//
//   shares  it runs nothing now, uses its slices little (time sharing, keep_alive.h), and has had them for `shared_stay`; and one that will be
//           used again within `stay_per_start` times as long as it takes to start, for that long. First who is missed least: the time that it
//           takes to come back over the time until it is used again (its mean gap)
//   idle    where tenants compete: pipelines of a tenant that has more for its weight than the one who waits would have with them
//   busy    the same, but it runs requests, which it finishes
//   turn    the request has waited for `turn`: who shares goes though it is busy, and who is hot if it has had its slices for as long. First who
//           has had them longest, the tenant's own before others'
//
// What a function gets in time whose request has waited for `turn` (comes_first) is saved for it: else small functions in turns would never leave
// a large one all the slices that it needs at the same time.
//
// A tenant gives slices of its own up, and such of a tenant that has no less for its weight. So what a tenant has beyond its share it has only while
// nobody with less waits; since with `idle` and `busy` the one who gets them must not end with more for its weight than the other had, two
// tenants push each other out in turns only as `turn` says. And no function of a tenant waits for ever for the tenant's slices: of n that are hot on
// slices for k of them, each has slices for at least `turn` in about n / k turns.
//
// Nobody else gives up what it got less than `least_stay` ago.
//
// Example. A and B, of equal weight, and slices of 4, 2 and 1. A has all in two pipelines, of 4 (hot) and of 2 + 1 (idle for 1 s); a request of B waits.
// 2 + 1 goes to B: 3 is less than 7. Then 4 stays with A for B's next function: B would have 7, and A has 4. A second function of A, for
// which 4 is the only one large enough, has it after 10 s, and gives it back 10 s later.
//
// Source: ours; FluidFaaS (HPDC '25), 5.3 has one tenant, LRU, and no bound on a wait for hot ones. Pure. Determinism: ties break by the holder's
// place in the list.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "base/units.h"

namespace fairlead {

struct SliceHolder {
  std::string tenant;
  int slices = 0;                  // compute slices that it has
  Duration idle{0};                // since its last request ended; 0: it has some
  Duration held{0};                // since it was ready there
  bool may_leave = true;           // false: it starts, or moves
  bool is_hot = false;             // exclusive hot: it leaves only because of its tenant, or in turn
  Duration comes_back{0};          // how long it took to start, the last time
  Duration gap = Duration::max();  // mean, between its requests; it had one at most
};

// Who waits for slices.
struct SliceClaimant {
  std::string tenant;
  Duration waited{0};  // its oldest request; 0: none waits, it is new
};

struct ClaimTerms {
  Duration idle = std::chrono::seconds(30);
  Duration least_stay = std::chrono::seconds(10);
  Duration shared_stay = std::chrono::milliseconds(20);
  int stay_per_start = 4;  // but no longer than `turn`
  Duration turn = std::chrono::seconds(10);
};

class SliceClaims {
 public:
  // `weights`: of tenants; one that is not there has 1. `leaving`: compute slices, by tenant, of those that have given
  // theirs up and still run what they have there. They count for who asks for more, so that who is slow to leave gains nothing, and not
  // for who is asked to give some up: those slices are another's already.
  SliceClaims(const ClaimTerms& terms, std::map<std::string, double> weights, std::vector<SliceHolder> holders,
              std::map<std::string, int> leaving = {});

  // Compute slices of the tenant over its weight: who has least goes first.
  double load(const std::string& tenant) const;
  double load_with_leaving(const std::string& tenant) const;
  // Indices of holders in the order in which they would give up theirs.
  std::vector<std::size_t> leavers_for(const SliceClaimant& claimant) const;
  // Of holders that give theirs up for a request of this tenant if it only waits.
  std::vector<std::size_t> leavers_in_time(const std::string& tenant) const;
  // Where it finds no place and leavers_in_time() would make one, nobody who comes after it may take that.
  bool comes_first(const SliceClaimant& claimant) const { return claimant.waited >= terms_.turn; }

 private:
  enum class Rank { kLongIdle, kShares, kIdle, kBusy, kTurn, kStays };
  Rank rank(const SliceHolder& holder, const SliceClaimant& claimant) const;
  Duration shared_stay(const SliceHolder& holder) const;
  bool gives_turn(const SliceHolder& holder, const std::string& tenant) const;
  double weight(const std::string& tenant) const;

  const ClaimTerms terms_;
  const std::map<std::string, double> weights_;
  const std::vector<SliceHolder> holders_;
  const std::map<std::string, int> leaving_;
};

}  // namespace fairlead
