// The parts of residency, put together by hand: each is tested alone, over a ledger.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <vector>

#include "decide/residency/memory_ledger.h"
#include "decide/residency/memory_returns.h"
#include "decide/residency/memory_victims.h"
#include "decide/residency/room_desk.h"

namespace fairlead::testing {

constexpr GpuId kGpu(1);
constexpr InstanceId kA(1), kB(2), kC(3);

// What the layers beside say, as the test has it; instance 1 is of flow 1, and so on.
class ToldDemand final : public ResidencyContext {
 public:
  FlowDemand demand_of(FlowId flow) const override {
    const auto found = of.find(flow);
    return found == of.end() ? FlowDemand{} : found->second;
  }
  InstanceId cheapest_to_stop(const std::vector<InstanceId>& idle) const override { return idle.front(); }
  bool may_stop(InstanceId id) const override { return id != seated; }
  std::map<FlowId, FlowDemand> of;
  InstanceId seated;
};

class ResidencyParts : public ::testing::Test {
 protected:
  ResidencyParts() { ledger.add_device(kGpu, gib(8)); }

  MemoryRecord& starts(InstanceId id, Bytes needs) {
    const FlowId flow(id.value());
    return ledger.add(now, id, flow, &functions[flow], kGpu, needs);
  }
  MemoryRecord& runs(InstanceId id, Bytes resident, Bytes away = Bytes(0)) {
    MemoryRecord& record = starts(id, resident + away);
    MemoryLedger::must_take(record, RecordEvent::kReady);
    return reports(record, resident, away);
  }
  MemoryRecord& idles(InstanceId id, Bytes resident, Bytes away = Bytes(0)) {
    MemoryRecord& record = starts(id, resident);
    MemoryLedger::must_take(record, RecordEvent::kReady);
    MemoryLedger::must_take(record, RecordEvent::kUnused);
    record.last_used = now;
    return reports(record, resident, away);
  }
  MemoryRecord& reports(MemoryRecord& record, Bytes resident, Bytes away = Bytes(0)) {
    if (!record.state.reported()) ++record.device->reporting;
    MemoryLedger::must_take(record, RecordEvent::kReported);
    record.use = {.held = resident + away, .resident = resident, .away = away, .fixed = Bytes(0)};
    ledger.recount(record);
    return record;
  }
  // Its flow has work that may run.
  void queue(InstanceId id, std::size_t invocations) {
    const FlowId flow(id.value());
    demand.of[flow] = {Claim::kQueued, invocations};
    functions[flow].may_have_queued = true;
    device().some_called = true;
  }
  MemoryDevice& device() { return ledger.device(kGpu); }
  std::vector<std::string> taken() {
    struct Brief {
      std::string operator()(const Move& m) const {
        return (m.direction == MoveDirection::kOut ? "out " : "in ") + std::to_string(m.instance.value()) + " " +
               std::to_string(m.bytes.count() >> 30);
      }
      std::string operator()(const RoomAnswer& a) const {
        return (a.granted ? "granted " : "refused ") + std::to_string(a.instance.value());
      }
      std::string operator()(const StopIdle& s) const { return "stop " + std::to_string(s.instance.value()); }
      std::string operator()(const GiveWay& g) const { return "gives way " + std::to_string(g.instance.value()); }
      std::string operator()(const NeedsMore& n) const { return "needs more " + std::to_string(n.instance.value()); }
    };
    std::vector<std::string> lines;
    for (const ResidencyDecision& decision : out) lines.push_back(std::visit(Brief(), decision));
    out.clear();
    ledger.check();
    return lines;
  }

  Instant now{};
  ResidencyDecisions out;
  std::map<FlowId, MemoryFunction> functions;
  ToldDemand demand;
  MemoryLedger ledger{std::chrono::seconds(5)};
  MemoryVictims victims{ledger, demand, std::make_unique<LruSwap>(), true};
  MemoryReturns returns{ledger, victims, demand, MemoryPolicy::kPrefetchSwap};
  RoomDesk room{ledger, victims};
};

}  // namespace fairlead::testing
