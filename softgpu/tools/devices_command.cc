// softgpu add-gpu, softgpu set-profile: which devices the machine has.
#include <filesystem>

#include "softgpu/device/device.h"
#include "softgpu/device/key_value.h"
#include "softgpu/tools/command.h"

namespace softgpu::tools {
namespace {

Result<Profile> load_profile(const std::string& name) {
  const auto text = load_profile_text(name);
  if (!text) return failure(text.error());
  return parse_profile(*text);
}

}  // namespace

Result<unsigned> gpu_of(const CommandLine& line, const Machine& machine) {
  const auto option = line.options.find("gpu");
  if (option == line.options.end()) return 0;
  const auto number = parse_number("--gpu", option->second, 0, machine.device_count - 1);
  if (!number) return failure(number.error());
  return static_cast<unsigned>(*number);
}

bool has_clients(const Machine& machine) {
  const auto clients = Clients::open(machine);
  if (!clients) return false;
  for (std::uint32_t slot = 0; slot < kMaxClients; ++slot) {
    if (clients->live(slot)) return true;
  }
  return false;
}

int add_gpu(Arguments arguments) {
  const auto line = parse_command_line(arguments, {"profile"});
  if (!line) return fail(line.error());
  if (!line->words.empty() || !line->has("profile")) return fail("usage: softgpu add-gpu --profile NAME");
  const auto profile = load_profile(line->options.find("profile")->second);
  if (!profile) return fail(profile.error());
  const auto changed = change_machine([&](Machine& machine) -> Status {
    if (machine.device_count == kMaxDevices) {
      return failure("the machine has " + std::to_string(kMaxDevices) + " devices, the most it can have");
    }
    machine.profiles.push_back(*profile);
    ++machine.device_count;
    return {};
  });
  return changed ? 0 : fail(changed.error());
}

// The device starts afresh: its files are made again, in the size of the new profile.
int set_profile(Arguments arguments) {
  const auto line = parse_command_line(arguments, {"gpu"});
  if (!line) return fail(line.error());
  if (line->words.size() != 1) return fail("usage: softgpu set-profile NAME [--gpu N]");
  const auto profile = load_profile(line->words.front());
  if (!profile) return fail(profile.error());
  const auto changed = change_machine([&](Machine& machine) -> Status {
    const auto gpu = gpu_of(*line, machine);
    if (!gpu) return failure(gpu.error());
    if (has_clients(machine)) return failure("the machine is used by processes (softgpu smi); end them first");
    machine.profiles[*gpu] = *profile;
    std::error_code error;
    for (const char* what : {"control", "memory", "settings"}) {
      std::filesystem::remove(device_file(machine, *gpu, what), error);
      if (error) return failure("cannot remove " + device_file(machine, *gpu, what) + ": " + error.message());
    }
    return {};
  });
  return changed ? 0 : fail(changed.error());
}

}  // namespace softgpu::tools
