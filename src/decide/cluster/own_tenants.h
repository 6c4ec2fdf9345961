// A node's own tenants among those of its cluster: what it says of them, and by which factor it multiplies each one's weight.
//
//   served, waiting ──say──> the node's word ──> TenantClocks of every node ──changed──> factors that are new here
//
// What is said is bounded: kMostTenantsSaid tenants. Those that wait come first: half of the room is for those of them that were served most, half for
// those that were served least, since the middle ones need no factor. Then come those that were served most. A node that others thought
// dead goes on under a higher incarnation, and what was served before that is not said again.
//
// A factor is news where it differs by more than kNewsworthy: the core looks at all its work after each.
//
// Pure. Not thread-safe. Determinism: of the calls.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "decide/cluster/tenant_clocks.h"

namespace fairlead {

inline constexpr double kNewsworthy = 0.01;  // of a factor

struct OwnTenant {
  std::string name;
  double weight = 1;        // here, without the cluster's factor
  double served_s = 0;      // GPU seconds since the node began; it does not fall
  bool is_waiting = false;  // TenantUse
};

using TenantFactors = std::vector<std::pair<std::string, double>>;  // by name

class OwnTenants {
 public:
  // For the node's word under this incarnation; by key, ascending. A tenant that was never served and does not wait is left out.
  std::vector<TenantService> say(std::uint64_t incarnation, const std::vector<OwnTenant>& tenants);
  // Tells the clocks what each of them weighs here; then, of those whose factor is another one, their names and factors. They count as set.
  TenantFactors changed(TenantClocks& clocks);

  // The factor that was last told; 1 of those who are not there.
  double factor(const std::string& tenant) const;
  // The middle of those that waited here at the last say().
  double middle_s(const TenantClocks& clocks) const { return clocks.middle_s(waiting_); }

 private:
  struct Known {
    std::uint64_t key = 0;
    double weight = 1;
    double served_before_s = 0;  // under former incarnations
    double served_s = 0;
    double factor = 1;
  };
  std::map<std::string, Known> tenants_;
  TenantKeys waiting_;  // here
  std::uint64_t incarnation_ = 0;
};

}  // namespace fairlead
