// One boundary with everybody busy: reports of who is open, the tick, drains, and who asks again. Budget: 20 us with 48 instances, 1 % of
// the shortest frame.
#include <benchmark/benchmark.h>

#include "base/rng.h"
#include "decide/pacing/pacer.h"
#include "decide/pacing/pacing_test_support.h"

namespace fairlead {
namespace {

// Only the tick, which chooses the next set.
void boundary(benchmark::State& state) {
  Rng rng(1);
  Pacer pacer({});
  PlaceActions actions;
  const auto count = static_cast<std::uint64_t>(state.range(0));
  for (std::uint64_t i = 1; i <= count; ++i) {
    const PacedShare share{.width_percent = 4 + static_cast<int>(rng.below(40)),
                           .request_percent = i % 4 == 0 ? 0 : 10};
    (void)pacer.set_share(Instant(), InstanceId(i), share, actions);
  }
  Instant now(std::chrono::seconds(1));
  for (std::uint64_t i = 1; i <= count; ++i) pacer.asks(now, InstanceId(i), std::nullopt, actions);
  for (auto _ : state) {
    state.PauseTiming();
    for (std::uint64_t i = 1; i <= count; ++i) {
      if (!holds_width(*pacer.state_of(InstanceId(i)))) continue;
      pacer.used(now, InstanceId(i), std::chrono::milliseconds(2));
      if (*pacer.state_of(InstanceId(i)) == PlaceState::kOpen) continue;
      pacer.drained(now, InstanceId(i), actions);
      pacer.asks(now, InstanceId(i), std::nullopt, actions);
    }
    actions.clear();
    now = *pacer.next_tick();
    state.ResumeTiming();
    pacer.tick(now, actions);
  }
}
BENCHMARK(boundary)->Arg(8)->Arg(20)->Arg(48)->Unit(benchmark::kMicrosecond);

// All events of a busy second, for each boundary.
void busy_frame(benchmark::State& state) {
  Rng rng(1);
  Pacer pacer({});
  std::vector<PacedShare> shares;
  for (std::int64_t i = 0; i < state.range(0); ++i) {
    shares.push_back({.width_percent = 4 + static_cast<int>(rng.below(40)), .request_percent = i % 4 == 0 ? 0 : 10});
  }
  BusyDevice device(pacer, shares, [](std::size_t) { return std::chrono::microseconds(100); });
  for (auto _ : state) device.run_until(device.now + std::chrono::milliseconds(2));
}
BENCHMARK(busy_frame)->Arg(8)->Arg(48)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace fairlead
