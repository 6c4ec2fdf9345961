#include "softgpu/device/mig/gpu_settings.h"

#include <unistd.h>

#include <sstream>

#include "softgpu/device/files.h"
#include "softgpu/device/key_value.h"
#include "softgpu/device/uuid.h"

namespace softgpu {
namespace {

constexpr std::string_view kGpuKey = "gpu_instance_";
constexpr std::string_view kComputeKey = "compute_instance_";

std::string settings_path(const Machine& machine, unsigned index) {
  return machine.path("device" + std::to_string(index) + ".settings");
}

// Reads all of `text` into `fields`; false when there is more or less.
template <typename... Fields>
bool scan(const std::string& text, Fields&... fields) {
  std::istringstream words(text);
  (words >> ... >> fields);
  return !words.fail() && (words >> std::ws).eof();
}

bool restore_gpu_instance(MigState& mig, const std::string& key, const std::string& value) {
  unsigned id = 0;
  unsigned start = 0;
  std::string name;
  if (!scan(key.substr(kGpuKey.size()), id) || !scan(value, name, start)) return false;
  const MigProfile* profile = mig.geometry().find(name);
  if (profile == nullptr) return false;
  const auto created = mig.create(*profile, start);
  return created && *created == id;
}

bool restore_compute_instance(MigState& mig, const std::string& key, const std::string& value) {
  unsigned gpu_instance = 0;
  char separator = 0;
  std::string uuid;
  ComputeInstance compute;
  if (!scan(key.substr(kComputeKey.size()), gpu_instance, separator, compute.id) || separator != '_' ||
      !scan(value, compute.start, compute.slices, uuid)) {
    return false;
  }
  const auto parsed = parse_uuid(uuid);
  if (!parsed) return false;
  compute.uuid = *parsed;
  return mig.restore_compute(gpu_instance, compute).has_value();
}

bool restore_mode(GpuSettings& settings, const KeyValues& values) {
  const auto mode = values.find("compute_mode");
  const auto mig = values.find("mig");
  unsigned number = 0;
  bool enabled = false;
  bool pending = false;
  if (mode == values.end() || mig == values.end()) return false;
  if (!scan(mode->second, number) || number == 1 || number > 3 || !scan(mig->second, enabled, pending)) return false;
  settings.compute_mode = static_cast<ComputeMode>(number);
  settings.mig.restore_mode(enabled, pending);
  return true;
}

bool restore(GpuSettings& settings, const KeyValues& values) {
  if (!restore_mode(settings, values)) return false;
  // Instances of the GPU first: those within them come before in the order of keys.
  for (const auto& [key, value] : values) {
    if (key.starts_with(kGpuKey) && !restore_gpu_instance(settings.mig, key, value)) return false;
  }
  for (const auto& [key, value] : values) {
    if (key.starts_with(kComputeKey) && !restore_compute_instance(settings.mig, key, value)) return false;
  }
  return true;
}

}  // namespace

const MigGeometry& mig_geometry(const Machine& machine, unsigned index) {
  return machine.profile(index).mig;
}

Result<GpuSettings> read_settings(const Machine& machine, unsigned index) {
  GpuSettings settings{ComputeMode::kDefault, MigState(mig_geometry(machine, index))};
  const std::string path = settings_path(machine, index);
  if (::access(path.c_str(), F_OK) != 0) return settings;
  const auto text = read_file(path);
  if (!text) return failure(text.error());
  const auto values = parse_key_values(*text);
  if (!values || !restore(settings, *values)) return failure(path + " is damaged; run `softgpu reset`");
  return settings;
}

Status write_settings(const Machine& machine, unsigned index, const GpuSettings& settings) {
  std::ostringstream text;
  text << "compute_mode = " << static_cast<unsigned>(settings.compute_mode) << "\nmig = " << settings.mig.enabled()
       << " " << settings.mig.pending() << "\n";
  for (const GpuInstance& gpu : settings.mig.instances()) {
    text << kGpuKey << gpu.id << " = " << gpu.profile->name << " " << gpu.start << "\n";
    for (const ComputeInstance& compute : gpu.compute) {
      text << kComputeKey << gpu.id << "_" << compute.id << " = " << compute.start << " " << compute.slices << " "
           << uuid_string(compute.uuid) << "\n";
    }
  }
  return replace_file(settings_path(machine, index), text.str());
}

}  // namespace softgpu
