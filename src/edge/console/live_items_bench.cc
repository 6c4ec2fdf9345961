// What one look costs that serves all viewers: items of so many functions, of which a tenth has changed, and the text of the frame.
#include <benchmark/benchmark.h>

#include "edge/console/live_items.h"

namespace fairlead {
namespace {

NodeStatus status_of(int functions) {
  NodeStatus status;
  for (int i = 0; i < functions; ++i) {
    FunctionStatus function{.name = fmt::format("function-{}", i)};
    function.flow = {.flow = FlowId(i + 1), .state = FlowState::kActive};
    function.stats.invocations = 1000 + i;
    function.stats.duration_histogram.assign(std::size(kDurationBucketsSeconds) + 1, 50);
    status.functions.push_back(std::move(function));
  }
  return status;
}

void look(benchmark::State& state) {
  NodeStatus status = status_of(static_cast<int>(state.range(0)));
  LiveView view;
  std::size_t bytes = 0;
  for (auto _ : state) {
    for (std::size_t i = 0; i < status.functions.size(); i += 10) ++status.functions[i].stats.invocations;
    const std::uint64_t seen = view.frame();
    view.update(live_items({status, [](const std::string&) { return std::nullopt; }}, std::nullopt));
    bytes = view.text_since(seen).size();
  }
  state.counters["frame_bytes"] = static_cast<double>(bytes);
}
BENCHMARK(look)->Arg(10)->Arg(100)->Arg(1000)->Arg(10'000)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace fairlead
