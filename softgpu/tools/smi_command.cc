// softgpu smi: the devices, their use and their processes.
#include <cstdio>
#include <fstream>

#include "softgpu/device/device.h"
#include "softgpu/tools/command.h"

namespace softgpu::tools {
namespace {

unsigned long long mib(std::uint64_t pages) {
  return (pages * kPageBytes) >> 20;
}

std::string command_of(int pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/comm");
  std::string command;
  std::getline(file, command);
  return command.empty() ? "-" : command;
}

void print_device(const Machine& machine, const DeviceView& view) {
  const auto sample = view.sample();
  const auto use = view.use();
  std::printf("%3u  %-24s %-13s %8llu / %llu MiB %5.0f %%\n", view.index(), machine.profile(view.index()).name.c_str(),
              pci_bus_id(view.index()).c_str(), mib(use.total), mib(view.control().page_count), sample.busy * 100);
}

void print_processes(const Clients& clients, const DeviceView& view) {
  const auto use = view.use();
  for (std::uint32_t slot = 0; slot < kMaxClients; ++slot) {
    if (use.by_slot[slot] == 0) continue;
    const auto live = clients.live(slot);
    if (!live) continue;
    std::printf("%3u  %10d  %-24s %8llu MiB\n", view.index(), live->pid, command_of(live->pid).c_str(),
                mib(use.by_slot[slot]));
  }
}

}  // namespace

int smi(Arguments) {
  const auto machine = open_machine();
  if (!machine) return fail(machine.error());
  const auto clients = Clients::open(*machine);
  if (!clients) return fail(clients.error());
  std::vector<std::unique_ptr<DeviceView>> views;
  for (unsigned index = 0; index < machine->device_count; ++index) {
    auto view = DeviceView::open(*machine, *clients, index);
    if (!view) return fail(view.error());
    views.push_back(std::move(*view));
  }
  std::printf("software GPU, state in %s, mode %s\n\n", machine->home.c_str(),
              std::string(mode_name(machine->mode)).c_str());
  std::printf("GPU  %-24s %-13s %-23s %6s\n", "name", "bus", "         memory used", "busy");
  for (const auto& view : views) print_device(*machine, *view);
  std::printf("\nGPU  %10s  %-24s %12s\n", "pid", "process", "memory");
  for (const auto& view : views) print_processes(*clients, *view);
  return 0;
}

}  // namespace softgpu::tools
