// What a session adds to a launch: the same kernels through KernelSession::launch and in a bare loop of cuLaunchKernel, in
// one run. The ratio is what counts.
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
    task.buffers = {{.name = "x", .bytes = Bytes(1024), .role = BufferRole::kInOut, .shape = {}, .constant = {}},
                    {.name = "y", .bytes = Bytes(1024), .role = BufferRole::kOutput, .shape = {}, .constant = {}}};
    KernelLaunch launch{.module = 0, .kernel = "nothing", .block = {32, 1, 1}, .arguments = {}};
    launch.arguments = {BufferArgument{.buffer = 0}, BufferArgument{.buffer = 1},
                        LiteralArgument{.bytes = std::string(4, '\0'), .relocations = {}}};
    task.kernels.assign(kernels, launch);
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

void BM_SessionLaunches(benchmark::State& state) {
  Fixture& f = fixture();
  const auto session =
      KernelSession::create(*f.cuda, Fixture::task(static_cast<std::size_t>(state.range(0))), {f.module}).value();
  const std::vector<CUdeviceptr> addresses{4096, 8192};
  for (auto _ : state) {
    session->launch(*f.cuda, *f.lane, addresses);
    state.PauseTiming();
    benchmark::DoNotOptimize(f.cuda->synchronize());
    state.ResumeTiming();
  }
}
BENCHMARK(BM_SessionLaunches)->Arg(1)->Arg(64)->Arg(512);

}  // namespace
}  // namespace fairlead
