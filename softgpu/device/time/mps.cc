#include "softgpu/device/time/mps.h"

#include <fcntl.h>
#include <sys/file.h>
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

constexpr std::uint64_t kLargestLimit = std::uint64_t{1} << 50;

std::string format_limits(const std::map<unsigned, std::uint64_t>& limits) {
  std::string text;
  for (const auto& [device, bytes] : limits) {
    text += (text.empty() ? "" : ",") + std::to_string(device) + "=" + std::to_string(bytes >> 10) + "K";
  }
  return text;
}

std::string format_devices(const std::set<unsigned>& devices) {
  std::string text;
  for (const unsigned device : devices) text += (text.empty() ? "" : ",") + std::to_string(device);
  return text;
}

Result<std::set<unsigned>> parse_devices(const std::string& text) {
  std::set<unsigned> devices;
  std::istringstream entries(text);
  for (std::string entry; std::getline(entries, entry, ',');) {
    const auto device = parse_number("devices", entry, 0, kMaxDevices - 1);
    if (!device) return failure(device.error());
    devices.insert(static_cast<unsigned>(*device));
  }
  return devices;
}

Result<Mps> parse_mps(const std::string& text) {
  const auto values = parse_key_values(text);
  if (!values) return failure(values.error());
  Mps mps;
  for (const auto& [key, value] : *values) {
    const auto number = [&, &name = key, &written = value](std::uint64_t low, std::uint64_t high,
                                                           auto& field) -> Status {
      const auto parsed = parse_number(name, written, low, high);
      if (!parsed) return failure(parsed.error());
      field = static_cast<std::remove_reference_t<decltype(field)>>(*parsed);
      return {};
    };
    Status set;
    if (key == "pipe_directory") {
      mps.pipe_directory = value;
    } else if (key == "default_percentage") {
      set = number(1, 100, mps.default_percentage);
    } else if (key == "max_contexts") {
      set = number(1, kMaxClients, mps.max_contexts);
    } else if (key == "faults_shared") {
      set = number(0, 1, mps.faults_shared);
    } else if (key == "memory_limits") {
      auto limits = parse_memory_limits(value);
      if (!limits) return failure(limits.error());
      mps.memory_limits = std::move(*limits);
    } else if (key == "devices") {
      auto devices = parse_devices(value);
      if (!devices) return failure(devices.error());
      mps.devices = std::move(*devices);
    } else {
      set = failure(key + " is not a key of this file");
    }
    if (!set) return failure(set.error());
  }
  for (const char* key : {"pipe_directory", "default_percentage", "max_contexts", "faults_shared", "memory_limits"}) {
    if (!values->contains(key)) return failure(std::string(key) + " is missing");
  }
  return mps;
}

// Directories are compared as text; a trailing '/' does not count.
std::string directory_of(std::string text) {
  while (text.size() > 1 && text.back() == '/') text.pop_back();
  return text.empty() ? Mps().pipe_directory : text;
}

Result<unsigned> client_percentage(const Mps& mps, const std::string& text) {
  if (text.empty()) return mps.default_percentage;
  const auto number = parse_number("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", text, 1, 100);
  if (!number) return failure(number.error());
  return std::min(static_cast<unsigned>(*number), mps.default_percentage);
}

Result<std::uint64_t> client_memory_limit(const Mps& mps, const std::string& text, unsigned device, unsigned ordinal) {
  const auto own = parse_memory_limits(text);
  if (!own) return failure("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT: " + own.error());
  if (const auto found = own->find(ordinal); found != own->end()) return found->second;
  const auto found = mps.memory_limits.find(device);
  return found != mps.memory_limits.end() ? found->second : 0;
}

}  // namespace

Result<std::map<unsigned, std::uint64_t>> parse_memory_limits(const std::string& text) {
  std::map<unsigned, std::uint64_t> limits;
  std::istringstream entries(text);
  for (std::string entry; std::getline(entries, entry, ',');) {
    const auto wrong = [&] {
      return failure("'" + entry + "' is no limit: expected a device and its memory, as in 0=4G or 0=512M");
    };
    const auto equals = entry.find('=');
    const std::string_view units = "KMG";
    const auto unit = entry.empty() ? std::string::npos : units.find(entry.back());
    if (equals == std::string::npos || unit == std::string::npos) return wrong();
    const auto device = parse_number("device", std::string_view(entry).substr(0, equals), 0, kMaxDevices - 1);
    const auto count = parse_number("memory", std::string_view(entry).substr(equals + 1, entry.size() - equals - 2), 1,
                                    kLargestLimit >> (10 * (unit + 1)));
    if (!device || !count || !limits.emplace(*device, *count << (10 * (unit + 1))).second) return wrong();
  }
  return limits;
}

std::string mps_text(const Mps& mps) {
  std::ostringstream text;
  text << "pipe_directory = " << directory_of(mps.pipe_directory) << "\ndefault_percentage = " << mps.default_percentage
       << "\nmax_contexts = " << mps.max_contexts << "\nfaults_shared = " << (mps.faults_shared ? 1 : 0)
       << "\nmemory_limits = " << format_limits(mps.memory_limits) << "\ndevices = " << format_devices(mps.devices)
       << "\n";
  return text.str();
}

// The daemon holds its lock for as long as it lives: who can share it finds no daemon. A container that sees the
// directory at another place is a client like any other.
Result<std::optional<Mps>> read_mps_of(const std::string& pipe_directory) {
  const std::string directory = directory_of(pipe_directory) + "/";
  const int lock = ::open((directory + kMpsLockFile).c_str(), O_RDONLY | O_CLOEXEC);
  if (lock < 0) return std::nullopt;
  const bool lives = ::flock(lock, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  ::close(lock);
  const std::string path = directory + kMpsSettingsFile;
  if (!lives || ::access(path.c_str(), F_OK) != 0) return std::nullopt;
  const auto text = read_file(path);
  if (!text) return failure(text.error());
  auto mps = parse_mps(*text);
  if (!mps) return failure(path + ": " + mps.error() + "; restart the daemon");
  mps->pipe_directory = directory_of(pipe_directory);
  return std::optional<Mps>(std::move(*mps));
}

Result<std::optional<Mps>> find_mps(const Machine& machine, const MpsEnvironment& environment) {
  auto daemon = read_mps_of(environment.pipe_directory);
  if (!daemon || *daemon) return daemon;
  return read_mps(machine);
}

Result<std::optional<Mps>> read_mps(const Machine& machine) {
  const std::string path = machine.path("mps");
  if (::access(path.c_str(), F_OK) != 0) return std::nullopt;
  const auto text = read_file(path);
  if (!text) return failure(text.error());
  auto mps = parse_mps(*text);
  if (!mps) return failure(path + ": " + mps.error() + "; run `softgpu mps start` or `softgpu reset`");
  return std::optional<Mps>(std::move(*mps));
}

Status start_mps(const Machine& machine, const Mps& mps) {
  return replace_file(machine.path("mps"), mps_text(mps));
}

Status stop_mps(const Machine& machine) {
  const std::string path = machine.path("mps");
  if (::unlink(path.c_str()) == 0 || errno == ENOENT) return {};
  return failure("cannot remove " + path + ": " + std::strerror(errno));
}

MpsEnvironment mps_environment() {
  const auto read = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value != nullptr ? value : "");
  };
  return {read("CUDA_MPS_PIPE_DIRECTORY"), read("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"),
          read("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"), read("CUDA_MPS_CLIENT_PRIORITY")};
}

Result<ClientShare> client_share(const Machine& machine, const std::optional<Mps>& mps,
                                 const MpsEnvironment& environment, unsigned device, unsigned ordinal) {
  ClientShare share;
  share.sms = machine.profile(device).sm_count;
  if (!mps || directory_of(environment.pipe_directory) != mps->pipe_directory) return share;
  if (!mps->devices.empty() && !mps->devices.contains(device)) return share;
  const auto percentage = client_percentage(*mps, environment.percentage);
  if (!percentage) return failure(percentage.error());
  const auto limit = client_memory_limit(*mps, environment.memory_limits, device, ordinal);
  if (!limit) return failure(limit.error());
  if (!environment.priority.empty()) {
    const auto priority = parse_number("CUDA_MPS_CLIENT_PRIORITY", environment.priority, 0, 1);
    if (!priority) return failure(priority.error());
    share.below_normal = *priority == 1;
  }
  share.mps = true;
  share.faults_shared = mps->faults_shared;
  share.sms = (share.sms * *percentage + 99) / 100;
  share.memory_limit = *limit / machine.memory_scale;
  share.max_contexts = mps->max_contexts;
  return share;
}

}  // namespace softgpu
