// Whose memory leaves for another's, and what is known of a flow's next call, which decides it.
//
// Who may leave depends on what the room is for (Displace); of those the swap policy picks (swap_policy.h), and only the bytes that are
// short leave. Where memory cannot leave, idle instances are stopped, the one that is missed least first.
//
// Example: 4 GiB are short for what runs. B, idle for 10 s with 3 GiB and nobody queued, and C, idle for 5 s with 4 GiB and work queued,
// could leave. B's claim is lower: its 3 GiB leave, and 1 GiB of C's.
//
// Threads: not thread-safe. Determinism: ties break by InstanceId.
#pragma once

#include <memory>
#include <set>
#include <vector>

#include "decide/residency/memory_decisions.h"
#include "decide/residency/memory_ledger.h"
#include "decide/residency/swap_policy.h"

namespace fairlead {

// How many invocations of its flow wait, and may run.
std::size_t ask_for_waiting(const ResidencyContext& context, const MemoryRecord& record);
inline std::size_t waiting(const ResidencyContext& context, const MemoryRecord& record) {
  return record.function != nullptr && record.function->may_have_queued ? ask_for_waiting(context, record) : 0;
}
// As SwapCandidate.
inline Duration expected_gap(Instant now, const ResidencyContext& context, const MemoryRecord& record) {
  if (record.function == nullptr) return ArrivalPace::kNeverCalled;
  return record.function->pace.gap(now, waiting(context, record));
}

// Whose memory may leave: that of idle instances, or only of those whose flows have no work that may run, or are throttled or inactive.
enum class Displace { kAnyIdle, kNotQueued, kLeaving, kLeavingUnlessServed, kNobody };

struct VictimsWanted {
  Displace displace = Displace::kAnyIdle;
  InstanceId except = {};
  // Only those that are expected at least twice as late as this: so no two take turns in one place.
  Duration later_than = Duration(-1);
};

// Those who may leave, into `found`. Returns how much of them could.
Bytes collect_victims(Instant now, const MemoryDevice& device, const ResidencyContext& context,
                      const VictimsWanted& wanted, std::vector<SwapCandidate>& found);

class MemoryVictims {
 public:
  // `may_move`: false: no memory leaves, ever (MemoryPolicy::kNone).
  MemoryVictims(MemoryLedger& ledger, const ResidencyContext& context, std::unique_ptr<const SwapPolicy> policy,
                bool may_move);

  // How much of those who may leave could. swap_out() chooses among them, until the next time.
  Bytes collect(Instant now, const MemoryDevice& device, const VictimsWanted& wanted);
  // Memory leaves of those that were collected last and that the policy picks, until `bytes` do. Returns how much leaves.
  // `chosen`: who, if anybody asks; so below.
  Bytes swap_out(Instant now, Bytes bytes, ResidencyDecisions& out, std::set<InstanceId>* chosen = nullptr);
  // Idle instances are stopped, those that are missed least, until `bytes` come free. Returns how much does.
  Bytes stop_idle(Instant now, const MemoryDevice& device, Bytes bytes, InstanceId except, ResidencyDecisions& out,
                  std::set<InstanceId>* chosen = nullptr);

 private:
  MemoryLedger& ledger_;
  const ResidencyContext& context_;
  const std::unique_ptr<const SwapPolicy> policy_;
  const bool may_move_;
  std::vector<SwapCandidate> candidates_;
};

}  // namespace fairlead
