// Who gives slices up for a function that waits for some, and who gets what is free first.
//
// First those that nobody has called for `idle`, whoever has them, the longest idle first. Then, where tenants compete, pipelines of a tenant
// that has more for its weight than the one who waits would have with them: idle ones, then such that run requests, which they finish. So
// what a tenant has beyond its share it has only while nobody with less waits; and since the one who gets them must not end with more
// for its weight than the other had, two tenants do not push each other out in turns.
//
// Nobody gives up what it got less than `least_stay` ago.
//
// Example. A and B, of equal weight, and slices of 4, 2 and 1. A has all in two pipelines, of 4 (busy) and of 2 + 1 (idle for 1 s); B waits. 2 + 1
// goes to B: 3 is less than 7. Then 4 stays with A: B would have 7, and A has 4.
//
// Source: ours; FluidFaaS (HPDC '25), 5.3 has one tenant, and LRU. Pure. Determinism: ties break by the holder's place in the list.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "base/units.h"

namespace fairlead {

struct SliceHolder {
  std::string tenant;
  int slices = 0;         // compute slices that it has
  Duration idle{0};       // since its last request ended; 0: it has some
  Duration held{0};       // since it got them
  bool may_leave = true;  // false: it is hot, starts, or moves
};

struct ClaimTerms {
  Duration idle = std::chrono::seconds(30);
  Duration least_stay = std::chrono::seconds(10);
};

class SliceClaims {
 public:
  // `weights`: of tenants; one that is not there has 1.
  SliceClaims(const ClaimTerms& terms, std::map<std::string, double> weights, std::vector<SliceHolder> holders);

  // Compute slices of the tenant over its weight: who has least goes first.
  double load(const std::string& tenant) const;
  // Indices of holders in the order in which they would give up theirs.
  std::vector<std::size_t> leavers_for(const std::string& tenant) const;

 private:
  double weight(const std::string& tenant) const;

  const ClaimTerms terms_;
  const std::map<std::string, double> weights_;
  const std::vector<SliceHolder> holders_;
};

}  // namespace fairlead
