// Checking and ordering the largest tasks there may be. Budget: 16,384 kernels in 50 ms, that of registering a task.
#include <benchmark/benchmark.h>

#include "base/check.h"
#include "base/rng.h"
#include "model/kernel_task_testing.h"

namespace fairlead {
namespace {

using Access = BufferArgument::Access;

BufferArgument reads(std::uint32_t buffer) {
  return {.buffer = buffer, .access = Access::kRead};
}
BufferArgument writes(std::uint32_t buffer) {
  return {.buffer = buffer, .access = Access::kWrite};
}

// Kernel i writes buffer i, and reads the one before, the first, and one at random: a network with long connections.
KernelTask network(std::uint32_t kernels) {
  KernelTask task;
  task.modules = {{.name = "k.ptx", .sha256 = std::string(32, 'd')}};
  Rng rng(1);
  for (std::uint32_t i = 0; i < kernels; ++i) {
    task.buffers.push_back(testing::buffer(std::to_string(i), BufferRole::kTemporary));
    const std::uint32_t before = i == 0 ? 0 : i - 1;
    const auto any = static_cast<std::uint32_t>(rng.below(i + 1));
    task.kernels.push_back({.kernel = "k", .arguments = {writes(i), reads(before), reads(0), reads(any)}});
  }
  return task;
}

void order(benchmark::State& state) {
  const KernelTask task = network(static_cast<std::uint32_t>(state.range(0)));
  for (auto _ : state) {
    const auto order = dependencies(task);
    FL_CHECK(order[2].size() == 1);
  }
}
BENCHMARK(order)->Arg(1024)->Arg(4096)->Arg(16384)->Unit(benchmark::kMillisecond);

void validate(benchmark::State& state) {
  const KernelTask task = network(static_cast<std::uint32_t>(state.range(0)));
  const std::vector<std::vector<KernelSignature>> signatures = {
      {{.name = "k", .parameters = {{0, 8}, {8, 8}, {16, 8}, {24, 8}}}}};
  for (auto _ : state) FL_CHECK(validate_task(task, signatures, {}).has_value());
}
BENCHMARK(validate)->Arg(1024)->Arg(16384)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace fairlead
