// libFuzzer: the texts that describe a machine to its processes, which users edit and other versions wrote. Each is read,
// or refused with an error, and what was read can be written and read again. The first byte of the input says what the
// rest is:
//   M  the machine's description, with its profiles; what MIG makes of them
//   S  the settings of a GPU: compute mode and MIG instances
//   D  the settings of the MPS daemon
//   L  CUDA_MPS_PINNED_DEVICE_MEM_LIMIT
//   V  CUDA_VISIBLE_DEVICES, on a machine that has MIG instances
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "softgpu/device/mig/gpu_settings.h"
#include "softgpu/device/time/mps.h"
#include "softgpu/driver/visible_devices.h"

namespace {

using softgpu::Machine;

void require(bool condition) {
  if (!condition) std::abort();
}

// Whether there is a value; an error must say something.
template <typename T>
bool succeeded(const softgpu::Result<T>& result) {
  require(result.has_value() || !result.error().empty());
  return result.has_value();
}

// A state folder of its own; SOFTGPU_HOME is left pointing to it.
std::string make_home(const char* name) {
  const auto path = std::filesystem::temp_directory_path() / (std::string("softgpu-fuzz-") + name);
  std::filesystem::remove_all(path);
  std::filesystem::create_directories(path);
  ::setenv("SOFTGPU_HOME", path.c_str(), 1);
  return path;
}

void write(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
}

Machine make_machine(const char* name) {
  make_home(name);
  ::setenv("SOFTGPU_PROFILE", "a100-40,v100-16", 1);
  const auto machine = softgpu::open_machine();
  require(succeeded(machine));
  return *machine;
}

// GPU 0 has a small instance with one compute instance and a large one with two.
Machine make_mig_machine() {
  const Machine machine = make_machine("mig");
  softgpu::GpuSettings settings = *softgpu::read_settings(machine, 0);
  settings.mig.restore_mode(true, true);
  const softgpu::MigGeometry& geometry = softgpu::mig_geometry(machine, 0);
  const auto small = settings.mig.create(*geometry.find("1g.5gb"));
  const auto large = settings.mig.create(*geometry.find("3g.20gb"));
  require(small && large);
  require(settings.mig.create_compute(*small, 1, {1}).has_value());
  require(settings.mig.create_compute(*large, 1, {2}).has_value());
  require(settings.mig.create_compute(*large, 2, {3}).has_value());
  require(softgpu::write_settings(machine, 0, settings).has_value());
  return machine;
}

void cut_into_instances(const softgpu::MigGeometry& geometry) {
  softgpu::MigState mig(geometry);
  mig.restore_mode(true, true);
  for (const softgpu::MigProfile& profile : geometry.profiles) {
    while (const auto id = mig.create(profile)) {
      require(mig.find(*id) != nullptr);
      while (mig.create_compute(*id, 1, {})) {
      }
    }
  }
}

void read_description(const std::string& text) {
  static const std::string home = make_home("machine");
  ::setenv("SOFTGPU_HOME", home.c_str(), 1);
  write(home + "/machine", text);
  const auto machine = softgpu::open_machine();
  if (!succeeded(machine)) return;
  for (unsigned gpu = 0; gpu < machine->device_count; ++gpu) cut_into_instances(softgpu::mig_geometry(*machine, gpu));
  require(succeeded(softgpu::change_machine([](Machine&) { return softgpu::Status(); })));
  require(succeeded(softgpu::open_machine()));
}

void read_gpu_settings(const std::string& text) {
  static const Machine machine = make_machine("settings");
  write(machine.path("device0.settings"), text);
  const auto settings = softgpu::read_settings(machine, 0);
  if (!succeeded(settings)) return;
  const auto parts = softgpu::mig_parts(machine, 0, settings->mig);
  require(succeeded(softgpu::write_settings(machine, 0, *settings)));
  const auto again = softgpu::read_settings(machine, 0);
  require(succeeded(again) && softgpu::mig_parts(machine, 0, again->mig).size() == parts.size());
}

void read_daemon(const std::string& text) {
  static const Machine machine = make_machine("daemon");
  write(machine.path("mps"), text);
  const auto mps = softgpu::read_mps(machine);
  if (!succeeded(mps)) return;
  require(mps->has_value() && succeeded(softgpu::start_mps(machine, **mps)));
  const auto again = softgpu::read_mps(machine);
  require(succeeded(again) && again->has_value() && (*again)->memory_limits == (*mps)->memory_limits);
}

void read_visible_devices(const std::string& text) {
  static const Machine machine = make_mig_machine();
  const auto parts = softgpu::visible_devices(machine, text.c_str(), false);
  require(succeeded(parts));
  for (std::size_t i = 0; i < parts->size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) require((*parts)[i].uuid != (*parts)[j].uuid);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return -1;
  const std::string text(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0]) {
    case 'M': read_description(text); return 0;
    case 'S': read_gpu_settings(text); return 0;
    case 'D': read_daemon(text); return 0;
    case 'L': succeeded(softgpu::parse_memory_limits(text)); return 0;
    case 'V': read_visible_devices(text); return 0;
    default: return -1;  // not kept
  }
}
