// What a run of the kernel task laboratory is about: clients, machine, how kernel tasks are served, what is sent.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "decide/queueing/policy.h"
#include "decide/queueing/window.h"
#include "decide/residency/object_cache.h"

namespace fairlead::sim {

// One function of the KaaS paper's evaluation. Replicas of it have constants of their own: they are tenants.
struct KtaskWorkload {
  std::string name;
  Bytes constants{0};
  Bytes dynamic{0};        // of one request: half comes in, half goes out
  Duration gpu{0};         // its kernels, alone on the device
  Duration cpu{0};         // before and after them, half each
  double gpu_share = 1;    // of the device that its kernels alone can use; 0.25: four at once run at full speed
  Duration cold_start{0};  // of the process that an ordinary GPU function (eTask) needs
};
// docs/how-to/simulator-ktask.md says where each number is from.
const std::vector<KtaskWorkload>& ktask_workloads();

struct KtaskSetup {
  std::vector<KtaskWorkload> clients;

  // The machine: by default the paper's, four V100 of 16 GB and 32 cores.
  std::size_t gpus = 4, cores = 32;
  Bytes memory = gib(14);  // of a GPU, for objects
  double link_bytes_per_second = 12e9;
  double peer_bytes_per_second = 0;  // between two GPUs; 0: constants come from the host alone
  std::size_t copy_streams = 2;      // 2: small copies do not queue behind large ones, as in the device server

  // How it is served: by default as a node does that nobody configured.
  std::string policy = "mqfq-setup";  // of policy_names(); exclusive: by eTasks
  std::size_t lanes = 0;              // 0: as measured (sharing/measured_lanes.h)
  std::size_t loads_at_once = 1;      // requests that bring constants to a GPU without holding a lane; 0: they hold one
  PolicyOptions policy_options = PolicyOptions().set(kOverRun, std::chrono::seconds(8));
  CacheEviction eviction = CacheEviction::kCost;
  Duration dynamic_kept{0};  // inputs and outputs are deleted so long after the answer

  // What is sent. Offline: every client keeps `outstanding` requests with the service. Online: Poisson, so many a second
  // of each client; latencies count from when a request was due, as in MLPerf's server scenario.
  std::size_t outstanding = 1;
  std::vector<double> rates;   // online: one for each client
  std::optional<double> rate;  // what run_online() makes `rates` of, over all clients; empty: a share of the peak
  Duration warm_up = std::chrono::seconds(20), duration = std::chrono::seconds(60);
  double noise = 0;  // kernels and CPU parts take up to so much more or less
  std::uint64_t seed = 1;

  bool processes() const { return policy == "exclusive"; }
};

// Systems to compare: "fairlead" (the defaults above: the node's), "window" (resident-window with four lanes), "kaas" (the paper's executor: cfs-affinity, one stream, single use
// first) and "etask" (the paper's baseline: exclusive).
std::vector<std::string_view> ktask_systems();
Result<KtaskSetup> ktask_system(std::string_view name);

struct KtaskSetting {
  std::string key, meaning;
};
std::vector<KtaskSetting> ktask_settings();
// kInvalidArgument names the key, the value and what is allowed. Settings of a workload change those of all clients.
Status set(KtaskSetup& setup, std::string_view key, std::string_view value);

// kInvalidArgument: what is wrong with it as a whole.
Status check(const KtaskSetup& setup);

// `replicas` of each workload named in "jacobi" or "bert+cgemm". kInvalidArgument: no such workload.
Result<std::vector<KtaskWorkload>> ktask_clients(std::string_view workloads, std::size_t replicas);

}  // namespace fairlead::sim
