// The functions of a scenario as instances of a virtual node: how long their starts and runs take, and what they hold.
//
// Noise: run and start times vary by the scenario's noise. The n-th invocation of a function varies alike under every
// policy, so that policies are compared on the same work.
//
// Example: `resnet`, 0.2 s warm and 4 s cold, noise 0.1: its first three runs take 0.21, 0.19 and 0.22 s, its first two
// starts 4.3 and 3.8 s, whoever is served first.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/chaos.h"
#include "sim/instance_model.h"
#include "sim/open_work.h"
#include "sim/scenario.h"
#include "sim/virtual_clock.h"

namespace fairlead::sim {

class ModelledFunctions final : public InstanceModel {
 public:
  // All must outlive this. `chaos`: what makes starts and runs fail; null: nothing.
  ModelledFunctions(const Scenario& scenario, std::uint64_t seed, const VirtualClock& clock, const OpenWork& work,
                    Chaos* chaos);

  static FlowId flow_of(std::size_t function) { return FlowId(function + 1); }
  static std::size_t function_of(FlowId flow) { return static_cast<std::size_t>(flow.value() - 1); }

  // What the function's next invocation to arrive takes, alone on a device.
  Duration next_work(std::size_t function);

  Start start(const StartInstance& action) override;
  void run(FlowId flow, InvocationId invocation, Run& run) override;
  void ends(FlowId flow, InvocationId invocation, Run& run) override;
  bool returns_at_once() override { return chaos_ == nullptr && work_.any(); }
  std::optional<Bytes> memory(FlowId flow) override { return scenario_.functions[function_of(flow)].memory; }
  RoomRequest room_request() override { return RoomRequest::kRepeats; }
  std::optional<Duration> gate_asks_after() override { return std::nullopt; }

 private:
  // What one run or start of a function takes: `typical`, varied.
  Duration varied(Duration typical, std::size_t function, std::uint64_t number) const;

  const Scenario& scenario_;
  const std::uint64_t seed_;
  const VirtualClock& clock_;
  const OpenWork& work_;
  Chaos* const chaos_;
  std::vector<std::uint64_t> runs_, starts_;  // by function, so far
};

}  // namespace fairlead::sim
