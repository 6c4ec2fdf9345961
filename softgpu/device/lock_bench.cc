// The device's lock when nobody else wants it.
#include <benchmark/benchmark.h>

#include "softgpu/device/device.h"
#include "softgpu/device/testing.h"

namespace softgpu {
namespace {

void uncontended_lock(benchmark::State& state) {
  const Machine machine = open_machine().value();
  Clients clients = Clients::open(machine).value();
  const Owner self = clients.join().value();
  const auto device = Device::open(machine, clients, self, 0).value();
  const auto view = DeviceView::open(machine, clients, 0).value();
  DeviceLock lock(view->control().lock, clients, self);
  for (auto _ : state) {
    lock.lock();
    lock.unlock();
  }
}
BENCHMARK(uncontended_lock);

}  // namespace
}  // namespace softgpu

int main(int count, char** arguments) {
  const softgpu::testing::TemporaryHome home;
  benchmark::Initialize(&count, arguments);
  benchmark::RunSpecifiedBenchmarks();
}
