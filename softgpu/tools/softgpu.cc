// softgpu: looks at and resets the software GPU of this machine.
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

#include "softgpu/device/device.h"

namespace {

using softgpu::Clients;
using softgpu::DeviceView;
using softgpu::Machine;

constexpr char kUsage[] =
    "usage: softgpu smi        devices, their use and their processes\n"
    "       softgpu profiles   the devices that can be modelled\n"
    "       softgpu reset      removes the state folder; --force even while processes use it\n";

int fail(const std::string& message) {
  std::fprintf(stderr, "softgpu: %s\n", message.c_str());
  return 1;
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
  std::printf("%3u  %-24s %-13s %8llu / %llu MiB %5.0f %%\n", view.index(), machine.profile.name.c_str(),
              softgpu::pci_bus_id(view.index()).c_str(),
              static_cast<unsigned long long>((use.total * softgpu::kPageBytes) >> 20),
              static_cast<unsigned long long>((view.control().page_count * softgpu::kPageBytes) >> 20),
              sample.busy * 100);
}

void print_processes(const Clients& clients, const DeviceView& view) {
  const auto use = view.use();
  for (std::uint32_t slot = 0; slot < softgpu::kMaxClients; ++slot) {
    if (use.by_slot[slot] == 0) continue;
    const auto live = clients.live(slot);
    if (!live) continue;
    std::printf("%3u  %10d  %-24s %8llu MiB\n", view.index(), live->pid, command_of(live->pid).c_str(),
                static_cast<unsigned long long>((use.by_slot[slot] * softgpu::kPageBytes) >> 20));
  }
}

int smi() {
  const auto machine = softgpu::open_machine();
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
              machine->mode == softgpu::Mode::kModel ? "model" : "fast");
  std::printf("GPU  %-24s %-13s %-23s %6s\n", "name", "bus", "         memory used", "busy");
  for (const auto& view : views) print_device(*machine, *view);
  std::printf("\nGPU  %10s  %-24s %12s\n", "pid", "process", "memory");
  for (const auto& view : views) print_processes(*clients, *view);
  return 0;
}

int profiles() {
  std::printf("%-10s %-24s %4s %5s %8s %6s\n", "profile", "name", "cc", "SMs", "memory", "GB/s");
  for (const std::string_view name : softgpu::builtin_profile_names()) {
    const auto profile = softgpu::parse_profile(*softgpu::load_profile_text(std::string(name)));
    if (!profile) return fail(profile.error());
    std::printf("%-10s %-24s %d.%d  %5llu %4llu GiB %6llu\n", std::string(name).c_str(), profile->name.c_str(),
                profile->compute_major, profile->compute_minor, static_cast<unsigned long long>(profile->sm_count),
                static_cast<unsigned long long>(profile->memory_mib >> 10),
                static_cast<unsigned long long>(profile->memory_bandwidth_gb_s));
  }
  return 0;
}

bool has_clients(const std::string& home) {
  Machine machine;
  machine.home = home;
  const auto clients = Clients::open(machine);
  if (!clients) return false;  // damaged state is what reset is for
  for (std::uint32_t slot = 0; slot < softgpu::kMaxClients; ++slot) {
    if (clients->live(slot)) return true;
  }
  return false;
}

// Removes only what this library writes: a wrong $SOFTGPU_HOME must not cost anybody else's files.
int reset(bool force) {
  const std::string home = softgpu::machine_home();
  std::error_code error;
  if (!std::filesystem::is_directory(home, error)) return 0;
  if (!force && has_clients(home)) return fail(home + " is used by processes (softgpu smi); end them or add --force");
  for (const auto& entry : std::filesystem::directory_iterator(home, error)) {
    const std::string name = entry.path().filename();
    const bool ours = name.starts_with("machine") || name.starts_with("clients") || name.starts_with("slots") ||
                      (name.starts_with("device") && name.find('.') != std::string::npos);
    if (ours) std::filesystem::remove(entry.path(), error);
  }
  if (!std::filesystem::remove(home, error) && error) return fail("cannot remove " + home + ": " + error.message());
  return 0;
}

}  // namespace

int main(int count, char** arguments) {
  const std::string command = count > 1 ? arguments[1] : "";
  if (command == "smi") return smi();
  if (command == "profiles") return profiles();
  if (command == "reset") return reset(count > 2 && std::strcmp(arguments[2], "--force") == 0);
  std::fputs(kUsage, stderr);
  return 2;
}
