// What the machine does in a second, beside plain C++ loops in the same run. Kernels are compiled by clang at build
// time from testdata/kernels.cu.
#include <benchmark/benchmark.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>

#include "softgpu/ptx/isa.h"
#include "softgpu/ptx/test_device.h"

namespace softgpu::ptx {
namespace {

using testing::pack_arguments;
using testing::TestDevice;

const std::string& kernels_ptx() {
  static const std::string text = [] {
    std::ifstream file(SOFTGPU_PTX_TESTDATA "/kernels.ptx");
    return std::string(std::istreambuf_iterator<char>(file), {});
  }();
  return text;
}

// A module and its device; ends the program with a message when the module does not load.
struct Fixture {
  TestDevice device;
  std::unique_ptr<Module> module;
  unsigned workers = 1;
  explicit Fixture(const std::string& text) {
    LoadResult result = load_module(text, device, nullptr);
    if (result.module == nullptr) {
      std::fprintf(stderr, "line %d: %s\n", result.error.line, result.error.message.c_str());
      std::abort();
    }
    module = std::move(result.module);
  }
  template <class... T>
  Outcome run(const char* name, Dim3 grid, Dim3 block, T... values) {
    const Kernel& kernel = *module->kernel(name);
    const auto arguments = pack_arguments(kernel.info(), values...);
    Launch launch;
    launch.grid = grid;
    launch.block = block;
    launch.parameters = arguments;
    launch.workers = workers;
    Outcome outcome = kernel.run(device, launch);
    if (outcome.fault != FaultKind::kNone) {
      std::fprintf(stderr, "%s\n", outcome.fault_detail.c_str());
      std::abort();
    }
    return outcome;
  }
};

std::vector<float> numbers(std::size_t count) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<float>(i % 17) - 8;
  return values;
}

void report(benchmark::State& state, const Outcome& outcome) {
  state.counters["warp_instructions"] =
      benchmark::Counter(static_cast<double>(outcome.warp_instructions), benchmark::Counter::kIsIterationInvariantRate);
}

void sgemm(benchmark::State& state, const char* name, unsigned tile) {
  Fixture fixture(kernels_ptx());
  const auto n = static_cast<unsigned>(state.range(0));
  const auto values = numbers(std::size_t{n} * n);
  const auto a = fixture.device.upload(values), b = fixture.device.upload(values), c = fixture.device.upload(values);
  Outcome outcome;
  for (auto _ : state) outcome = fixture.run(name, {n / tile, n / tile}, {16, 16}, static_cast<int>(n), a, b, c);
  report(state, outcome);
}
void BM_SgemmSharedTile(benchmark::State& state) {
  sgemm(state, "sgemm_tile", 16);
}
BENCHMARK(BM_SgemmSharedTile)->Arg(1024)->Unit(benchmark::kMillisecond);
void BM_SgemmRegisterTile(benchmark::State& state) {
  sgemm(state, "sgemm_register", 64);
}
BENCHMARK(BM_SgemmRegisterTile)->Arg(1024)->Unit(benchmark::kMillisecond);

void BM_SgemmHost(benchmark::State& state) {
  const auto n = static_cast<std::size_t>(state.range(0));
  const auto a = numbers(n * n), b = numbers(n * n);
  std::vector<float> c(n * n);
  for (auto _ : state) {
    std::fill(c.begin(), c.end(), 0.0f);
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t k = 0; k < n; ++k)
        for (std::size_t j = 0; j < n; ++j) c[i * n + j] += a[i * n + k] * b[k * n + j];
    benchmark::DoNotOptimize(c.data());
  }
}
BENCHMARK(BM_SgemmHost)->Arg(1024)->Unit(benchmark::kMillisecond);

void BM_Jacobi3000(benchmark::State& state) {
  Fixture fixture(kernels_ptx());
  const auto n = static_cast<unsigned>(state.range(0));
  const auto values = numbers(std::size_t{n} * n);
  auto from = fixture.device.upload(values), to = fixture.device.upload(values);
  Outcome outcome;
  for (auto _ : state) {
    for (int i = 0; i < 3000; ++i) {
      outcome =
          fixture.run("jacobi_strip", {n / 128, 8}, {128}, static_cast<int>(n), static_cast<int>(n / 8), from, to);
      std::swap(from, to);
    }
  }
  report(state, outcome);
}
BENCHMARK(BM_Jacobi3000)->Arg(512)->Unit(benchmark::kMillisecond);

// One point per thread: most instructions compute indices.
void BM_JacobiPoint300(benchmark::State& state) {
  Fixture fixture(kernels_ptx());
  const auto n = static_cast<unsigned>(state.range(0));
  const auto values = numbers(std::size_t{n} * n);
  auto from = fixture.device.upload(values), to = fixture.device.upload(values);
  for (auto _ : state) {
    for (int i = 0; i < 300; ++i) {
      fixture.run("jacobi", {n / 32, n / 8}, {32, 8}, static_cast<int>(n), from, to);
      std::swap(from, to);
    }
  }
}
BENCHMARK(BM_JacobiPoint300)->Arg(512)->Unit(benchmark::kMillisecond);

void BM_Jacobi3000Host(benchmark::State& state) {
  const auto n = static_cast<std::size_t>(state.range(0));
  auto from = numbers(n * n), to = from;
  for (auto _ : state) {
    for (int i = 0; i < 3000; ++i) {
      for (std::size_t y = 1; y < n - 1; ++y)
        for (std::size_t x = 1; x < n - 1; ++x)
          to[y * n + x] =
              0.25f * (from[y * n + x - 1] + from[y * n + x + 1] + from[(y - 1) * n + x] + from[(y + 1) * n + x]);
      std::swap(from, to);
      benchmark::DoNotOptimize(from.data());
    }
  }
}
BENCHMARK(BM_Jacobi3000Host)->Arg(512)->Unit(benchmark::kMillisecond);

// 64 rows of 1000.
void BM_Softmax(benchmark::State& state) {
  Fixture fixture(kernels_ptx());
  const auto in = fixture.device.upload(numbers(64 * 1000)), out = fixture.device.upload(numbers(64 * 1000));
  Outcome outcome;
  for (auto _ : state) outcome = fixture.run("softmax", {64}, {256}, 1000, in, out);
  report(state, outcome);
}
BENCHMARK(BM_Softmax)->Unit(benchmark::kMicrosecond);

// Wall time of a big launch by the number of host threads: the ratio of the two is what a second core gives.
void BM_Workers(benchmark::State& state) {
  Fixture fixture(kernels_ptx());
  const unsigned n = 512;
  const auto values = numbers(std::size_t{n} * n);
  const auto a = fixture.device.upload(values), b = fixture.device.upload(values), c = fixture.device.upload(values);
  fixture.workers = static_cast<unsigned>(state.range(0));
  for (auto _ : state) fixture.run("sgemm_tile", {n / 16, n / 16}, {16, 16}, static_cast<int>(n), a, b, c);
}
BENCHMARK(BM_Workers)->Arg(1)->Arg(2)->UseRealTime()->Unit(benchmark::kMillisecond);

void BM_EmptyLaunch(benchmark::State& state) {
  Fixture fixture(kernels_ptx());
  const Kernel& kernel = *fixture.module->kernel("empty");
  Launch launch;
  launch.block = {256};
  for (auto _ : state) benchmark::DoNotOptimize(kernel.run(fixture.device, launch));
}
BENCHMARK(BM_EmptyLaunch);

// A module of about 2,000 instructions.
void BM_Load(benchmark::State& state) {
  std::string text =
      ".version 7.5\n.target sm_75\n.address_size 64\n.visible .entry k(.param .u64 k_param_0) {\n"
      ".reg .pred %p<200>; .reg .f32 %f<2000>; .reg .b32 %r<200>; .reg .b64 %rd<200>;\n"
      "ld.param.u64 %rd1, [k_param_0];\ncvta.to.global.u64 %rd2, %rd1;\n";
  for (int i = 0; i < 200; ++i) {
    const std::string n = std::to_string(i % 199), f = std::to_string(i * 9 + 1);
    text += "ld.global.f32 %f" + f + ", [%rd2+" + std::to_string(4 * i) + "];\nadd.f32 %f2, %f" + f +
            ", 0f3F800000;\nmul.f32 %f3, %f2, %f" + f + ";\nfma.rn.f32 %f4, %f2, %f3, %f" + f + ";\nsetp.lt.f32 %p" +
            n + ", %f4, %f3;\n@%p" + n + " bra $L" + std::to_string(i) +
            ";\nadd.s32 %r2, %r3, 17;\nmul.wide.s32 %rd3, %r2, 4;\nadd.s64 %rd4, %rd2, %rd3;\nst.global.f32 [%rd4], "
            "%f4;\n$L" +
            std::to_string(i) + ":\n";
  }
  text += "ret;\n}\n";
  TestDevice device;
  for (auto _ : state) {
    const LoadResult result = load_module(text, device, nullptr);
    if (result.module == nullptr) std::abort();
  }
}
BENCHMARK(BM_Load)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace softgpu::ptx

// --isa=v3 measures AVX2 on a CPU that has more.
int main(int argc, char** argv) {
  constexpr std::string_view kFlag = "--isa=";
  if (argc > 1 && std::string_view(argv[1]).starts_with(kFlag)) {
    if (!softgpu::ptx::choose_instruction_set(std::string_view(argv[1]).substr(kFlag.size()))) return 1;
    argv[1] = argv[0];
    --argc;
    ++argv;
  }
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
