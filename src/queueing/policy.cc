#include "queueing/policy.h"

#include <fmt/ranges.h>

#include "queueing/batch.h"
#include "queueing/cfs_affinity.h"
#include "queueing/eevd.h"
#include "queueing/exclusive.h"
#include "queueing/fcfs.h"
#include "queueing/mqfq.h"
#include "queueing/mqfq_setup.h"
#include "queueing/mqfq_sticky.h"
#include "queueing/mqfq_warm.h"
#include "queueing/resident_window.h"
#include "queueing/sfq.h"
#include "queueing/sjf.h"
#include "queueing/tenant_queues.h"

namespace fairlead {
namespace {

template <typename Policy>
std::unique_ptr<QueuePolicy> make(const PolicyOptions& options) {
  return std::make_unique<Policy>(options);
}

struct Named {
  std::string_view name;
  std::unique_ptr<QueuePolicy> (*make)(const PolicyOptions&);
};

// Every policy there is, the default first.
constexpr Named kPolicies[] = {
    {"mqfq-setup", make<MqfqSetup>},
    {"mqfq-sticky", make<MqfqSticky>},
    {"mqfq-warm", make<MqfqWarm>},
    {"mqfq", make<Mqfq>},
    {"sfq", make<Sfq>},
    {"fcfs", make<Fcfs>},
    {"fcfs-naive", make<FcfsNaive>},
    {"batch", make<Batch>},
    {"sjf", make<Sjf>},
    {"eevd", make<Eevd>},
    {"resident-window", make<ResidentWindow>},
    {"cfs-affinity", make<CfsAffinity>},
    {"exclusive", make<Exclusive>},
};

}  // namespace

std::optional<Placeable::Place> Placeable::place(FlowId flow, GpuId gpu) const {
  for (const Place& place : places(flow)) {
    if (place.gpu == gpu) return place;
  }
  return std::nullopt;
}

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
  for (const Named& policy : kPolicies) {
    if (policy.name != name) continue;
    if (options.by_tenant) return std::make_unique<TenantQueues>([=] { return policy.make(options); });
    return policy.make(options);
  }
  return fail(Errc::kInvalidArgument, "queueing policy \"{}\" is unknown; known are {}", name,
              fmt::join(policy_names(), ", "));
}

std::vector<std::string_view> policy_names() {
  std::vector<std::string_view> names;
  for (const Named& policy : kPolicies) names.push_back(policy.name);
  return names;
}

}  // namespace fairlead
