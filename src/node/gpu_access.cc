#include "node/gpu_access.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <utility>

#include "node/shared_folder.h"

extern char** environ;

namespace fairlead {
namespace {

constexpr std::string_view kDriverPrefixes[] = {"CUDA_", "SOFTGPU_"};
constexpr const char* kSoftwareGpuHome = "SOFTGPU_HOME";
constexpr const char* kLibraryTarget = "/opt/gpu/lib";

void pass_driver_variables(std::map<std::string, std::string>& environment) {
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view variable(*entry);
    const std::size_t equals = variable.find('=');
    for (const std::string_view prefix : kDriverPrefixes) {
      if (equals == std::string_view::npos || !variable.starts_with(prefix)) continue;
      environment.emplace(variable.substr(0, equals), variable.substr(equals + 1));
    }
  }
}

void bind_device_files(std::vector<InstanceSpec::Bind>& binds) {
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator("/dev", ignored)) {
    const std::string path = entry.path();
    if (entry.path().filename().string().starts_with("nvidia")) binds.push_back({path, path, true});
  }
}

}  // namespace

GpuLibrary system_gpu_library(std::string dir) {
  return {std::move(dir), {}};
}

Result<GpuLibrary> software_gpu_library(std::string dir) {
  const char* configured = std::getenv(kSoftwareGpuHome);
  std::error_code error;
  const std::string home = configured != nullptr ? std::filesystem::absolute(configured, error).string()
                                                 : fmt::format("/dev/shm/softgpu-{}", static_cast<unsigned>(geteuid()));
  if (Status shared = share_with_functions(home); !shared) return fail(shared.error());
  setenv(kSoftwareGpuHome, home.c_str(), 1);
  // Functions write the tables of a device, so a node must be able to start after they have damaged them.
  setenv("SOFTGPU_DAMAGED", "renew", 0);
  return GpuLibrary{std::move(dir), {home}};
}

GpuAccess container_gpu_access(const GpuAccess& access, std::uint64_t index) {
  GpuAccess result{.binds = access.binds, .environment = access.environment, .cdi = {}};
  result.environment["CUDA_VISIBLE_DEVICES"] = std::to_string(index);
  if (!access.cdi) return result;
  std::optional<CdiEdits> edits = access.cdi->edits_for(std::to_string(index));
  if (!edits) return result;
  result.binds = std::move(edits->binds);
  for (const auto& [name, value] : edits->environment) result.environment[name] = value;
  result.environment["CUDA_VISIBLE_DEVICES"] = std::to_string(0);  // all it sees is the one
  return result;
}

GpuAccess gpu_access(const GpuLibrary& library) {
  GpuAccess access;
  // The libraries of a folder of its own (the software GPU's) are no machine's driver.
  if (library.dir.empty()) access.cdi = find_cdi({"/etc/cdi", "/var/run/cdi"}, "nvidia.com/gpu");
  pass_driver_variables(access.environment);
  bind_device_files(access.binds);
  if (!library.dir.empty()) {
    access.binds.push_back({library.dir, kLibraryTarget, false});
    access.environment["LD_LIBRARY_PATH"] = std::string(kLibraryTarget) + ":/var/task:/var/task/lib:/opt/lib";
  }
  for (const std::string& dir : library.shared_dirs) access.binds.push_back({dir, dir, true});
  return access;
}

}  // namespace fairlead
