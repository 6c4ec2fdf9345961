// A scenario on a virtual node: arrivals go in, what becomes of them is recorded.
//
//   arrivals ──> VirtualNode (Core, modelled GPUs and memory) ──> actions ──> RunRecord
//                  │  └ how long starts and runs take: ModelledFunctions
//                  └ what goes wrong: Chaos, where the scenario has faults
//
// At the end every accepted invocation was completed exactly once. With faults, what must always hold is checked after every
// event, and a violation aborts with the seed.
//
// Time: a clock of its own, from 0. Threads: not thread-safe; runs of different seeds are independent.
// Determinism: the same scenario and seed give the same actions, on every machine; RunResult::state_hash shows it.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/chaos.h"
#include "sim/modelled_functions.h"
#include "sim/open_work.h"
#include "sim/run_record.h"
#include "sim/scenario.h"
#include "sim/virtual_clock.h"
#include "sim/virtual_node.h"

namespace fairlead::sim {

class Simulation final : private ClockParty {
 public:
  // REQUIRES: the scenario is valid. It must outlive the simulation.
  Simulation(const Scenario& scenario, std::uint64_t seed, std::unique_ptr<ArrivalSource> arrivals);

  // To the last answer.
  RunResult run();

 private:
  enum class Kind : std::uint8_t { kArrival };  // of a closed loop; those of an open one are expected

  void happen(const Event& event) override;
  void due(const Moment& expected) override;
  void strike();

  std::unique_ptr<Core> make_core() const;
  void expect_arrival();
  void expect_after_answer(std::size_t function);
  void arrive(const Arrival& arrival);
  void observe(const Action& action);
  void note(const Deliver& action);
  void note(const Complete& action);
  template <typename Other>
  void note(const Other&) {}
  void restart_node();

  const Scenario& scenario_;
  const std::uint64_t seed_;
  const std::unique_ptr<ArrivalSource> arrivals_;
  std::map<std::string, TenantId> tenants_{{"default", TenantId()}};  // also of functions that name none
  std::vector<FlowSpec> flows_;
  VirtualClock clock_;
  EventsOf<Kind> events_;
  OpenWork work_;
  std::optional<Chaos> chaos_;
  ModelledFunctions functions_;
  RunRecord record_;
  VirtualNode node_;
};

}  // namespace fairlead::sim
