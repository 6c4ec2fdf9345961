// One scheduling decision with many backlogged flows: the next arrival, the choice, and the completion of what was chosen,
// so that the number of queued invocations stays. Budget: 0.5 us median at 10,000 flows, all three together.
#include <benchmark/benchmark.h>

#include <string>

#include "base/check.h"
#include "base/rng.h"
#include "decide/queueing/policy.h"

namespace fairlead {
namespace {

using std::chrono::milliseconds;

class AlwaysPlaceable final : public Placeable {
 public:
  bool can_run(FlowId) const override { return true; }
  std::vector<Place> places(FlowId) const override { return {{.gpu = GpuId(1), .free = true}}; }
};

// Flows 1..count, each with two queued and a known service time of 1 to 100 ms.
class Backlog {
 public:
  Backlog(std::string_view policy_name, std::size_t flows) : flows_(flows), policy_(make(policy_name)) {
    for (std::size_t i = 1; i <= flows; ++i) policy_->add_flow(FlowId(i), {.weight = 1.0});
    for (std::size_t i = 0; i < 3 * flows; ++i) arrive(FlowId(i % flows + 1));
    for (std::size_t i = 0; i < flows; ++i) complete(choose());
  }

  void arrive(FlowId flow) { policy_->on_arrival(now_, flow, InvocationId(next_++)); }
  FlowQueue::Choice choose() { return *policy_->choose(now_, placeable_); }
  void complete(FlowQueue::Choice choice) {
    policy_->on_completion(now_, choice.flow, choice.invocation, milliseconds(1 + choice.flow.value() * 7919 % 100));
  }
  void pass(Duration time) { now_ += time; }
  FlowId random_flow() { return FlowId(rng_.below(flows_) + 1); }

 private:
  static std::unique_ptr<FlowQueue> make(std::string_view name) {
    auto policy = make_policy(name, PolicyOptions{});
    FL_CHECK(policy);
    return std::move(*policy);
  }

  const std::size_t flows_;
  std::unique_ptr<FlowQueue> policy_;
  AlwaysPlaceable placeable_;
  Rng rng_{1};
  Instant now_{};
  std::uint64_t next_ = 1;
};

void decision(benchmark::State& state, const std::string& policy) {
  Backlog backlog(policy, static_cast<std::size_t>(state.range(0)));
  for (auto _ : state) {
    backlog.pass(milliseconds(1));
    const FlowQueue::Choice choice = backlog.choose();
    benchmark::DoNotOptimize(choice);
    backlog.complete(choice);
    backlog.arrive(choice.flow);
  }
}

// The flow that gets the next arrival is not the one just served: every touched flow is cold in the cache.
void decision_random_arrival(benchmark::State& state, const std::string& policy) {
  Backlog backlog(policy, static_cast<std::size_t>(state.range(0)));
  for (auto _ : state) {
    backlog.pass(milliseconds(1));
    backlog.arrive(backlog.random_flow());
    const FlowQueue::Choice choice = backlog.choose();
    benchmark::DoNotOptimize(choice);
    backlog.complete(choice);
  }
}

using Measure = void (*)(benchmark::State&, const std::string&);

void register_all(const char* what, Measure measure) {
  for (const Policy* policy : policies()) {
    const std::string name = std::string(what) + "/" + std::string(policy->name);
    auto* bench = benchmark::RegisterBenchmark(name.c_str(), measure, std::string(policy->name));
    if (policy->looks_at_every_flow) {
      bench->Arg(32)->Arg(1'000);
    } else {
      bench->Arg(1'000)->Arg(10'000)->Arg(100'000);
    }
  }
}

const bool registered = [] {
  register_all("decision", decision);
  register_all("decision_random_arrival", decision_random_arrival);
  return true;
}();

}  // namespace
}  // namespace fairlead
