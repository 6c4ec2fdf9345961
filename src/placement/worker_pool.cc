#include "placement/worker_pool.h"

#include <fmt/ranges.h>

#include "placement/cfs_affinity.h"
#include "placement/exclusive_pools.h"
#include "placement/resident_window.h"

namespace fairlead {
namespace {

template <typename Pool>
std::unique_ptr<WorkerPool> make(const WorkerPoolOptions& options) {
  return std::make_unique<Pool>(options);
}

struct Named {
  std::string_view name;
  std::unique_ptr<WorkerPool> (*make)(const WorkerPoolOptions&);
};

constexpr Named kPools[] = {
    {"resident-window", make<ResidentWindow>},
    {"cfs-affinity", make<CfsAffinity>},
    {"exclusive", make<ExclusivePools>},
};

}  // namespace

Result<std::unique_ptr<WorkerPool>> make_worker_pool(std::string_view name, const WorkerPoolOptions& options) {
  if (options.gpus == 0) return fail(Errc::kInvalidArgument, "gpus is 0, it must be 1 or more");
  if (options.lanes == 0) return fail(Errc::kInvalidArgument, "lanes is 0, it must be 1 or more");
  if (!(options.penalty_latencies >= 0)) {
    return fail(Errc::kInvalidArgument, "the affinity penalty is {} mean latencies, it must be 0 or more",
                options.penalty_latencies);
  }
  if (options.over_run < Duration(0)) {
    return fail(Errc::kInvalidArgument, "over-run T is {} s, it must be 0 or more", to_seconds(options.over_run));
  }
  if (!(options.patience_reloads >= 0)) {
    return fail(Errc::kInvalidArgument, "patience is {} reloads, it must be 0 or more", options.patience_reloads);
  }
  for (const Named& pool : kPools) {
    if (pool.name == name) return pool.make(options);
  }
  return fail(Errc::kInvalidArgument, "worker pool \"{}\" is unknown; known are {}", name,
              fmt::join(worker_pool_names(), ", "));
}

std::vector<std::string_view> worker_pool_names() {
  std::vector<std::string_view> names;
  for (const Named& pool : kPools) names.push_back(pool.name);
  return names;
}

}  // namespace fairlead
