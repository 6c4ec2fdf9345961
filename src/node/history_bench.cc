// What a history costs the core thread per invocation; the bound is a microsecond.
#include <benchmark/benchmark.h>

#include "node/history.h"
#include "store/test_folder.h"

namespace fairlead {
namespace {

void add_to_history(benchmark::State& state) {
  const store::TestFolder folder;
  boost::asio::io_context io;
  auto history = History::open(io, folder / "history", 64 << 20);
  InvocationRecord record{
      .at_us = 1'763'800'000'000'000, .outcome = OutcomeKind::kSuccess, .start = StartKind::kDeviceWarm};
  const auto work = boost::asio::make_work_guard(io);
  std::size_t added = 0;
  for (auto _ : state) {
    record.set_function("imagenet-classifier");
    record.at_us += 20;
    (*history)->add(record);
    if (++added % History::kBatch != 0) continue;
    state.PauseTiming();  // until the batch is written: a node is not this fast
    io.run_one();
    state.ResumeTiming();
  }
  state.counters["lost"] = static_cast<double>((*history)->lost());
}
BENCHMARK(add_to_history)->Iterations(1'000'000)->UseRealTime();

}  // namespace
}  // namespace fairlead
