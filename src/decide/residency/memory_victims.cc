#include "decide/residency/memory_victims.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace fairlead {
namespace {

constexpr int kLater = 2;

Claim greatest_of(Displace displace) {
  switch (displace) {
    case Displace::kAnyIdle: return Claim::kQueued;
    case Displace::kNotQueued: return Claim::kKept;
    default: return Claim::kLeaving;
  }
}

}  // namespace

std::size_t ask_for_waiting(const ResidencyContext& context, const MemoryRecord& record) {
  const FlowDemand demand = context.demand_of(record.flow);
  record.function->may_have_queued = demand.queued > 0;
  return demand.claim == Claim::kQueued ? demand.queued : 0;
}

Bytes collect_victims(Instant now, const MemoryDevice& device, const ResidencyContext& context,
                      const VictimsWanted& wanted, std::vector<SwapCandidate>& found) {
  found.clear();
  Bytes sum{0};
  if (wanted.displace == Displace::kNobody) return sum;
  const Claim greatest = greatest_of(wanted.displace);
  for (const MemoryRecord* record : device.movable) {
    if (record->id == wanted.except || !context.may_move(record->id)) continue;
    if (wanted.displace == Displace::kLeavingUnlessServed && record->state.was_served()) continue;
    const Duration gap = expected_gap(now, context, *record);
    if (gap / kLater <= wanted.later_than) continue;
    const Claim claim = context.demand_of(record->flow).claim;
    if (claim > greatest) continue;
    found.push_back({record->id, claim, record->last_used, gap, record->movable()});
    sum += found.back().movable;
  }
  return sum;
}

MemoryVictims::MemoryVictims(MemoryLedger& ledger, const ResidencyContext& context,
                             std::unique_ptr<const SwapPolicy> policy, bool may_move)
    : ledger_(ledger), context_(context), policy_(std::move(policy)), may_move_(may_move) {
  FL_CHECK(policy_ != nullptr);
}

Bytes MemoryVictims::collect(Instant now, const MemoryDevice& device, const VictimsWanted& wanted) {
  candidates_.clear();
  return may_move_ ? collect_victims(now, device, context_, wanted, candidates_) : Bytes(0);
}

Bytes MemoryVictims::swap_out(Instant now, Bytes bytes, ResidencyDecisions& out, std::set<InstanceId>* chosen) {
  Bytes leaving{0};
  while (leaving < bytes && !candidates_.empty()) {
    const std::size_t victim = policy_->victim(candidates_);
    MemoryRecord& record = ledger_.at(candidates_[victim].instance);
    const Bytes part = std::min(bytes - leaving, candidates_[victim].movable);
    ledger_.begin_move(now, record, RecordEvent::kLeaves, part, out);
    if (chosen != nullptr) chosen->insert(record.id);
    leaving += part;
    candidates_.erase(candidates_.begin() + static_cast<std::ptrdiff_t>(victim));
  }
  return leaving;
}

Bytes MemoryVictims::stop_idle(Instant now, const MemoryDevice& device, Bytes bytes, InstanceId except,
                               ResidencyDecisions& out, std::set<InstanceId>* chosen) {
  std::vector<InstanceId> idle;
  for (const MemoryRecord* record : device.records) {
    const bool holds = record->idle() && !record->state.moving() && record->occupied() > Bytes(0);
    if (holds && record->id != except && context_.may_stop(record->id)) idle.push_back(record->id);
  }
  Bytes leaving{0};
  while (leaving < bytes && !idle.empty()) {
    const InstanceId victim = context_.cheapest_to_stop(idle);
    std::erase(idle, victim);
    MemoryRecord& record = ledger_.at(victim);
    leaving += record.occupied();
    ledger_.begin_stop(now, record);
    if (chosen != nullptr) chosen->insert(victim);
    out.push_back(StopIdle{victim});
  }
  return leaving;
}

}  // namespace fairlead
