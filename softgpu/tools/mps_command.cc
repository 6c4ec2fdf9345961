// softgpu mps: the MPS control daemon as it is modelled, and its clients.
#include "softgpu/device/time/mps.h"

#include <cstdio>

#include "softgpu/device/device.h"
#include "softgpu/device/key_value.h"
#include "softgpu/tools/command.h"

namespace softgpu::tools {
namespace {

constexpr char kUsage[] =
    "usage: softgpu mps start [--percentage P] [--memory-limits 0=4G,1=2G] [--clients N] [--faults shared|contained]\n"
    "       softgpu mps stop | status";

// The daemon's pipe directory is that of this command's environment, as for NVIDIA's.
Result<Mps> settings_of(const CommandLine& line) {
  Mps mps;
  if (const std::string directory = mps_environment().pipe_directory; !directory.empty()) {
    mps.pipe_directory = directory;
  }
  for (const auto& [name, value] : line.options) {
    if (name == "memory-limits") {
      auto limits = parse_memory_limits(value);
      if (!limits) return failure("--memory-limits: " + limits.error());
      mps.memory_limits = std::move(*limits);
    } else if (name == "faults") {
      if (value != "contained" && value != "shared") return failure(kUsage);
      mps.faults_shared = value == "shared";
    } else {
      const bool percentage = name == "percentage";
      const auto number = parse_number("--" + name, value, 1, percentage ? 100 : kMaxClients);
      if (!number) return failure(number.error());
      (percentage ? mps.default_percentage : mps.max_contexts) = static_cast<unsigned>(*number);
    }
  }
  return mps;
}

void print_clients(const Clients& clients, const DeviceView& view) {
  for (std::uint32_t slot = 0; slot < kMaxClients; ++slot) {
    const ClientActivity& client = view.control().activity[slot];
    const auto live = clients.live(slot);
    if (!live || client.mps.load() == 0 || client.owner.load() != live->owner.pack()) continue;
    std::printf("%3u  %10d  %5u  %8u  %8u  %10llu MiB\n", view.index(), live->pid, client.sm_share.load(),
                client.contexts.load(), client.kernels.load(),
                static_cast<unsigned long long>(client.memory_limit.load() >> 20));
  }
}

int status(const Machine& machine) {
  const auto mps = read_mps(machine);
  if (!mps) return fail(mps.error());
  if (!*mps) {
    std::puts("MPS does not run");
    return 0;
  }
  std::printf("MPS runs: pipe directory %s, %u %% of the SMs at most, %u client contexts per device, faults %s\n",
              (*mps)->pipe_directory.c_str(), (*mps)->default_percentage, (*mps)->max_contexts,
              (*mps)->faults_shared ? "shared" : "contained");
  const auto clients = Clients::open(machine);
  if (!clients) return fail(clients.error());
  std::printf("\nGPU  %10s  %5s  %8s  %8s  %14s\n", "pid", "SMs", "contexts", "kernels", "memory limit");
  for (unsigned gpu = 0; gpu < machine.device_count; ++gpu) {
    const auto view = DeviceView::open(machine, *clients, gpu);
    if (!view) return fail(view.error());
    print_clients(*clients, **view);
  }
  return 0;
}

}  // namespace

int mps(Arguments arguments) {
  const auto line = parse_command_line(arguments, {"percentage", "memory-limits", "clients", "faults"});
  if (!line) return fail(line.error());
  const std::string verb = line->words.size() == 1 ? line->words.front() : "";
  if (verb != "start" && verb != "stop" && verb != "status") return fail(kUsage);
  const auto machine = open_machine();
  if (!machine) return fail(machine.error());
  if (verb == "status") return status(*machine);
  if (verb == "stop") {
    const auto stopped = stop_mps(*machine);
    return stopped ? 0 : fail(stopped.error());
  }
  const auto settings = settings_of(*line);
  if (!settings) return fail(settings.error());
  const auto started = start_mps(*machine, *settings);
  return started ? 0 : fail(started.error());
}

}  // namespace softgpu::tools
