// What the queue is told of a flow's instances: how long its next invocation would wait before it could run (set-up), the same on each
// GPU that has its data, and what it has to run on at all (supply). The queue is told when that changes, and only then.
//
// Example: A has one instance, idle, with its constants on the device: set-up 0. It is bound: the next one would wait for a cold start
// of 9 s, and the queue is told 9 s. A second instance begins to start: nothing new. It is ready, and would first load for 0.2 s: 0.2 s.
//
// Threads: the core's.
#pragma once

#include "decide/core/tables.h"

namespace fairlead {

class FlowNews {
 public:
  explicit FlowNews(CoreTables& tables) : tables_(tables) {}

  // An instance of the flow came, went, took or gave back its slot, or its reload changed. Not there: no effect.
  void note_setup(FlowId flow);
  // An instance of the flow begins to start, has started, goes, or is to go. Not there: no effect.
  void note_supply(FlowId flow);

 private:
  void note_places(FlowId flow, CoreFunction& function);

  CoreTables& tables_;
};

// What an invocation of the flow would wait for on that GPU, instances that are busy included: what is there is there, whoever
// waits for it. Never 0 for a cold start.
Duration setup_on(const CoreTables& tables, FlowId flow, GpuId gpu);

// Whether all instances of the function are, and will be, entitled ones. Not while none is there: it runs elsewhere then, as best
// effort.
bool runs_in_seats_alone(const CoreTables& tables, const FlowSpec& spec);

}  // namespace fairlead
