// What a policy may ask of the core while it chooses: could this flow begin now, where, and what keeps it from that?
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "base/ids.h"
#include "base/units.h"
#include "model/standing.h"

namespace fairlead {

// Whether the core could run the head of this flow right now: a free slot, and a warm instance or room for a new one.
// Passed into choose() so that flow and device are chosen together; next_start() is given the same question about a start.
// Reserved concurrency is not its concern: the policy keeps that itself (set_max_concurrency).
class Placeable {
 public:
  virtual ~Placeable() = default;
  virtual bool can_run(FlowId flow) const = 0;
  virtual Obstacle obstacle(FlowId flow) const { return can_run(flow) ? Obstacle::kNothing : Obstacle::kItself; }
  // Told by choose() where it finds nothing: the flow could run, and is kept for the GPU that has its data, or until loading it
  // is worth what it pushes out.
  virtual void is_kept(FlowId) const {}

  // The flow whose head begins at once, whoever's turn it is: its instance in a seat is free, and has paid (FlowSpec::seats). Asked
  // first; none: the order decides.
  virtual FlowId at_once() const { return FlowId(); }

  // Of next_start() alone. May any instance start now; and is there a slot that choose() left free?
  virtual bool may_start() const { return true; }
  virtual bool has_free_slot() const { return true; }

  // For policies that choose the GPU too (gpu_order.h): every GPU that serves, in order of id.
  struct Place {
    GpuId gpu;
    Duration setup{0};  // what an invocation of the flow waits for here: nothing, a reload or (never 0) a cold start
    std::size_t running = 0;  // invocations of any flow that hold a slot of the GPU
    bool free = false;        // one of the flow could run here right now
    bool evicts = false;      // what the set-up brings back takes the room of what others have here
  };
  virtual std::vector<Place> places(FlowId flow) const = 0;

  // The same of one GPU; empty: it does not serve. For policies that know themselves where to look (residency_index.h).
  virtual std::optional<Place> place(FlowId flow, GpuId gpu) const;
  // GPUs that serve where something could begin that has nothing to load, those where least runs first. Empty as well: nobody
  // can say.
  virtual std::vector<GpuId> free_gpus() const { return {}; }
};

}  // namespace fairlead
