// What the shared device costs: its lock and its turn uncontended, and how long others wait for one that was killed.
#include <benchmark/benchmark.h>

#include <mutex>

#include "softgpu/device/device_testing.h"

namespace {

using softgpu::testing::Child;
using softgpu::testing::Client;
using softgpu::testing::open_client;

const softgpu::StopCheck kNever = [] { return false; };

Client& client() {
  static Client& own = open_client();
  return own;
}

struct Lock {
  std::unique_ptr<softgpu::DeviceView> view = softgpu::DeviceView::open(client().machine, *client().clients, 0).value();
  softgpu::DeviceLock lock{view->control().lock, *client().clients, client().self};
};

void lock_uncontended(benchmark::State& state) {
  static Lock device;
  for (auto _ : state) {
    const std::lock_guard guard(device.lock);
    benchmark::ClobberMemory();
  }
}
BENCHMARK(lock_uncontended);

void turn_uncontended(benchmark::State& state) {
  for (auto _ : state) {
    client().device->turn().enter(kNever);
    client().device->turn().leave();
  }
}
BENCHMARK(turn_uncontended);

void liveness_of_a_process(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(client().clients->alive(client().self));
}
BENCHMARK(liveness_of_a_process);

// From the death of the holder to having it: the process waits already.
void take_over_from_the_killed(benchmark::State& state) {
  static Lock device;
  for (auto _ : state) {
    state.PauseTiming();
    Child holder([] {
      Client& own = open_client();
      auto view = softgpu::DeviceView::open(own.machine, *own.clients, 0).value();
      (new softgpu::DeviceLock(view.release()->control().lock, *own.clients, own.self))->lock();
    });
    holder.kill();
    state.ResumeTiming();
    device.lock.lock();
    device.lock.unlock();
  }
}
BENCHMARK(take_over_from_the_killed)->Iterations(20)->UseRealTime()->Unit(benchmark::kMillisecond);

}  // namespace

int main(int count, char** arguments) {
  const softgpu::testing::TemporaryHome home(softgpu::testing::kSmall);
  benchmark::Initialize(&count, arguments);
  benchmark::RunSpecifiedBenchmarks();
}
