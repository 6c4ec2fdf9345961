// What `fairlead serve` can be told, as plain values with the defaults that an operator gets. This is the only place of those
// defaults: the table of settings (serve_settings.h) reads and writes these fields, and the simulator's preset `node` takes its
// values from here. What a value may be stands in the table.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "decide/core/core.h"
#include "decide/queueing/tenant_entry.h"
#include "decide/residency/object_cache.h"
#include "decide/residency/residency.h"
#include "decide/sharing/sharing_mode.h"
#include "model/egress_list.h"
#include "model/volume.h"
#include "model/warm_hold.h"
#include "runtime/uid_pool.h"
#include "wire/shim_frames.h"

namespace fairlead {

// A share of the machine's memory, at most so much.
inline std::uint64_t share_of_memory(std::uint64_t divisor, std::uint64_t most) {
  const auto pages = static_cast<std::uint64_t>(std::max(0L, ::sysconf(_SC_PHYS_PAGES)));
  return std::min(pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)) / divisor, most);
}

// An eighth of the machine's memory, at most 16 GiB.
inline std::uint64_t default_object_memory_bytes() {
  return share_of_memory(8, std::uint64_t{16} << 30);
}

// An eighth of the machine's memory, at most 2 GiB; at least what lets a package of the largest size in, beside another.
inline constexpr std::uint64_t kLeastRequestMemory = std::uint64_t{160} << 20;
inline std::uint64_t default_request_memory_bytes() {
  return std::max(kLeastRequestMemory, share_of_memory(8, std::uint64_t{2} << 30));
}

// A quarter of the machine's memory, at most 64 GiB, in whole staging granules.
inline std::uint64_t default_host_memory_bytes() {
  return share_of_memory(4, std::uint64_t{64} << 30) / wire::kStagingGranule * wire::kStagingGranule;
}

// More than four at a time bought nothing in simulation (docs/explanation/ablation.md), and each keeps about one core busy. A simulated
// node has as many as the largest real one.
inline constexpr int kMostDefaultStarts = 4;
inline int default_starts_per_gpu() {
  return static_cast<int>(std::clamp(::sysconf(_SC_NPROCESSORS_ONLN), 1L, long{kMostDefaultStarts}));
}

// D: invocations that run on one GPU at the same time.
struct SlotChoice {
  int most = 2;
  bool is_dynamic = false;  // from 1 to `most`, as utilisation and memory allow
  bool is_given = false;    // somebody said so

  int per_slice() const { return is_given && !is_dynamic ? most : 1; }  // of a GPU that is cut (MIG)
  bool operator==(const SlotChoice&) const = default;
};

// Users of the host for instances, where the node is run by root. None: all instances are one user.
struct UidRange {
  std::uint32_t first = UidPool::kFirst, count = UidPool::kCount;
  bool operator==(const UidRange&) const = default;
};

// What keeps kernel tasks of different tenants apart.
enum class TaskIsolation {
  kProcess,  // a device server for each
  kFence,    // one for all, in which modules reach their tenant's memory only
};

struct ServeOptions {
  std::string state_dir;                              // "": the program's own choice; serve() REQUIRES one
  std::vector<std::string> listen{"127.0.0.1:9001"};  // HOST:PORT or unix:/PATH
  std::vector<std::string> grpc;                      // the same, where gRPC is spoken; none: nowhere
  bool open = false;                                  // who comes over loopback is the operator
  std::string tls_certificate;                        // PEM file; "": HTTP in the clear
  std::string tls_key;                                // of that certificate
  std::string tls_client_ca;                          // "": nobody is asked for a certificate
  bool no_tls = false;                                // HTTP in the clear beyond loopback
  // Other nodes (docs/how-to/cluster.md).
  std::vector<std::string> peers;   // URLs; this node's own may be among them
  std::string node_name;            // "": the machine's
  std::string advertise;            // URL at which others reach this node; "": the first address that it listens at
  std::string cluster_key;          // file with the key that all nodes have; "": no cluster
  std::string peer_ca;              // PEM file: whom to believe at https:// peers; "": the system's authorities
  std::string store;                // postgresql://...: functions and events of several nodes; "": in state_dir
  std::string store_password_file;  // of its role; "": PGPASSFILE
  // What requests and their answers hold, from the first byte of a large body to the last of its answer.
  std::uint64_t request_memory_bytes = default_request_memory_bytes();
  std::string secret_key;                         // file with the key of secrets; "": see SecretKeySource
  std::string secret_key_command;                 // or what prints the key
  std::vector<std::string> registries{"public"};  // that images may come from (model/registry_rules.h)
  std::vector<EgressGrant> egress;                // what tenants' functions may have of the network
  std::vector<std::string> callbacks{"public"};   // where callbacks of asynchronous calls may go; as registries
  bool open_functions = false;                    // /function/NAME needs no key
  std::vector<Volume> volumes;                    // folders that functions may see
  UidRange instance_uids;                         // a user of the host for each instance
  double instance_cpus = 0;                       // processors that one instance may keep busy; 0: all
  bool no_jail = false;                           // the node's servers and image tools run with the node's rights
  double drain_seconds = 30;                      // how long a graceful stop waits for running invocations
  std::uint64_t history_bytes = std::uint64_t{64} << 20;              // of invocations that are over; 0: none is kept
  std::uint64_t event_memory_bytes = default_request_memory_bytes();  // of asynchronous invocations that are not over
  double event_retry_seconds = 60;     // before a failed event's second attempt; then twice that
  double scale_to_zero_seconds = 600;  // without a call: a function that the node scales has no instance then
  double start_ahead = 2;  // times the usual rate that spares of such a function are kept for; 0: none starts ahead
  std::uint64_t pipeline_memory_bytes =
      share_of_memory(4, std::uint64_t{64} << 30);                        // of the host, between stages: all pipelines
  std::uint64_t pipeline_function_memory_bytes = std::uint64_t{2} << 30;  // of one function
  bool mig_reslice = false;           // cut idle slices anew for pipelines that fit on none
  double pipeline_idle_seconds = 30;  // without a call: others may have a pipeline's slices then
  double pipeline_turn_seconds =
      10;  // that a call waits, and a pipeline has had its slices: likewise, though it is used
  std::string log_level = "info";
  std::string otlp;                          // URL of a collector of traces; "": there are none
  double otlp_ratio = 1;                     // of requests of whose trace nobody decided
  std::vector<std::string> otlp_attributes;  // NAME=VALUE, beside the node's own
  int usage_days = 92;                       // that records of what tenants used are kept

  std::string policy = "mqfq-setup";
  double over_run_seconds = 8;                    // T. The paper's is 10: the same mean, a third more of the worst gap
  double ttl_factor = 2;                          // alpha
  std::vector<TenantEntry> tenants;               // what they are entitled to; others have weight 1
  bool ignore_tenants = false;                    // fair between functions alone
  bool cold_duplicates = false;                   // start another instance even where a busy one is free sooner
  int starts_per_gpu = default_starts_per_gpu();  // instances that start at a time without a slot; 0: they hold one
  SlotChoice slots;
  int instances_per_gpu = 32;  // warm pool
  int queue_limit = 10'000;    // queued invocations on the node

  MemoryPolicy memory_policy = MemoryPolicy::kPrefetchSwap;
  EvictionKind eviction = EvictionKind::kCost;

  SharingMode sharing = SharingMode::kNone;  // how kernels share a GPU
  std::string gpus = "all";                  // "0": a pure gateway, which runs nothing
  bool software_gpu = false;                 // the one that comes with the program
  std::string gpu_library_dir;               // where libcuda.so.1 and libnvidia-ml.so.1 are; "": the system's

  wire::MemoryBackend memory_backend = wire::MemoryBackend::kVmm;
  wire::UvmMode uvm_mode = wire::UvmMode::kPrefetchSwap;
  std::uint64_t host_memory_bytes = default_host_memory_bytes();  // where swapped device memory goes; 0: none

  int model_memory_percent = 50;  // of a GPU, for models that programs share; 0: none
  int model_quota_percent = 50;   // of that, for one tenant

  std::uint64_t object_memory_bytes = default_object_memory_bytes();
  std::string object_memory_dir;  // "": of its own in /dev/shm
  std::string object_spill_dir;   // "": in state_dir
  std::uint64_t object_spill_bytes = std::uint64_t{64} << 30;
  std::uint64_t object_quota_bytes = std::uint64_t{64} << 30;  // of one tenant

  std::optional<int> task_lanes;  // calls of kernel tasks at once; 0: as measured; empty: that, or D if that is given
  std::uint64_t task_memory_bytes = 0;                            // of a device server; 0: what is free when it starts
  std::uint64_t task_host_bytes = default_object_memory_bytes();  // its host tier
  CacheEviction task_eviction = CacheEviction::kCost;
  TaskIsolation task_isolation = TaskIsolation::kProcess;
  std::string cublas = "auto";               // "off", or a file
  std::optional<double> task_trial_seconds;  // 0: none; empty: kFenceTrialSeconds with kFence, none with kProcess

  // No settings: what this installation has.
  std::string driver_dir;    // the software GPU's or gpu_library_dir; "": the system's
  std::string shim_library;  // libfairlead-shim.so; "": not found, programs run without it

  // Settings again.
  int pin_percent = PinBounds().percent;  // of a GPU's memory, and of host_memory_bytes, for what is pinned
  int pin_quota_percent = PinBounds().tenant_percent;  // of that, for one tenant where there are several
};

inline constexpr double kFenceTrialSeconds = 30;

// All settings once more, as they stand now. Empty: there is no file that could say others.
using RereadSettings = std::function<Result<ServeOptions>()>;

}  // namespace fairlead
