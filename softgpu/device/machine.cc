#include "softgpu/device/machine.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <sstream>

#include "softgpu/device/files.h"
#include "softgpu/device/key_value.h"

namespace softgpu {
namespace {

// The profile's text follows this line in the description, so that a state folder stays valid when profiles change.
constexpr std::string_view kProfileMarker = "--- profile\n";
constexpr std::uint64_t kDescriptionVersion = 1;

std::string environment(const char* name, const char* fallback) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0' ? value : fallback;
}

Result<Mode> parse_mode(std::string_view text) {
  if (text == "fast") return Mode::kFast;
  if (text == "model") return Mode::kModel;
  return failure("mode is '" + std::string(text) + "': expected fast or model");
}

Result<double> parse_scale(const std::string& text) {
  char* end = nullptr;
  const double scale = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != '\0' || !(scale >= 0 && scale <= 1e6)) {
    return failure("time_scale is '" + text + "': expected a number between 0 and 1000000");
  }
  return scale;
}

Status set_field(Machine& machine, const std::string& key, const std::string& value) {
  const auto set_number = [&](auto& field, std::uint64_t low, std::uint64_t high) -> Status {
    const auto number = parse_number(key, value, low, high);
    if (!number) return failure(number.error());
    field = static_cast<std::remove_reference_t<decltype(field)>>(*number);
    return {};
  };
  std::uint64_t version = 0;
  if (key == "version") return set_number(version, kDescriptionVersion, kDescriptionVersion);
  if (key == "id") return set_number(machine.id, 0, UINT64_MAX);
  if (key == "devices") return set_number(machine.device_count, 1, kMaxDevices);
  if (key == "memory_scale") return set_number(machine.memory_scale, 1, 4096);
  if (key == "mode") {
    const auto mode = parse_mode(value);
    if (!mode) return failure(mode.error());
    machine.mode = *mode;
    return {};
  }
  if (key == "time_scale") {
    const auto scale = parse_scale(value);
    if (!scale) return failure(scale.error());
    machine.time_scale = *scale;
    return {};
  }
  return failure(key + " is not a key of a machine's description");
}

Result<Machine> parse_description(std::string_view text) {
  const auto marker = text.find(kProfileMarker);
  if (marker == std::string_view::npos) return failure("the profile is missing");
  const auto values = parse_key_values(text.substr(0, marker));
  if (!values) return failure(values.error());
  Machine machine;
  for (const char* key : {"version", "id", "devices", "mode", "time_scale", "memory_scale"}) {
    if (!values->contains(key)) return failure(std::string(key) + " is missing");
  }
  for (const auto& [key, value] : *values) {
    if (const auto set = set_field(machine, key, value); !set) return failure(set.error());
  }
  auto profile = parse_profile(text.substr(marker + kProfileMarker.size()));
  if (!profile) return failure("profile: " + profile.error());
  machine.profile = std::move(*profile);
  return machine;
}

Result<std::string> describe_from_environment() {
  const auto profile = load_profile_text(environment("SOFTGPU_PROFILE", "v100-16"));
  if (!profile) return failure("SOFTGPU_PROFILE: " + profile.error());
  std::ostringstream text;
  text << "version = " << kDescriptionVersion << "\nid = " << random_number()
       << "\ndevices = " << environment("SOFTGPU_DEVICES", "1") << "\nmode = " << environment("SOFTGPU_MODE", "fast")
       << "\ntime_scale = " << environment("SOFTGPU_TIME_SCALE", "1")
       << "\nmemory_scale = " << environment("SOFTGPU_MEMORY_SCALE", "1") << "\n"
       << kProfileMarker << *profile;
  if (const auto machine = parse_description(text.str()); !machine) {
    return failure("the SOFTGPU_ environment variables: " + machine.error());
  }
  return text.str();
}

// The default folder is private to its user; an explicit one has the permissions of the caller's umask.
Status make_home(const std::string& home) {
  const mode_t mode = std::getenv("SOFTGPU_HOME") != nullptr ? 0777 : 0700;
  if (::mkdir(home.c_str(), mode) == 0 || errno == EEXIST) return {};
  return failure("cannot create " + home + ": " + std::strerror(errno));
}

}  // namespace

std::string machine_home() {
  return environment("SOFTGPU_HOME", ("/dev/shm/softgpu-" + std::to_string(::getuid())).c_str());
}

Result<Machine> open_machine() {
  const std::string home = machine_home();
  const std::string path = home + "/machine";
  if (::access(path.c_str(), F_OK) != 0) {
    const auto description = describe_from_environment();
    if (!description) return failure(description.error());
    if (const auto made = make_home(home); !made) return failure(made.error());
    if (const auto created = create_file_once(path, *description); !created) return failure(created.error());
  }
  const auto text = read_file(path);
  if (!text) return failure(text.error());
  auto machine = parse_description(*text);
  if (!machine) return failure(path + ": " + machine.error() + "; run `softgpu reset` to start afresh");
  machine->home = home;
  return machine;
}

std::string device_uuid(const Machine& machine, unsigned device) {
  std::string bytes = "softgpu";
  bytes.push_back(static_cast<char>(device));
  bytes.append(reinterpret_cast<const char*>(&machine.id), sizeof machine.id);
  return bytes;
}

std::string uuid_text(const Machine& machine, unsigned device) {
  constexpr char kHex[] = "0123456789abcdef";
  const std::string bytes = device_uuid(machine, device);
  std::string text = "GPU-";
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += kHex[static_cast<unsigned char>(bytes[i]) / 16];
    text += kHex[static_cast<unsigned char>(bytes[i]) % 16];
  }
  return text;
}

std::string pci_bus_id(unsigned device) {
  constexpr char kHex[] = "0123456789ABCDEF";
  const unsigned bus = device + 1;
  return std::string("0000:") + kHex[bus / 16] + kHex[bus % 16] + ":00.0";
}

}  // namespace softgpu
