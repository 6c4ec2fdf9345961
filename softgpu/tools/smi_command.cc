// softgpu smi: the devices, their use, their MIG devices and their processes, as a table or as JSON.
#include "softgpu/tools/smi.h"

#include <cstdio>
#include <fstream>

#include "softgpu/tools/command.h"

namespace softgpu::tools {
namespace {

constexpr std::uint64_t kMib = 1 << 20;

std::string command_of(int pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/comm");
  std::string command;
  std::getline(file, command);
  return command.empty() ? "-" : command;
}

std::vector<SmiProcess> processes_of(const Clients& clients, const DeviceView& view) {
  std::vector<SmiProcess> processes;
  const PageUse use = view.use();
  for (const Owner owner : view.users().list()) {
    const auto live = clients.live(owner.slot);
    if (live) processes.push_back({live->pid, command_of(live->pid), use.by_slot[owner.slot] * kPageBytes});
  }
  return processes;
}

Result<SmiDevice> read_part(const Clients& clients, const Part& part) {
  const auto view = DeviceView::open(clients, part);
  if (!view) return failure(view.error());
  return SmiDevice{part, (*view)->use().total * kPageBytes, (*view)->total_bytes(), (*view)->sample().busy,
                   processes_of(clients, **view)};
}

Result<SmiGpu> read_gpu(const Machine& machine, const Clients& clients, unsigned index) {
  const auto settings = read_settings(machine, index);
  if (!settings) return failure(settings.error());
  auto whole = read_part(clients, whole_gpu(machine, index));
  if (!whole) return failure(whole.error());
  SmiGpu gpu = {
      std::move(*whole), settings->compute_mode, settings->mig.geometry().supported(), settings->mig.enabled(), {}};
  for (const Part& part : mig_parts(machine, index, settings->mig)) {
    auto device = read_part(clients, part);
    if (!device) return failure(device.error());
    const bool counted =
        !gpu.mig_devices.empty() && gpu.mig_devices.back().part.mig->gpu_instance == part.mig->gpu_instance;
    if (!counted) gpu.whole.used_bytes += device->used_bytes;  // compute instances of one share its memory
    gpu.whole.busy += device->busy * static_cast<double>(part.profile.sm_count) /
                      static_cast<double>(gpu.whole.part.profile.sm_count);
    gpu.mig_devices.push_back(std::move(*device));
  }
  return gpu;
}

const char* text_of(ComputeMode mode) {
  switch (mode) {
    case ComputeMode::kDefault: return "default";
    case ComputeMode::kProhibited: return "prohibited";
    case ComputeMode::kExclusiveProcess: return "exclusive process";
  }
  return "";
}

std::string rule(const char* columns) {
  std::string line;
  for (const char* c = columns; *c != '\0'; ++c) line += *c == '|' ? '+' : '-';
  return line;
}

constexpr char kGpuRow[] = "| %3u | %-36s | %-12s | %7llu / %7llu MiB | %4.0f %% | %-18s |\n";
constexpr char kGpuHead[] =
    "| GPU | name                                 | bus          | memory used           | busy   | mode               "
    "|";
constexpr char kProcessRow[] = "| %3u | %4s | %4s | %9d | %-32s | %9llu MiB |\n";
constexpr char kProcessHead[] = "| GPU |   GI |   CI |       pid | process                          | memory used   |";

void print_gpu(const SmiGpu& gpu) {
  const SmiDevice& whole = gpu.whole;
  const std::string mode = gpu.mig_enabled ? "MIG" : text_of(gpu.compute_mode);
  std::printf(kGpuRow, whole.part.gpu, whole.part.profile.name.c_str(), pci_bus_id(whole.part.gpu).c_str(),
              static_cast<unsigned long long>(whole.used_bytes / kMib),
              static_cast<unsigned long long>(whole.total_bytes / kMib), whole.busy * 100, mode.c_str());
  for (std::size_t i = 0; i < gpu.mig_devices.size(); ++i) {
    const SmiDevice& mig = gpu.mig_devices[i];
    const std::string name = mig.part.profile.name.substr(whole.part.profile.name.size() + 1);
    const std::string row =
        "  " + std::to_string(i) + ": " + name + ", " + std::to_string(mig.part.profile.sm_count) + " SMs";
    const std::string ids =
        "GI " + std::to_string(mig.part.mig->gpu_instance) + " CI " + std::to_string(mig.part.mig->compute_instance);
    std::printf("|     | %-36s | %-12s | %7llu / %7llu MiB | %4.0f %% | %-18s |\n", row.c_str(), ids.c_str(),
                static_cast<unsigned long long>(mig.used_bytes / kMib),
                static_cast<unsigned long long>(mig.total_bytes / kMib), mig.busy * 100, "");
  }
}

void print_processes(const SmiDevice& device) {
  const auto& ids = device.part.mig;
  const std::string gpu_instance = ids ? std::to_string(ids->gpu_instance) : "-";
  const std::string compute_instance = ids ? std::to_string(ids->compute_instance) : "-";
  for (const SmiProcess& process : device.processes) {
    std::printf(kProcessRow, device.part.gpu, gpu_instance.c_str(), compute_instance.c_str(), process.pid,
                process.command.c_str(), static_cast<unsigned long long>(process.bytes / kMib));
  }
}

void print_table(const Smi& all) {
  std::printf("software GPU, state in %s, mode %s\n\n", all.home.c_str(), all.mode.c_str());
  const std::string gpu_rule = rule(kGpuHead);
  std::printf("%s\n%s\n%s\n", gpu_rule.c_str(), kGpuHead, gpu_rule.c_str());
  for (const SmiGpu& gpu : all.gpus) print_gpu(gpu);
  const std::string process_rule = rule(kProcessHead);
  std::printf("%s\n\n%s\n%s\n%s\n", gpu_rule.c_str(), process_rule.c_str(), kProcessHead, process_rule.c_str());
  for (const SmiGpu& gpu : all.gpus) {
    print_processes(gpu.whole);
    for (const SmiDevice& mig : gpu.mig_devices) print_processes(mig);
  }
  std::printf("%s\n", process_rule.c_str());
}

}  // namespace

int smi(Arguments arguments) {
  const auto line = parse_command_line(arguments, {}, {"json"});
  if (!line) return fail(line.error());
  const auto machine = open_machine();
  if (!machine) return fail(machine.error());
  const auto clients = Clients::open(*machine);
  if (!clients) return fail(clients.error());
  Smi all = {machine->home, std::string(mode_name(machine->mode)), {}};
  for (unsigned index = 0; index < machine->device_count; ++index) {
    auto gpu = read_gpu(*machine, *clients, index);
    if (!gpu) return fail(gpu.error());
    all.gpus.push_back(std::move(*gpu));
  }
  if (line->has("json")) {
    std::fputs(smi_json(all).c_str(), stdout);
  } else {
    print_table(all);
  }
  return 0;
}

}  // namespace softgpu::tools
