#include "sim/modelled_functions.h"

#include <algorithm>

#include "base/rng.h"

namespace fairlead::sim {
namespace {

// Near normal with mean 0 and deviation 1, by sums alone: transcendental functions differ between C libraries.
double bell(Rng& rng) {
  double sum = -6;
  for (int i = 0; i < 12; ++i) sum += rng.uniform();
  return sum;
}

}  // namespace

ModelledFunctions::ModelledFunctions(const Scenario& scenario, std::uint64_t seed, const VirtualClock& clock,
                                     const OpenWork& work, Chaos* chaos)
    : scenario_(scenario),
      seed_(seed),
      clock_(clock),
      work_(work),
      chaos_(chaos),
      runs_(scenario.functions.size()),
      starts_(scenario.functions.size()) {}

Duration ModelledFunctions::next_work(std::size_t function) {
  return varied(scenario_.functions[function].warm, function, runs_[function]++);
}

InstanceModel::Start ModelledFunctions::start(const StartInstance& action) {
  const std::size_t function = function_of(action.flow);
  Start start{.after = varied(scenario_.functions[function].cold_start, function, ~starts_[function]++),
              .allocations = 1};
  if (chaos_ != nullptr) chaos_->strike(start);
  return start;
}

void ModelledFunctions::run(FlowId, InvocationId id, Run& run) {
  const OpenInvocation* invocation = work_.invocations.find(id);
  if (invocation == nullptr) {  // it timed out while it waited
    run.end = RunEnd::kHangs;
    return;
  }
  run.after = invocation->work;
  if (chaos_ != nullptr) chaos_->strike(run);
}

// What is not measured is all of the run.
void ModelledFunctions::ends(FlowId flow, InvocationId id, Run& run) {
  const double share = scenario_.functions[function_of(flow)].gpu_share;
  if (share >= 1) return;
  const OpenInvocation* invocation = work_.invocations.find(id);
  if (invocation == nullptr) return;
  run.gpu_time = from_seconds(to_seconds(clock_.now() - invocation->delivered) * share);
}

Duration ModelledFunctions::varied(Duration typical, std::size_t function, std::uint64_t number) const {
  if (scenario_.noise <= 0) return typical;
  Rng rng(seed_ ^ (function + 1) * 0x9e3779b97f4a7c15u ^ number * 0xd1b54a32d192ed03u);
  const double factor = std::clamp(1.0 + scenario_.noise * bell(rng), 0.1, 4.0);
  return Duration(static_cast<Duration::rep>(static_cast<double>(typical.count()) * factor));
}

}  // namespace fairlead::sim
