// What follows from what is known of a device, in the order of claims: room for what runs, its memory back; then what is about to run;
// then threads of instances that nothing was sent to; then what is expected to be called. Decides moves; MemoryLedger begins them.
//
// Example: 8 GiB; A, idle, has 4 GiB away and a call queued, B is idle with 6 GiB, throttled. A's 4 GiB do not fit beside B's 6: 2 GiB of B's
// leave (prefetch), and when that move is over A's return, before A's call has a slot.
//
// Threads: not thread-safe. Determinism: ties break by InstanceId.
#pragma once

#include "decide/residency/memory_ledger.h"
#include "decide/residency/memory_victims.h"

namespace fairlead {

class MemoryReturns {
 public:
  MemoryReturns(MemoryLedger& ledger, MemoryVictims& victims, const ResidencyContext& context, MemoryPolicy policy)
      : ledger_(ledger), victims_(victims), context_(context), policy_(policy) {}

  void decide(Instant now, MemoryDevice& device, ResidencyDecisions& out);

 private:
  struct Purpose {  // of bringing back what idles
    RecordEvent event;
    Displace displace;
  };

  void make_room_for_runs(Instant now, MemoryDevice& device, ResidencyDecisions& out);
  void bring_back_runs(Instant now, MemoryDevice& device, ResidencyDecisions& out);
  void prefetch(Instant now, MemoryDevice& device, ResidencyDecisions& out);
  void bring_back_wanted(Instant now, MemoryDevice& device, ResidencyDecisions& out);
  void anticipate(Instant now, MemoryDevice& device, ResidencyDecisions& out);
  void bring_back_idle(Instant now, MemoryDevice& device, MemoryRecord& record, const Purpose& purpose, Bytes& promised,
                       ResidencyDecisions& out);
  MemoryRecord* expected_soonest(Instant now, const MemoryDevice& device) const;

  MemoryLedger& ledger_;
  MemoryVictims& victims_;
  const ResidencyContext& context_;
  const MemoryPolicy policy_;
};

}  // namespace fairlead
