// What a session adds to a launch: the same kernels through KernelSession::launch, kernel by kernel and as a graph, and in a
// bare loop of cuLaunchKernel, in one run. The ratios are what counts: time on the loop's thread, until all are queued.
#include <benchmark/benchmark.h>

#include <cstdio>
#include <cstdlib>

#include "runtime/device_server/kernel_session.h"

namespace fairlead {
namespace {

constexpr const char* kNothing = R"(.version 6.0
.target sm_70
.address_size 64
.visible .entry nothing(.param .u64 x, .param .u64 y, .param .u32 n) { ret; }
)";

struct Fixture {
  Fixture() {
    auto opened = CudaContext::open(SOFTGPU_FOLDER, 0);
    if (!opened) {
      std::fprintf(stderr, "%s\n", opened.error().message.c_str());
      std::exit(1);
    }
    cuda = *std::move(opened);
    module = cuda->load_module(kNothing).value();
    lane = LaunchLane::create(*cuda).value();
  }
  static KernelTask task(std::size_t kernels) {
    KernelTask task;
    for (const char* name : {"x", "y", "z"}) {
      task.buffers.push_back(
          {.name = name, .bytes = Bytes(1024), .role = BufferRole::kInOut, .shape = {}, .constant = {}});
    }
    KernelLaunch launch{.module = 0, .kernel = "nothing", .block = {32, 1, 1}, .arguments = {}};
    launch.arguments = {BufferArgument{.buffer = 0}, BufferArgument{.buffer = 1},
                        LiteralArgument{.bytes = std::string(4, '\0'), .relocations = {}}};
    task.kernels.assign(kernels, launch);
    for (std::size_t k = 7; k < kernels; k += 8) task.kernels[k].arguments[0] = BufferArgument{.buffer = 2};
    return task;
  }

  std::unique_ptr<CudaContext> cuda;
  CUmodule module = nullptr;
  std::unique_ptr<LaunchLane> lane;
};

Fixture& fixture() {
  static Fixture shared;
  return shared;
}

void BM_BareLaunches(benchmark::State& state) {
  Fixture& f = fixture();
  const CUfunction function = f.cuda->find_kernel(f.module, "nothing", 0).value();
  CUdeviceptr x = 4096, y = 8192;
  std::uint32_t n = 0;
  void* parameters[] = {&x, &y, &n};
  for (auto _ : state) {
    for (std::int64_t k = 0; k < state.range(0); ++k) {
      f.cuda->launch(function, {1, 1, 1}, {32, 1, 1}, 0, f.lane->main(), parameters);
    }
    state.PauseTiming();
    benchmark::DoNotOptimize(f.cuda->synchronize());
    state.ResumeTiming();
  }
}
BENCHMARK(BM_BareLaunches)->Arg(1)->Arg(64)->Arg(512);

std::unique_ptr<KernelSession> make_session(const benchmark::State& state, Launching launching) {
  Fixture& f = fixture();
  const auto kernels = static_cast<std::size_t>(state.range(0));
  return KernelSession::create(*f.cuda, Fixture::task(kernels), {f.module}, launching).value();
}

// `step`: how far buffer `moves` is from where it was in the last call.
void run_calls(benchmark::State& state, Launching launching, std::size_t moves = 0, CUdeviceptr step = 0) {
  Fixture& f = fixture();
  const auto session = make_session(state, launching);
  std::vector<CUdeviceptr> addresses{4096, 8192, 16384};
  for (auto _ : state) {
    addresses[moves] += step;
    session->launch(*f.cuda, *f.lane, addresses);
    state.PauseTiming();
    benchmark::DoNotOptimize(f.cuda->synchronize());
    state.ResumeTiming();
  }
}

void BM_SessionLaunches(benchmark::State& state) {
  run_calls(state, Launching::kPlain);
}
BENCHMARK(BM_SessionLaunches)->Arg(1)->Arg(4)->Arg(8)->Arg(16)->Arg(64)->Arg(100)->Arg(512);

void BM_GraphLaunches(benchmark::State& state) {
  run_calls(state, Launching::kGraphs);
}
BENCHMARK(BM_GraphLaunches)->Arg(8)->Arg(16)->Arg(64)->Arg(100)->Arg(512);

// One kernel in eight has an address that moved, as where an output is elsewhere in every call.
void BM_GraphLaunchesPartlyMoved(benchmark::State& state) {
  run_calls(state, Launching::kGraphs, 2, 256);
}
BENCHMARK(BM_GraphLaunchesPartlyMoved)->Arg(8)->Arg(16)->Arg(64)->Arg(100)->Arg(512);

// The worst case: every kernel has one.
void BM_GraphLaunchesMoved(benchmark::State& state) {
  run_calls(state, Launching::kGraphs, 1, 256);
}
BENCHMARK(BM_GraphLaunchesMoved)->Arg(8)->Arg(16)->Arg(64)->Arg(100)->Arg(512);

void BM_Registration(benchmark::State& state, Launching launching) {
  for (auto _ : state) benchmark::DoNotOptimize(make_session(state, launching));
}
BENCHMARK_CAPTURE(BM_Registration, plain, Launching::kPlain)->Arg(8)->Arg(100);
BENCHMARK_CAPTURE(BM_Registration, graph, Launching::kGraphs)->Arg(8)->Arg(100);

}  // namespace
}  // namespace fairlead
