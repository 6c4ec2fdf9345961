// One event of the core while many flows have work that cannot run: each waits for a start, and no more may start, or what
// runs has the memory that they need. Budget: 2 us per event at 10,000 flows, in the default policy.
//
// An event is an arrival, an answer, a question for the next invocation or a cancellation, with the dispatch that follows.
#include <benchmark/benchmark.h>

#include <string>

#include "base/check.h"
#include "base/rng.h"
#include "decide/core/core.h"

namespace fairlead {
namespace {

using namespace std::chrono_literals;

constexpr FlowId kWarm(1);

// Flow 1 has an instance and is served; flows 2..count+1 have one queued each, and cannot start.
class Waiting {
 public:
  Waiting(const std::string& policy, std::size_t count, Bytes memory_each)
      : count_(count),
        core_({.slots_per_gpu = 2, .queue_limit = 1'000'000, .start_deadline = 10'000h, .starts_per_gpu = 4},
              make(policy)) {
    core_.add_gpu({.gpu = GpuId(1), .memory = gib(16)});
    core_.add_function({.flow = kWarm, .timeout = 10'000h, .expected_memory = gib(1)});
    arrive(kWarm);
    core_.instance_ready(now_, InstanceId(1), actions_);
    answer_and_return();
    for (std::size_t i = 2; i <= count + 1; ++i)
      core_.add_function({.flow = FlowId(i), .expected_memory = memory_each});
    if (memory_each > gib(8)) arrive(kWarm);  // runs on, and is in the way
    for (std::size_t i = 2; i <= count + 1; ++i) arrive(FlowId(i));
  }

  InvocationId arrive(FlowId flow) {
    const InvocationId invocation(next_++);
    actions_.clear();
    FL_CHECK(core_.arrive(now_, invocation, flow, actions_));
    return invocation;
  }

  // An invocation of the flow that has an instance: three events.
  void serve_one() {
    now_ += 1ms;
    arrive(kWarm);
    FL_CHECK(!actions_.empty());
    answer_and_return();
  }

  // Of one that has none: two events.
  void arrive_and_cancel() {
    now_ += 1ms;
    const InvocationId invocation = arrive(FlowId(2 + rng_.below(count_)));
    core_.cancel(now_, invocation, actions_);
  }

 private:
  static std::unique_ptr<FlowQueue> make(const std::string& name) { return *make_policy(name, PolicyOptions{}); }

  void answer_and_return() {
    core_.answered(now_, InvocationId(next_ - 1), false, 1ms, actions_);
    core_.instance_idle(now_, InstanceId(1), actions_);
  }

  const std::size_t count_;
  Core core_;
  Actions actions_;
  Rng rng_{1};
  Instant now_{};
  std::uint64_t next_ = 1;
};

// Items are events.
void no_more_may_start(benchmark::State& state, const std::string& policy) {
  Waiting waiting(policy, static_cast<std::size_t>(state.range(0)), gib(1));
  for (auto _ : state) {
    waiting.serve_one();
    waiting.arrive_and_cancel();
  }
  state.SetItemsProcessed(5 * state.iterations());
}

void no_memory(benchmark::State& state, const std::string& policy) {
  Waiting waiting(policy, static_cast<std::size_t>(state.range(0)), gib(16));
  for (auto _ : state) waiting.arrive_and_cancel();
  state.SetItemsProcessed(2 * state.iterations());
}

const bool registered = [] {
  for (const std::string policy : {"mqfq-setup", "mqfq-sticky"}) {
    benchmark::RegisterBenchmark(("no_more_may_start/" + policy).c_str(), no_more_may_start, policy)
        ->Arg(100)
        ->Arg(10'000);
    benchmark::RegisterBenchmark(("no_memory/" + policy).c_str(), no_memory, policy)->Arg(100)->Arg(10'000);
  }
  return true;
}();

}  // namespace
}  // namespace fairlead
