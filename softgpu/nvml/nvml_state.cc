#include "softgpu/nvml/nvml_state.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <ctime>

#include "softgpu/device/shared_events.h"
#include "softgpu/device/state_folder.h"
#include "softgpu/mutex.h"

namespace softgpu {
namespace {

struct Shared {
  Mutex mutex;
  unsigned references SOFTGPU_GUARDED_BY(mutex) = 0;
  NvmlState* state SOFTGPU_GUARDED_BY(mutex) = nullptr;  // never deleted, so that the slots file stays open
  std::atomic<NvmlState*> initialised = nullptr;
};

Shared& shared() {
  static auto* instance = new Shared;
  return *instance;
}

template <typename Items, typename Handle>
bool contains(const Items& items, Handle handle) {
  return std::any_of(items.begin(), items.end(), [&](const auto& item) { return &item == handle; });
}

}  // namespace

namespace {

// Of all that a program's start reads: else each fails, and whoever asks here is told that the device is well.
std::string damage_of(const Machine& machine, const DeviceView& view) {
  const std::string damage = view.damage();
  return damage.empty() ? SharedEvents::damage(machine) : damage;
}

// The damage is told once for each device: monitors ask several times a second.
bool is_damaged(const Machine& machine, nvmlDevice_t device) {
  const std::string damage = damage_of(machine, *device->view);
  if (damage.empty()) return false;
  if (!device->damage_told.exchange(true)) {
    std::fprintf(stderr, "softgpu: the shared state is damaged: %s; end its processes and run `softgpu reset`\n",
                 damage.c_str());
  }
  return true;
}

// Every error that a damaged file causes ends in this advice.
bool is_damage(const std::string& error) {
  return error.find("run `softgpu reset`") != std::string::npos;
}

}  // namespace

Result<NvmlState*> NvmlState::open() {
  auto opened = open_once();
  if (opened || !renews_damaged_state() || !is_damage(opened.error())) return opened;
  const std::string home = machine_home();
  if (!state_in_use(home)) {
    std::fprintf(stderr, "softgpu: %s; nobody uses %s, so it is made anew\n", opened.error().c_str(), home.c_str());
    clear_state(home);
    return open_once();
  }
  return failure(opened.error() + "; it is not made anew because processes use it");
}

Result<NvmlState*> NvmlState::open_once() {
  auto machine = open_machine();
  if (!machine) return failure(machine.error());
  auto clients = Clients::open(*machine);
  if (!clients) return failure(clients.error());
  auto state = std::unique_ptr<NvmlState>(new NvmlState(std::move(*machine), *clients));
  for (unsigned index = 0; index < state->machine_.device_count; ++index) {
    auto view = DeviceView::open(state->machine_, state->clients_, index);
    if (!view) return failure(view.error());
    auto device = std::make_unique<nvmlDevice_st>();
    device->gpu = device.get();
    device->view = std::move(*view);
    if (const std::string damage = damage_of(state->machine_, *device->view); !damage.empty()) {
      return failure(damage + "; run `softgpu reset`");
    }
    state->gpus_.push_back(std::move(device));
  }
  return state.release();
}

nvmlReturn_t NvmlState::retain() {
  Shared& all = shared();
  const LockGuard guard(all.mutex);
  if (all.state == nullptr) {
    const auto opened = open();
    if (!opened) {
      std::fprintf(stderr, "softgpu: %s\n", opened.error().c_str());
      return NVML_ERROR_DRIVER_NOT_LOADED;
    }
    all.state = *opened;
  }
  ++all.references;
  all.initialised.store(all.state);
  return NVML_SUCCESS;
}

nvmlReturn_t NvmlState::release() {
  Shared& all = shared();
  const LockGuard guard(all.mutex);
  if (all.references == 0) return NVML_ERROR_UNINITIALIZED;
  if (--all.references == 0) all.initialised.store(nullptr);
  return NVML_SUCCESS;
}

NvmlState* NvmlState::get() {
  return shared().initialised.load(std::memory_order_acquire);
}

nvmlDevice_t NvmlState::mig_device(nvmlDevice_t gpu, const Part& part) {
  const LockGuard guard(mutex_);
  for (nvmlDevice_st& known : mig_devices_) {
    if (known.part().uuid == part.uuid) return &known;
  }
  auto view = DeviceView::open(clients_, part);
  if (!view) return nullptr;
  nvmlDevice_st& made = mig_devices_.emplace_back();
  made.gpu = gpu;
  made.view = std::move(*view);
  return &made;
}

nvmlGpuInstance_t NvmlState::gpu_instance(nvmlDevice_t gpu, unsigned id) {
  const LockGuard guard(mutex_);
  for (nvmlGpuInstance_st& known : gpu_instances_) {
    if (known.gpu == gpu && known.id == id) return &known;
  }
  return &gpu_instances_.emplace_back(nvmlGpuInstance_st{gpu, id});
}

nvmlComputeInstance_t NvmlState::compute_instance(nvmlGpuInstance_t gpu_instance, unsigned id) {
  const LockGuard guard(mutex_);
  for (nvmlComputeInstance_st& known : compute_instances_) {
    if (known.gpu_instance == gpu_instance && known.id == id) return &known;
  }
  return &compute_instances_.emplace_back(nvmlComputeInstance_st{gpu_instance, id});
}

bool NvmlState::knows(nvmlDevice_t device) const {
  for (const auto& gpu : gpus_) {
    if (gpu.get() == device) return true;
  }
  const LockGuard guard(mutex_);
  return contains(mig_devices_, device);
}

bool NvmlState::knows(nvmlGpuInstance_t instance) const {
  const LockGuard guard(mutex_);
  return contains(gpu_instances_, instance);
}

bool NvmlState::knows(nvmlComputeInstance_t instance) const {
  const LockGuard guard(mutex_);
  return contains(compute_instances_, instance);
}

nvmlReturn_t check_device(nvmlDevice_t device) {
  NvmlState* state = NvmlState::get();
  if (state == nullptr) return NVML_ERROR_UNINITIALIZED;
  if (!state->knows(device)) return NVML_ERROR_INVALID_ARGUMENT;
  if (is_damaged(state->machine(), device) || device->view->faults().lost()) return NVML_ERROR_GPU_IS_LOST;
  if (!device->is_mig()) return NVML_SUCCESS;
  std::optional<GpuSettings> settings;
  SOFTGPU_NVML_TRY(settings_of(device, settings));
  const GpuInstance* instance = settings->mig.find(device->part().mig->gpu_instance);
  const ComputeInstance* compute = instance ? instance->find(device->part().mig->compute_instance) : nullptr;
  return compute != nullptr && compute->uuid == device->part().uuid ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT;
}

nvmlReturn_t check_gpu(nvmlDevice_t device) {
  SOFTGPU_NVML_TRY(check_device(device));
  return device->is_mig() ? NVML_ERROR_NOT_SUPPORTED : NVML_SUCCESS;
}

nvmlReturn_t settings_of(nvmlDevice_t device, std::optional<GpuSettings>& settings) {
  auto read = read_settings(NvmlState::get()->machine(), device->index());
  if (!read) {
    std::fprintf(stderr, "softgpu: %s\n", read.error().c_str());
    return NVML_ERROR_UNKNOWN;
  }
  settings = std::move(*read);
  return NVML_SUCCESS;
}

std::vector<nvmlDevice_t> mig_devices_of(nvmlDevice_t gpu) {
  std::vector<nvmlDevice_t> devices;
  std::optional<GpuSettings> settings;
  if (settings_of(gpu, settings) != NVML_SUCCESS) return devices;
  NvmlState* state = NvmlState::get();
  for (const Part& part : mig_parts(state->machine(), gpu->index(), settings->mig)) {
    if (nvmlDevice_t device = state->mig_device(gpu, part); device != nullptr) devices.push_back(device);
  }
  return devices;
}

double busy_of(nvmlDevice_t device) {
  double busy = device->view->sample().busy;
  if (device->is_mig()) return busy;
  for (const nvmlDevice_t mig : mig_devices_of(device)) {
    const auto share = static_cast<double>(mig->profile().sm_count) / static_cast<double>(device->profile().sm_count);
    busy += mig->view->sample().busy * share;
  }
  return std::min(1.0, busy);
}

unsigned long long timestamp_us(std::uint64_t monotonic_now_ns) {
  timespec now = {};
  ::clock_gettime(CLOCK_REALTIME, &now);
  const auto realtime_ns =
      static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(now.tv_nsec);
  return (realtime_ns - (monotonic_ns() - monotonic_now_ns)) / 1000;
}

nvmlReturn_t write_text(const std::string& text, char* buffer, unsigned length) {
  if (buffer == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  if (length <= text.size()) return NVML_ERROR_INSUFFICIENT_SIZE;
  std::memcpy(buffer, text.c_str(), text.size() + 1);
  return NVML_SUCCESS;
}

}  // namespace softgpu
