// Faults that strike a simulated node (faults.h), and what must hold whatever strikes.
//
//   start, run, move, report ──> its own fault strikes or not     before each event ──> a device is lost, a client cancels,
//   a function changes, the clock jumps, the node restarts ──> the invariants are checked; a violation aborts with the seed
//
// Threads: not thread-safe. Determinism: the same seed and the same questions give the same answers.
#pragma once

#include <optional>
#include <vector>

#include "sim/faults.h"
#include "sim/instance_model.h"
#include "sim/open_work.h"
#include "sim/scenario.h"
#include "sim/virtual_node.h"

namespace fairlead::sim {

class Chaos final : public Mishaps {
 public:
  // `scenario` must outlive this.
  Chaos(const Scenario& scenario, std::uint64_t seed) : scenario_(scenario), faults_(seed) {}

  void strike(InstanceModel::Start& start);
  void strike(InstanceModel::Run& run);

  bool never_returns() override { return faults_.strikes(Fault::kNeverReturns); }
  bool refuses_allocation() override { return faults_.strikes(Fault::kNoMemory); }
  std::optional<Duration> move_time(MoveDirection direction, Duration link_time) override;
  bool loses(Report report) override;
  bool tells_again() override { return faults_.strikes(Fault::kToldTwice); }

  // Whether an invocation that arrives is one that the disk keeps.
  bool is_asynchronous() { return faults_.below(3) == 0; }

  // What may strike before any event. `flows`: the functions, which change. True: the node is to restart now.
  bool strike_at_any_time(VirtualClock& clock, VirtualNode& node, std::vector<FlowSpec>& flows);
  // REQUIRES: told by restarted() when another core begins.
  void check_invariants(const VirtualNode& node, const OpenWork& work);
  void restarted() { global_virtual_time_ = Duration(0); }

  const Faults::Counts& struck() const { return faults_.struck(); }

 private:
  std::optional<GpuId> some_device(const VirtualNode& node);
  void take_one_away(VirtualNode& node);
  void cancel_one(VirtualNode& node);
  void update_one(VirtualNode& node, FlowSpec& flow);

  const Scenario& scenario_;
  Faults faults_;
  Duration global_virtual_time_{0};  // as seen last
};

}  // namespace fairlead::sim
