// Parameters of the queueing policies (MQFQ-Sticky section 4; defaults are the paper's).
#pragma once

#include <cstdint>
#include <optional>

#include "base/units.h"

namespace fairlead {

struct PolicyOptions {
  Duration over_run = std::chrono::seconds(10);    // T: how far a flow's VT may exceed Global_VT, in GPU service
  double over_run_services = 0;                    // T is at least so many mean services of all flows; 0: T is fixed
  double ttl_factor = 2.0;                         // alpha: TTL of an empty flow = alpha x its mean inter-arrival time
  std::optional<Duration> fixed_charge;            // VT grows by this per invocation, whatever it took (for comparison)
  std::optional<Duration> fixed_ttl;               // the same TTL for all flows (for comparison)
  Duration initial_ttl = std::chrono::seconds(2);  // before the second arrival there is no inter-arrival time
  Duration min_ttl{0};
  Duration max_ttl = std::chrono::minutes(10);
  double penalty_latencies = 10;  // cfs-affinity: on a GPU not its own a flow counts with so many mean latencies more
  double patience_reloads = 4;    // resident-window: what an invocation waits for the GPU that has its data, in reloads
  std::uint64_t seed = 1;         // of policies that choose at random
  bool by_tenant = false;         // fair between tenants first, then by the policy within each
};

}  // namespace fairlead
