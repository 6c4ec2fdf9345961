// What the driver itself costs: one process, an otherwise idle device.
#include <benchmark/benchmark.h>

#include <filesystem>

#include "softgpu/driver/driver_testing.h"

namespace {

using softgpu::testing::test_function;
using softgpu::testing::use_device;

void small_allocation(benchmark::State& state) {
  for (auto _ : state) {
    CUdeviceptr address = 0;
    cuMemAlloc_v2(&address, 1000);
    cuMemFree_v2(address);
  }
}
BENCHMARK(small_allocation);

void large_allocation(benchmark::State& state) {
  for (auto _ : state) {
    CUdeviceptr address = 0;
    cuMemAlloc_v2(&address, 64 << 20);
    cuMemFree_v2(address);
  }
}
BENCHMARK(large_allocation);

CUresult launch(CUfunction empty) {
  return cuLaunchKernel(empty, 1, 1, 1, 32, 1, 1, 0, nullptr, nullptr, nullptr);
}

// What the caller pays while the stream is busy with earlier launches.
void launch_burst(benchmark::State& state) {
  CUfunction empty = test_function("empty");
  for (auto _ : state) {
    for (int i = 0; i < 1000; ++i) launch(empty);
    cuCtxSynchronize();
  }
  state.SetItemsProcessed(state.iterations() * 1000);
}
BENCHMARK(launch_burst)->UseRealTime();

void launch_and_synchronise(benchmark::State& state) {
  CUfunction empty = test_function("empty");
  for (auto _ : state) {
    launch(empty);
    cuCtxSynchronize();
  }
}
BENCHMARK(launch_and_synchronise)->UseRealTime();

void copy_4_bytes(benchmark::State& state) {
  CUdeviceptr address = 0;
  cuMemAlloc_v2(&address, 4);
  int value = 0;
  for (auto _ : state) cuMemcpyHtoD_v2(address, &value, 4);
}
BENCHMARK(copy_4_bytes);

void memory_info(benchmark::State& state) {
  for (auto _ : state) {
    std::size_t free_bytes = 0;
    std::size_t total = 0;
    cuMemGetInfo_v2(&free_bytes, &total);
  }
}
BENCHMARK(memory_info);

}  // namespace

int main(int count, char** arguments) {
  const softgpu::testing::TemporaryHome home;
  benchmark::Initialize(&count, arguments);
  use_device();
  benchmark::RunSpecifiedBenchmarks();
}
