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
#include "softgpu/device/state_folder.h"

namespace softgpu {
namespace {

// A profile's text follows each such line in the description, so that a state folder stays valid when profiles change.
constexpr std::string_view kProfileMarker = "--- profile\n";
constexpr Mode kModes[] = {Mode::kFast, Mode::kModel, Mode::kCharge};

std::string environment(const char* name, const char* fallback) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0' ? value : fallback;
}

Result<Mode> parse_mode(std::string_view text) {
  for (const Mode mode : kModes) {
    if (text == mode_name(mode)) return mode;
  }
  return failure("mode is '" + std::string(text) + "': expected fast, model or charge");
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
  if (key == "version") return set_number(version, kStateVersion, kStateVersion);
  if (key == "id") return set_number(machine.id, 0, UINT64_MAX);
  if (key == "devices") return set_number(machine.device_count, 1, kMaxDevices);
  if (key == "memory_scale") return set_number(machine.memory_scale, 1, 4096);
  if (key == "time_slice_us") return set_number(machine.time_slice_us, 0, 10'000'000);
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

// The texts after the markers; the part before the first is left in `text`.
std::vector<std::string_view> split_profiles(std::string_view& text) {
  std::vector<std::string_view> profiles;
  for (auto marker = text.rfind(kProfileMarker); marker != std::string_view::npos;
       marker = text.rfind(kProfileMarker)) {
    profiles.insert(profiles.begin(), text.substr(marker + kProfileMarker.size()));
    text = text.substr(0, marker);
  }
  return profiles;
}

Result<Machine> parse_description(std::string_view text) {
  const auto profiles = split_profiles(text);
  const auto values = parse_key_values(text);
  if (!values) return failure(values.error());
  Machine machine;
  for (const char* key : {"version", "id", "devices", "mode", "time_scale", "memory_scale", "time_slice_us"}) {
    if (!values->contains(key)) return failure(std::string(key) + " is missing");
  }
  for (const auto& [key, value] : *values) {
    if (const auto set = set_field(machine, key, value); !set) return failure(set.error());
  }
  if (profiles.size() != machine.device_count) {
    return failure("there are " + std::to_string(profiles.size()) + " profiles for " +
                   std::to_string(machine.device_count) + " devices");
  }
  for (const std::string_view profile_text : profiles) {
    auto profile = parse_profile(profile_text);
    if (!profile) return failure("profile: " + profile.error());
    machine.profiles.push_back(std::move(*profile));
  }
  return machine;
}

// What has to be text because it may not be valid yet.
struct Fields {
  std::string id, devices, mode, time_scale, memory_scale, time_slice_us;
  std::vector<std::string> profiles;
};

std::string describe(const Fields& fields) {
  std::ostringstream text;
  text << "version = " << kStateVersion << "\nid = " << fields.id << "\ndevices = " << fields.devices
       << "\nmode = " << fields.mode << "\ntime_scale = " << fields.time_scale
       << "\nmemory_scale = " << fields.memory_scale << "\ntime_slice_us = " << fields.time_slice_us << "\n";
  for (const std::string& profile : fields.profiles) text << kProfileMarker << profile;
  return text.str();
}

std::string describe(const Machine& machine) {
  std::ostringstream time_scale;
  time_scale.precision(17);
  time_scale << machine.time_scale;
  Fields fields = {std::to_string(machine.id),
                   std::to_string(machine.device_count),
                   std::string(mode_name(machine.mode)),
                   time_scale.str(),
                   std::to_string(machine.memory_scale),
                   std::to_string(machine.time_slice_us),
                   {}};
  for (const Profile& profile : machine.profiles) fields.profiles.push_back(profile.text);
  return describe(fields);
}

Result<std::vector<std::string>> load_profiles(const std::string& list) {
  std::vector<std::string> texts;
  std::istringstream names(list);
  for (std::string name; std::getline(names, name, ',');) {
    auto text = load_profile_text(name);
    if (!text) return failure("SOFTGPU_PROFILE: " + text.error());
    texts.push_back(std::move(*text));
  }
  if (texts.empty()) return failure("SOFTGPU_PROFILE names no profile");
  return texts;
}

Result<std::string> describe_from_environment() {
  auto profiles = load_profiles(environment("SOFTGPU_PROFILE", "v100-16"));
  if (!profiles) return failure(profiles.error());
  Fields fields = {std::to_string(random_number()),
                   environment("SOFTGPU_DEVICES", std::to_string(profiles->size()).c_str()),
                   environment("SOFTGPU_MODE", "fast"),
                   environment("SOFTGPU_TIME_SCALE", "1"),
                   environment("SOFTGPU_MEMORY_SCALE", "1"),
                   environment("SOFTGPU_TIME_SLICE_US", "0"),
                   std::move(*profiles)};
  const auto devices = parse_number("devices", fields.devices, fields.profiles.size(), kMaxDevices);
  if (!devices) return failure("the SOFTGPU_ environment variables: " + devices.error());
  fields.profiles.resize(*devices, fields.profiles.back());
  std::string text = describe(fields);
  if (const auto machine = parse_description(text); !machine) {
    return failure("the SOFTGPU_ environment variables: " + machine.error());
  }
  return text;
}

// The default folder is private to its user; an explicit one has the permissions of the caller's umask.
Status make_home(const std::string& home) {
  const mode_t mode = std::getenv("SOFTGPU_HOME") != nullptr ? 0777 : 0700;
  if (::mkdir(home.c_str(), mode) == 0 || errno == EEXIST) return {};
  return failure("cannot create " + home + ": " + std::strerror(errno));
}

Result<Machine> read_machine(const std::string& home) {
  const std::string path = home + "/machine";
  const auto text = read_file(path);
  if (!text) return failure(text.error());
  auto machine = parse_description(*text);
  if (!machine) return failure(path + ": " + machine.error() + "; run `softgpu reset` to start afresh");
  machine->home = home;
  return machine;
}

}  // namespace

std::string_view mode_name(Mode mode) {
  switch (mode) {
    case Mode::kFast: return "fast";
    case Mode::kModel: return "model";
    case Mode::kCharge: return "charge";
  }
  return "";
}

std::string machine_home() {
  return environment("SOFTGPU_HOME", ("/dev/shm/softgpu-" + std::to_string(::getuid())).c_str());
}

Result<Machine> open_machine() {
  const std::string home = machine_home();
  const std::string path = home + "/machine";
  if (const auto left = leave_other_version(home); !left) return failure(left.error());
  if (::access(path.c_str(), F_OK) != 0) {
    const auto description = describe_from_environment();
    if (!description) return failure(description.error());
    if (const auto made = make_home(home); !made) return failure(made.error());
    if (const auto created = create_file_once(path, *description); !created) return failure(created.error());
  }
  return read_machine(home);
}

Status change_machine(const std::function<Status(Machine&)>& change) {
  const std::string home = machine_home();
  if (const auto machine = open_machine(); !machine) return failure(machine.error());
  const FolderLock lock(home);
  auto machine = read_machine(home);  // again: it may have changed before the lock was taken
  if (!machine) return failure(machine.error());
  if (auto changed = change(*machine); !changed) return changed;
  return replace_file(machine->path("machine"), describe(*machine));
}

Uuid device_uuid(const Machine& machine, unsigned device) {
  Uuid uuid = {'s', 'o', 'f', 't', 'g', 'p', 'u', static_cast<unsigned char>(device)};
  std::memcpy(uuid.data() + 8, &machine.id, sizeof machine.id);
  return uuid;
}

std::string uuid_text(const Machine& machine, unsigned device) {
  return "GPU-" + uuid_string(device_uuid(machine, device));
}

std::string pci_bus_id(unsigned device) {
  constexpr char kHex[] = "0123456789ABCDEF";
  const unsigned bus = device + 1;
  return std::string("0000:") + kHex[bus / 16] + kHex[bus % 16] + ":00.0";
}

}  // namespace softgpu
