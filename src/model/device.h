// What work can be scheduled on. A device is a GPU or, where a GPU is cut (MIG), a slice of one.
//
// Example: an A100 that is cut into two 3g.20gb is two devices, at the memory slices 0 and 4, each with 20 GB. The GPU itself is none
// then.
//
// Plain values.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "base/ids.h"
#include "base/units.h"

namespace fairlead {

// A part of a GPU with memory and SMs of its own.
struct Slice {
  std::string profile;            // "3g.20gb"
  std::optional<unsigned> start;  // the memory slice of its GPU at which it begins; empty: the driver does not say
  unsigned size = 0;              // memory slices; 0: as above
  bool operator==(const Slice&) const = default;
};

struct Device {
  GpuId id;              // of this node; never used for another device
  std::string name;      // "NVIDIA H100 80GB HBM3"
  std::string uuid;      // "GPU-...", of a slice "MIG-..."
  std::string gpu_uuid;  // of a slice: of the GPU it is cut from; else the same as `uuid`
  std::optional<Slice> slice = std::nullopt;
  Bytes memory{0};

  bool is_slice() const { return uuid != gpu_uuid; }
};

// What fits on a device at the same time. Each part is counted by itself, and each must fit (placement/instance_pool.h checks).
struct Capacity {
  std::size_t slots = 0;    // invocations that run: D
  std::size_t clients = 0;  // processes, running or not: places of the warm pool, and what an MPS daemon serves at most
  Bytes memory{0};          // 0: not known, not counted
};

// What each instance of a function is entitled to on its device; what is not said is all that others leave. The author says it
// with tags (model/function.h).
//
//   request   the part of the time that an instance is promised while it has work; paid for when the function is admitted
//   limit     the part of the time that it gets at most
//
// Example: width 12, request 40, limit 80. While the instance has work, its kernels may run on 12 % of the SMs for at least 400 ms
// and at most 800 ms of every second. Request 0 and limit 100, the default, is best effort.
struct Share {
  std::optional<int> width_percent = std::nullopt;  // of the SMs, 1-100; only under MPS
  int request_percent = 0;                          // of the time, 0-100, at most the limit
  int limit_percent = 100;                          // of the time, 1-100
  std::optional<Bytes> memory = std::nullopt;       // device memory that it is expected to hold, and holds at most
  bool is_best_effort() const { return request_percent == 0; }
  bool operator==(const Share&) const = default;
};

// How many instances of a function there are.
struct Replicas {
  std::size_t least = 0;                           // are started before anybody calls, and kept
  std::optional<std::size_t> most = std::nullopt;  // empty: as many as its calls want
  bool operator==(const Replicas&) const = default;
};

}  // namespace fairlead
