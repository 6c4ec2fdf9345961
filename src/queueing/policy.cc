#include "queueing/policy.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "base/check.h"

namespace fairlead {
namespace {

std::vector<const Policy*>& known() {
  static std::vector<const Policy*> known = {
#define FL_POLICY(name) &name##_policy,
#include "queueing/policies.inc"
#undef FL_POLICY
  };
  return known;
}

Status check_options(const PolicyOptions& options) {
  if (options.over_run < Duration(0)) {
    return fail(Errc::kInvalidArgument, "over-run T is {} s, it must be 0 or more", to_seconds(options.over_run));
  }
  if (!(options.ttl_factor >= 0)) {
    return fail(Errc::kInvalidArgument, "TTL factor alpha is {}, it must be 0 or more", options.ttl_factor);
  }
  if (!(options.over_run_services >= 0)) {
    return fail(Errc::kInvalidArgument, "over-run T is {} mean services, it must be 0 or more",
                options.over_run_services);
  }
  if (!(options.penalty_latencies >= 0)) {
    return fail(Errc::kInvalidArgument, "the affinity penalty is {} mean latencies, it must be 0 or more",
                options.penalty_latencies);
  }
  if (!(options.patience_reloads >= 0)) {
    return fail(Errc::kInvalidArgument, "patience is {} reloads, it must be 0 or more", options.patience_reloads);
  }
  return {};
}

}  // namespace

std::vector<const Policy*> policies() {
  return known();
}

std::vector<std::string_view> policy_names() {
  std::vector<std::string_view> names;
  for (const Policy* policy : known()) names.push_back(policy->name);
  return names;
}

Result<std::unique_ptr<FlowQueue>> make_policy(std::string_view name, const PolicyOptions& options) {
  if (Status valid = check_options(options); !valid) return fail(valid.error());
  for (const Policy* policy : known()) {
    if (policy->name == name) return std::make_unique<FlowQueue>(*policy, options);
  }
  return fail(Errc::kInvalidArgument, "queueing policy \"{}\" is unknown; known are {}", name,
              fmt::join(policy_names(), ", "));
}

RegisteredPolicy::RegisteredPolicy(const Policy& policy) {
  for (const std::string_view name : policy_names()) FL_CHECK(name != policy.name, "policy {} is there already", name);
  known().push_back(&policy);
}

}  // namespace fairlead
