// Where does a chosen invocation run? Sticky late binding (MQFQ-Sticky sections 4.2 and 4.3): on a warm instance of its
// function wherever a slot is free, else on a new instance on the least loaded GPU. It runs on the GPU whose slot it
// took; there are no queues per GPU, so no GPU idles while another has a queue.
//
//   1. an idle instance of the function; the most recently used, so that the others age and can be evicted
//   2. one that has answered but not yet asked for the next invocation ("returning"): it will within microseconds, and a
//      second instance for that window would be a cold start for nothing
//   3. a new instance on the GPU with the fewest slots in use, then the fewest instances, then the lowest id; idle
//      instances of any function are evicted for it as far as count and memory need
//
// Memory: an invocation is admitted only where what it is expected to need fits beside what runs. Idle instances do not
// block it: their memory leaves (residency), and what of it cannot leave makes them candidates for eviction.
//
// So are calls of kernel tasks, whose memory device servers have (task_room.h).
//
// Threads: not thread-safe. Determinism: ties break by id.
#pragma once

#include <optional>
#include <vector>

#include "decide/placement/eviction.h"
#include "decide/placement/instance_pool.h"
#include "decide/placement/slice_profiles.h"
#include "model/standing.h"

namespace fairlead {

struct Placement {
  GpuId gpu;
  Instance* instance = nullptr;   // null: start a new one
  Bytes memory{0};                // what it is counted with while it runs
  InstanceTerms terms = {};       // of a new one
  std::vector<InstanceId> evict;  // before it starts
};

// Who goes where an instance starts ahead in a place that is not free, and no slot idles.
class Yielding {
 public:
  virtual ~Yielding() = default;
  virtual bool may_go(const Gpu& gpu) const = 0;  // anybody there; asked first
  virtual bool may_go(const Instance& instance) const = 0;
};

class Placer {
 public:
  // `slices`: where each flow may run. Both outlive it.
  Placer(const EvictionPolicy& eviction, const SliceProfiles& slices) : eviction_(eviction), slices_(slices) {}

  // Empty: no GPU has a free slot and room for it. `expected`: device memory of one instance, 0 if not known. `only`: there
  // or nowhere. can_place is place() without the answer. O(instances of the flow + GPUs + instances of the GPU if evicting).
  std::optional<Placement> place(const InstancePool& pool, FlowId flow, Bytes expected, GpuId only = {}) const;
  bool can_place(const InstancePool& pool, FlowId flow, Bytes expected, GpuId only = {}) const;
  // Where an instance of `flow` may start ahead, without a slot: the least loaded GPU on which fewer than `at_once` do so,
  // with room for its memory beside what runs and starts, and a place that is free or that an instance leaves to it that
  // may go. Where a slot is free, any spare instance may go for it: nothing else could use the slot.
  struct StartAhead {
    FlowId flow;
    Bytes expected{0};
    std::size_t at_once = 1;
    bool is_session = false;  // of a kernel task: a lane that is free is as good as a slot
    bool only_where_a_slot_idles = false;
    std::vector<GpuId> not_on = {};  // whatever is free there
    bool is_seat = false;            // it is kept: a GPU without slots takes it, too
  };
  // can_start is place_start() without the answer.
  std::optional<Placement> place_start(const InstancePool& pool, const StartAhead& start,
                                       const Yielding& yielding) const;
  bool can_start(const InstancePool& pool, const StartAhead& start, const Yielding& yielding) const {
    return gpu_for_start(pool, start, yielding) != nullptr;
  }
  // What keeps free instances of the flow from running, or an instance from starting ahead. REQUIRES: has_warm() is false;
  // place_start() is empty.
  Obstacle obstacle(const InstancePool& pool, FlowId flow, Bytes expected) const;
  Obstacle obstacle(const InstancePool& pool, const StartAhead& start) const;
  // Where the flow should be kept memory that it has waited for: on the GPU of an instance that it has, else on the one with
  // the least in use. REQUIRES: there is a GPU.
  Placement place_claim(const InstancePool& pool, FlowId flow, Bytes expected) const;

  bool has_warm(const InstancePool& pool, FlowId flow, Bytes expected, GpuId only = {}) const;
  // The one that place() would take; null: none.
  Instance* warm_instance(const InstancePool& pool, FlowId flow, Bytes expected, GpuId only) const;

 private:
  const Gpu* roomy_gpu(const InstancePool& pool, FlowId flow, Bytes expected, GpuId only) const;
  const Gpu* gpu_for_start(const InstancePool& pool, const StartAhead& start, const Yielding& yielding) const;
  static bool can_make_room(const InstancePool& pool, const Gpu& gpu, Bytes memory, bool idles,
                            const Yielding& yielding);
  std::vector<InstanceId> evictions(const InstancePool& pool, const Gpu& gpu, Bytes memory, const Instance* keep) const;
  template <typename MayEvict>
  std::optional<std::vector<InstanceId>> evictions_among(const InstancePool& pool, const Gpu& gpu, Bytes memory,
                                                         const Instance* keep, MayEvict may_evict) const;

  const EvictionPolicy& eviction_;
  const SliceProfiles& slices_;
};

}  // namespace fairlead
