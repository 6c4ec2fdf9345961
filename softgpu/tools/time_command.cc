// softgpu time: the modelled time that each living process has used so far, and how long it has computed.
#include <cstdio>

#include "softgpu/device/device.h"
#include "softgpu/device/process_account.h"
#include "softgpu/tools/command.h"

namespace softgpu::tools {
namespace {

double ms(const std::atomic<std::uint64_t>& ns) {
  return static_cast<double>(ns.load()) / 1e6;
}

}  // namespace

int time(Arguments) {
  const auto machine = open_machine();
  if (!machine) return fail(machine.error());
  const auto clients = Clients::open(*machine);
  if (!clients) return fail(clients.error());
  std::printf("GPU  %10s  %9s  %14s  %9s  %14s  %14s\n", "pid", "kernels", "kernel time ms", "copies", "copy time ms",
              "computed ms");
  for (unsigned gpu = 0; gpu < machine->device_count; ++gpu) {
    const auto view = DeviceView::open(*machine, *clients, gpu);
    if (!view) return fail(view.error());
    for (std::uint32_t slot = 0; slot < kMaxClients; ++slot) {
      const ClientActivity& client = (*view)->control().activity[slot];
      const auto live = clients->live(slot);
      if (!live || client.owner.load() != live->owner.pack()) continue;
      std::printf("%3u  %10d  %9llu  %14.3f  %9llu  %14.3f  %14.3f\n", gpu, live->pid,
                  static_cast<unsigned long long>(client.kernel_count.load()), ms(client.kernel_ns),
                  static_cast<unsigned long long>(client.copy_count.load()), ms(client.copy_ns),
                  static_cast<double>(computed_ns((*view)->control(), live->owner, monotonic_ns())) / 1e6);
    }
  }
  return 0;
}

}  // namespace softgpu::tools
