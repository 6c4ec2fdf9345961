#include "decide/sharing/sharing_mode.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>

namespace fairlead {
namespace {

constexpr SharingMode kModes[] = {SharingMode::kNone, SharingMode::kMps, SharingMode::kMig};
constexpr std::size_t kOldClientLimit = 48;
constexpr std::size_t kClientLimit = 60;
constexpr std::pair<int, int> kClientLimitRaisedIn = {13, 1};

std::pair<int, int> parse_version(std::string_view text) {
  int major = 0;
  int minor = 0;
  const char* end = text.data() + text.size();
  const auto [dot, error] = std::from_chars(text.data(), end, major);
  if (error != std::errc() || dot == end || *dot != '.') return {0, 0};
  if (std::from_chars(dot + 1, end, minor).ec != std::errc()) return {0, 0};
  return {major, minor};
}

}  // namespace

std::string_view sharing_mode_name(SharingMode mode) {
  switch (mode) {
    case SharingMode::kNone: return "none";
    case SharingMode::kMps: return "mps";
    case SharingMode::kMig: return "mig";
  }
  return "unknown";
}

std::vector<std::string> sharing_mode_names() {
  std::vector<std::string> names;
  for (const SharingMode mode : kModes) names.emplace_back(sharing_mode_name(mode));
  return names;
}

Result<SharingMode> sharing_mode_from(std::string_view name) {
  for (const SharingMode mode : kModes) {
    if (sharing_mode_name(mode) == name) return mode;
  }
  return fail(Errc::kInvalidArgument, "the sharing mode is '{}', it must be one of {}", name,
              fmt::join(sharing_mode_names(), ", "));
}

std::size_t mps_client_limit(std::string_view cuda_version) {
  return parse_version(cuda_version) >= kClientLimitRaisedIn ? kClientLimit : kOldClientLimit;
}

std::map<std::string, std::string> share_environment(const InstanceShare& share) {
  std::map<std::string, std::string> variables{{"CUDA_VISIBLE_DEVICES", share.device_uuid}};
  if (share.mps_pipe_directory.empty()) return variables;
  variables["CUDA_MPS_PIPE_DIRECTORY"] = share.mps_pipe_directory;
  if (share.share.width_percent) {
    variables["CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"] = std::to_string(*share.share.width_percent);
  }
  if (share.share.memory) {  // of device 0 in the client's own numbering: it sees one
    variables["CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"] = fmt::format("0={}M", share.share.memory->count() >> 20);
  }
  return variables;
}

}  // namespace fairlead
