#include "queueing/policy.h"

#include <fmt/ranges.h>

#include "queueing/fcfs.h"
#include "queueing/mqfq_sticky.h"

namespace fairlead {

std::string_view flow_state_name(FlowState state) {
  switch (state) {
    case FlowState::kActive: return "active";
    case FlowState::kThrottled: return "throttled";
    case FlowState::kInactive: return "inactive";
  }
  return "unknown";
}

Result<std::unique_ptr<QueuePolicy>> make_policy(std::string_view name, const PolicyOptions& options) {
  if (options.over_run < Duration(0)) {
    return fail(Errc::kInvalidArgument, "over-run T is {} s, it must be 0 or more", to_seconds(options.over_run));
  }
  if (!(options.ttl_factor >= 0)) {
    return fail(Errc::kInvalidArgument, "TTL factor alpha is {}, it must be 0 or more", options.ttl_factor);
  }
  if (name == "mqfq-sticky") return std::make_unique<MqfqSticky>(options);
  if (name == "fcfs") return std::make_unique<Fcfs>(options);
  return fail(Errc::kInvalidArgument, "queueing policy \"{}\" is unknown; known are {}", name,
              fmt::join(policy_names(), ", "));
}

std::vector<std::string_view> policy_names() {
  return {"mqfq-sticky", "fcfs"};
}

}  // namespace fairlead
