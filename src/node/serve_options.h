// What `fairlead serve` can be told. Plain values with the defaults that an operator gets; checked by the command line.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "queueing/tenant_entry.h"
#include "wire/shim_frames.h"

namespace fairlead {

// How device memory can move (wire::MemoryBackend), as an operator writes it.
inline const std::map<std::string, wire::MemoryBackend> kMemoryBackends{
    {"none", wire::MemoryBackend::kNone},
    {"vmm", wire::MemoryBackend::kVmm},
    {"uvm", wire::MemoryBackend::kUvm},
    {"checkpoint", wire::MemoryBackend::kCheckpoint}};
inline const std::map<std::string, wire::UvmMode> kUvmModes{{"plain", wire::UvmMode::kPlain},
                                                            {"advise", wire::UvmMode::kAdvise},
                                                            {"prefetch", wire::UvmMode::kPrefetch},
                                                            {"prefetch-swap", wire::UvmMode::kPrefetchSwap}};

// An eighth of the machine's memory, at most 16 GiB.
inline std::uint64_t default_object_memory_bytes() {
  constexpr std::uint64_t kMost = std::uint64_t{16} << 30;
  const auto pages = static_cast<std::uint64_t>(std::max(0L, ::sysconf(_SC_PHYS_PAGES)));
  return std::min(pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)) / 8, kMost);
}

// A quarter of the machine's memory, at most 64 GiB, in whole staging granules.
inline std::uint64_t default_host_memory_bytes() {
  constexpr std::uint64_t kMost = std::uint64_t{64} << 30;
  const auto pages = static_cast<std::uint64_t>(std::max(0L, ::sysconf(_SC_PHYS_PAGES)));
  const std::uint64_t quarter = pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)) / 4;
  return std::min(quarter, kMost) / wire::kStagingGranule * wire::kStagingGranule;
}

// More than four at a time bought nothing in simulation (docs/ablation.md), and each keeps about one core busy.
inline int default_starts_per_gpu() {
  return static_cast<int>(std::clamp(::sysconf(_SC_NPROCESSORS_ONLN), 1L, 4L));
}

struct ServeOptions {
  std::string state_dir;                              // REQUIRES: not empty
  std::vector<std::string> listen{"127.0.0.1:9001"};  // HOST:PORT or unix:/PATH
  std::string policy = "mqfq-setup";
  double over_run_seconds = 8;                    // T
  double ttl_factor = 2;                          // alpha
  std::vector<TenantEntry> tenants;               // fair between tenants first, where there are any
  std::string sharing = "none";                   // how kernels share a GPU
  bool cold_duplicates = false;                   // start another instance even where a busy one is free sooner
  int starts_per_gpu = default_starts_per_gpu();  // instances that start at a time without a slot; 0: they hold one
  int slots_per_gpu = 2;                         // D; the most it may become when it is dynamic
  int slots_per_slice = 1;                       // D of a MIG slice
  bool dynamic_slots = false;                    // D follows utilisation and memory
  bool gives_slots = false;                      // somebody said what they are
  std::optional<int> task_lanes;  // calls of kernel tasks at once; 0: as measured; empty: that, or D if gives_slots
  int instances_per_gpu = 32;     // warm pool
  int queue_limit = 10'000;       // queued invocations on the node
  std::string memory_policy = "prefetch-swap";  // memory_policy_named()
  std::string eviction = "cost";                // eviction_named()
  double drain_seconds = 30;                    // how long a graceful stop waits for running invocations
  std::string gpu_library_dir;                  // where libcuda.so.1 and libnvidia-ml.so.1 are; "": the system's
  bool software_gpu = false;                    // what gpu_library_dir holds is the software GPU
  std::string shim_library;                     // libfairlead-shim.so; "": not found, programs run without it
  std::string memory_backend = "vmm";           // a key of kMemoryBackends
  std::string uvm_mode = "prefetch-swap";       // a key of kUvmModes
  std::uint64_t host_memory_bytes = default_host_memory_bytes();  // where swapped device memory goes; 0: none
  std::uint64_t history_bytes = std::uint64_t{64} << 20;          // of invocations that are over; 0: none is kept
  std::uint64_t object_memory_bytes = default_object_memory_bytes();
  std::string object_memory_dir;  // "": of its own in /dev/shm
  std::string object_spill_dir;   // "": in state_dir
  std::uint64_t object_spill_bytes = std::uint64_t{64} << 30;
  std::uint64_t object_quota_bytes = std::uint64_t{64} << 30;     // of one tenant
  std::uint64_t task_memory_bytes = 0;                            // of a device server; 0: what is free when it starts
  std::uint64_t task_host_bytes = default_object_memory_bytes();  // its host tier
  std::string task_eviction = "cost";                             // cache_eviction_named()
  std::string task_isolation = "process";                         // or "fence"
  std::string cublas = "auto";                                    // "off", or a file
  std::optional<double> task_trial_seconds;  // 0: none; by default 30 with "fence", none with "process"
  std::string log_level = "info";
};

}  // namespace fairlead
