// The live instances of a node and the tokens of its GPUs: who exists, what each is doing, what each GPU has left. Keeps
// the books and their invariants; chooses nothing (placer.h does).
//
//   starting ──ready──> busy ──answered──> returning ──asks for the next──> idle ──bound──> busy
//                         ^                    │ bound meanwhile: holds a token again
//                         └──asks for the next─┘
//
// An instance holds a token of its GPU exactly while an invocation is bound to it: from dispatch, through a cold start,
// to the answer (D in the paper, section 4.2). So a GPU with D tokens has at most D instances that hold one; all others
// may be evicted.
//
// Threads: not thread-safe. Determinism: ordered containers only where they are walked.
#pragma once

#include <cstddef>
#include <map>
#include <unordered_map>
#include <vector>

#include "base/ids.h"
#include "base/units.h"

namespace fairlead {

enum class InstanceState { kStarting, kIdle, kBusy };

struct Instance {
  InstanceId id;
  FlowId flow;
  GpuId gpu;
  Bytes memory{0};     // device memory it is counted with
  InvocationId bound;  // what it runs or will run; none: it holds no token
  InstanceState state = InstanceState::kStarting;
  bool answered = false;  // busy, and has answered, but not yet asked for the next: "returning"
  bool retiring = false;  // goes after its answer: its function changed
  Instant last_used;

  bool holds_token() const { return static_cast<bool>(bound); }
  bool returning() const { return state == InstanceState::kBusy && answered; }
};

struct Gpu {
  GpuId id;
  Bytes memory{0};  // 0: not known, not counted
  std::size_t tokens_in_use = 0;
  Bytes memory_in_use{0};            // of instances that hold a token
  Bytes memory_total{0};             // of all its instances
  std::vector<Instance*> instances;  // unordered
};

class InstancePool {
 public:
  // REQUIRES: 1 <= tokens_per_gpu <= instances_per_gpu, so that a free token always finds room among evictable instances.
  InstancePool(std::size_t tokens_per_gpu, std::size_t instances_per_gpu);
  InstancePool(const InstancePool&) = delete;
  InstancePool& operator=(const InstancePool&) = delete;

  // REQUIRES: not added before.
  void add_gpu(GpuId gpu, Bytes memory);

  // A starting instance, bound to `bound` from the first. Ids count up from 1 and are never reused.
  // REQUIRES: a free token; it fits beside all others.
  Instance& add(Instant now, FlowId flow, GpuId gpu, Bytes memory, InvocationId bound);
  void remove(InstanceId instance);  // gives back its token. REQUIRES: it exists

  // Takes or gives back a token of its GPU. REQUIRES bind: nothing bound, a free token.
  void bind(Instance& instance, InvocationId invocation);
  void release(Instance& instance);  // nothing bound: no effect

  Instance* find(InstanceId instance);                       // null: not (or no longer) there
  const std::vector<Instance*>& of_flow(FlowId flow) const;  // in no particular order
  const std::map<GpuId, Gpu>& gpus() const { return gpus_; }
  const std::map<InstanceId, Instance>& instances() const { return instances_; }

  const Gpu& gpu(GpuId gpu) const;
  bool has_free_token(const Gpu& gpu) const { return gpu.tokens_in_use < tokens_per_gpu_; }
  bool has_free_token() const;  // on any GPU
  std::size_t tokens_in_use() const { return tokens_in_use_; }

  // What an instance expected to need `expected` is counted with on this GPU. One that expects more than the GPU has
  // counts as all of it: it gets the GPU for itself rather than waiting for ever.
  static Bytes counted_memory(const Gpu& gpu, Bytes expected);

  // Whether one more instance fits beside those that hold a token; and how it would look with fewer: `fits` with
  // `instances` others that count `memory_total`. REQUIRES: `memory` is counted_memory().
  bool has_room(const Gpu& gpu, Bytes memory) const { return gpu.memory_in_use + memory <= gpu.memory; }
  bool fits(const Gpu& gpu, Bytes memory, std::size_t instances, Bytes memory_total) const {
    return instances < instances_per_gpu_ && memory_total + memory <= gpu.memory;
  }

 private:
  Gpu& mutable_gpu(GpuId gpu);

  const std::size_t tokens_per_gpu_;
  const std::size_t instances_per_gpu_;
  std::map<GpuId, Gpu> gpus_;
  std::map<InstanceId, Instance> instances_;
  std::unordered_map<FlowId, std::vector<Instance*>> by_flow_;
  std::size_t tokens_in_use_ = 0;
  std::uint64_t next_instance_ = 1;
};

}  // namespace fairlead
