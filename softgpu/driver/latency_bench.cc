// What the driver itself costs: one process, an otherwise idle device.
#include <benchmark/benchmark.h>

#include <cstdlib>

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

// 100 empty kernels in a chain, launched one by one and as a graph, until they are done.
constexpr int kChain = 100;

void chain_of_launches(benchmark::State& state) {
  CUfunction empty = test_function("empty");
  for (auto _ : state) {
    for (int i = 0; i < kChain; ++i) launch(empty);
    cuCtxSynchronize();
  }
}
BENCHMARK(chain_of_launches)->UseRealTime();

CUgraphExec make_chain(CUstream stream) {
  CUgraph graph = nullptr;
  CUgraphExec exec = nullptr;
  cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED);
  for (int i = 0; i < kChain; ++i) softgpu::testing::run_kernel("empty", nullptr, stream, 1, 32);
  cuStreamEndCapture(stream, &graph);
  cuGraphInstantiateWithFlags(&exec, graph, 0);
  return exec;
}

void chain_as_graph(benchmark::State& state) {
  CUstream stream = softgpu::testing::make_stream(CU_STREAM_NON_BLOCKING);
  CUgraphExec exec = make_chain(stream);
  for (auto _ : state) {
    cuGraphLaunch(exec, stream);
    cuStreamSynchronize(stream);
  }
  cuGraphExecDestroy(exec);
}
BENCHMARK(chain_as_graph)->UseRealTime();

// What the caller pays until the calls return, for both.
void calls_of_chain_of_launches(benchmark::State& state) {
  CUfunction empty = test_function("empty");
  for (auto _ : state) {
    for (int i = 0; i < kChain; ++i) launch(empty);
    state.PauseTiming();
    cuCtxSynchronize();
    state.ResumeTiming();
  }
}
BENCHMARK(calls_of_chain_of_launches);

void call_of_chain_as_graph(benchmark::State& state) {
  CUstream stream = softgpu::testing::make_stream(CU_STREAM_NON_BLOCKING);
  CUgraphExec exec = make_chain(stream);
  for (auto _ : state) {
    cuGraphLaunch(exec, stream);
    state.PauseTiming();
    cuStreamSynchronize(stream);
    state.ResumeTiming();
  }
  cuGraphExecDestroy(exec);
}
BENCHMARK(call_of_chain_as_graph);

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

// A handle another process has made.
CUipcMemHandle exported;

void ipc_open(benchmark::State& state) {
  for (auto _ : state) {
    CUdeviceptr address = 0;
    if (cuIpcOpenMemHandle_v2(&address, exported, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS) != CUDA_SUCCESS) {
      return state.SkipWithError("the handle cannot be opened");
    }
    state.PauseTiming();
    cuIpcCloseMemHandle(address);
    state.ResumeTiming();
  }
}
BENCHMARK(ipc_open);

void export_memory(int to) {
  CUdeviceptr address = 0;
  CUipcMemHandle handle;
  use_device();
  if (cuMemAlloc_v2(&address, 1 << 20) != CUDA_SUCCESS) std::abort();
  if (cuIpcGetMemHandle(&handle, address) != CUDA_SUCCESS) std::abort();
  if (::write(to, &handle, sizeof handle) != sizeof handle) std::abort();
}

}  // namespace

int main(int count, char** arguments) {
  const softgpu::testing::TemporaryHome home;
  benchmark::Initialize(&count, arguments);
  int pipe_ends[2];
  if (::pipe(pipe_ends) != 0) std::abort();
  const softgpu::testing::Child exporter([&] { export_memory(pipe_ends[1]); });
  if (::read(pipe_ends[0], &exported, sizeof exported) != sizeof exported) std::abort();
  use_device();
  benchmark::RunSpecifiedBenchmarks();
}
