#include "gpu/nvml.h"

#include <algorithm>
#include <array>
#include <map>

#include "abi/nvml.h"
#include "abi/nvml_event.h"
#include "abi/nvml_mig.h"
#include "base/mutex.h"
#include "gpu/shared_library.h"

namespace fairlead {
namespace {

constexpr const char* kAdvice =
    "install the NVIDIA driver (Debian: nvidia-driver and libnvidia-ml1), or use the software GPU (--softgpu)";

std::string_view advice_for(nvmlReturn_t code) {
  switch (code) {
    case NVML_ERROR_DRIVER_NOT_LOADED: return ": load the kernel module (modprobe nvidia)";
    case NVML_ERROR_LIB_RM_VERSION_MISMATCH:
      return ": library and kernel module are of different versions, reload the module or reboot";
    case NVML_ERROR_NO_PERMISSION: return ": this user may not open /dev/nvidia*";
    case NVML_ERROR_GPU_IS_LOST: return ": the GPU fell off the bus, reset it or reboot (dmesg has the reason)";
    case NVML_ERROR_RESET_REQUIRED: return ": reset the GPU (nvidia-smi --gpu-reset)";
    default: return "";
  }
}

}  // namespace

struct Nvml::Library {
  explicit Library(SharedLibrary file) : shared(std::move(file)) {}

  Status bind_all() {
    for (const Status& status :
         {shared.bind(init, "nvmlInit_v2"), shared.bind(shutdown, "nvmlShutdown"),
          shared.bind(error_string, "nvmlErrorString"), shared.bind(driver_version, "nvmlSystemGetDriverVersion"),
          shared.bind(device_count, "nvmlDeviceGetCount_v2"),
          shared.bind(device_by_index, "nvmlDeviceGetHandleByIndex_v2"), shared.bind(name, "nvmlDeviceGetName"),
          shared.bind(uuid, "nvmlDeviceGetUUID"), shared.bind(memory, "nvmlDeviceGetMemoryInfo"),
          shared.bind(utilisation, "nvmlDeviceGetUtilizationRates")}) {
      if (!status) return status;
    }
    // Not in every library: drivers before 450 have no MIG, and v3 of the process list is of 510.
    (void)shared.bind(mig_mode, "nvmlDeviceGetMigMode").has_value();
    (void)shared.bind(processes, "nvmlDeviceGetComputeRunningProcesses_v3").has_value();
    (void)shared.bind(cuda_version, "nvmlSystemGetCudaDriverVersion_v2").has_value();
    (void)shared.bind(mig.count, "nvmlDeviceGetMaxMigDeviceCount").has_value();
    (void)shared.bind(mig.by_index, "nvmlDeviceGetMigDeviceHandleByIndex").has_value();
    (void)shared.bind(mig.instance_of, "nvmlDeviceGetGpuInstanceId").has_value();
    (void)shared.bind(mig.instance, "nvmlDeviceGetGpuInstanceById").has_value();
    (void)shared.bind(mig.info, "nvmlGpuInstanceGetInfo").has_value();
    (void)shared.bind(process_utilisation, "nvmlDeviceGetProcessUtilization").has_value();
    (void)shared.bind(event_set_create, "nvmlEventSetCreate").has_value();
    (void)shared.bind(event_register, "nvmlDeviceRegisterEvents").has_value();
    (void)shared.bind(event_wait, "nvmlEventSetWait_v2").has_value();
    return {};
  }

  // `what`: the question that was asked, "utilisation of GPU 1".
  Status check(nvmlReturn_t code, const std::string& what) const {
    if (code == NVML_SUCCESS) return {};
    std::string_view advice = advice_for(code);
    return fail(advice.empty() ? Errc::kInternal : Errc::kUnavailable, "NVML: {}: {}{}", what, error_string(code),
                advice);
  }

  Result<Device> read(nvmlDevice_t device, const std::string& name_of_it) const;
  Result<nvmlDevice_t> handle(unsigned index) const;
  Result<std::optional<double>> read_utilisation(nvmlDevice_t device, const std::string& name_of_it) const;
  std::vector<nvmlDevice_t> slices_of(nvmlDevice_t gpu) const;
  Slice slice_of(nvmlDevice_t gpu, nvmlDevice_t slice, const std::string& slice_name) const;
  void watch(nvmlDevice_t gpu, const std::string& uuid);

  SharedLibrary shared;
  decltype(nvmlInit_v2)* init = nullptr;
  decltype(nvmlShutdown)* shutdown = nullptr;
  decltype(nvmlErrorString)* error_string = nullptr;
  decltype(nvmlSystemGetDriverVersion)* driver_version = nullptr;
  decltype(nvmlDeviceGetCount_v2)* device_count = nullptr;
  decltype(nvmlDeviceGetHandleByIndex_v2)* device_by_index = nullptr;
  decltype(nvmlDeviceGetName)* name = nullptr;
  decltype(nvmlDeviceGetUUID)* uuid = nullptr;
  decltype(nvmlDeviceGetMemoryInfo)* memory = nullptr;
  decltype(nvmlDeviceGetUtilizationRates)* utilisation = nullptr;
  decltype(nvmlDeviceGetMigMode)* mig_mode = nullptr;                        // may be null
  decltype(nvmlDeviceGetComputeRunningProcesses_v3)* processes = nullptr;    // may be null
  decltype(nvmlSystemGetCudaDriverVersion_v2)* cuda_version = nullptr;       // may be null
  decltype(nvmlDeviceGetProcessUtilization)* process_utilisation = nullptr;  // may be null
  decltype(nvmlEventSetCreate)* event_set_create = nullptr;                  // may be null
  decltype(nvmlDeviceRegisterEvents)* event_register = nullptr;              // may be null
  decltype(nvmlEventSetWait_v2)* event_wait = nullptr;                       // may be null

  struct {  // all may be null
    decltype(nvmlDeviceGetMaxMigDeviceCount)* count = nullptr;
    decltype(nvmlDeviceGetMigDeviceHandleByIndex)* by_index = nullptr;
    decltype(nvmlDeviceGetGpuInstanceId)* instance_of = nullptr;
    decltype(nvmlDeviceGetGpuInstanceById)* instance = nullptr;
    decltype(nvmlGpuInstanceGetInfo)* info = nullptr;
  } mig;

  // Handles are kept: finding a slice again takes seconds under load.
  Mutex mutex;
  std::map<std::string, nvmlDevice_t> handles FL_GUARDED_BY(mutex);  // by UUID
  std::map<nvmlDevice_t, std::string> watched FL_GUARDED_BY(mutex);  // GPUs whose events are in `events`
  nvmlEventSet_t events FL_GUARDED_BY(mutex) = nullptr;
};

Result<nvmlDevice_t> Nvml::Library::handle(unsigned index) const {
  nvmlDevice_t device = nullptr;
  Status status = check(device_by_index(index, &device), fmt::format("GPU {}", index));
  if (!status) return fail(status.error());
  return device;
}

Result<std::optional<double>> Nvml::Library::read_utilisation(nvmlDevice_t device, const std::string& what) const {
  nvmlUtilization_t percent{};
  const nvmlReturn_t code = utilisation(device, &percent);
  if (code == NVML_SUCCESS) return std::optional(percent.gpu / 100.0);
  if (code == NVML_ERROR_NOT_SUPPORTED) return std::optional<double>();
  return fail(check(code, "utilisation of " + what).error());
}

Result<Nvml::Device> Nvml::Library::read(nvmlDevice_t device, const std::string& what) const {
  std::array<char, NVML_DEVICE_NAME_V2_BUFFER_SIZE> text{};
  Device out;
  if (Status s = check(name(device, text.data(), text.size()), "name of " + what); !s) return fail(s.error());
  out.name = text.data();
  if (Status s = check(uuid(device, text.data(), text.size()), "UUID of " + what); !s) return fail(s.error());
  out.uuid = text.data();
  out.gpu_uuid = out.uuid;
  nvmlMemory_t bytes{};
  if (Status s = check(memory(device, &bytes), "memory of " + what); !s) return fail(s.error());
  out.memory_total = Bytes(static_cast<std::int64_t>(bytes.total));
  out.memory_used = Bytes(static_cast<std::int64_t>(bytes.used));
  const auto busy = read_utilisation(device, what);
  if (!busy) return fail(busy.error());
  out.utilisation = *busy;
  unsigned current = 0, pending = 0;
  if (mig_mode != nullptr && mig_mode(device, &current, &pending) == NVML_SUCCESS) {
    out.mig_enabled = current == NVML_DEVICE_MIG_ENABLE;
  }
  return out;
}

// Positions without a slice are passed over.
std::vector<nvmlDevice_t> Nvml::Library::slices_of(nvmlDevice_t gpu) const {
  std::vector<nvmlDevice_t> slices;
  unsigned count = 0;
  if (mig.count == nullptr || mig.by_index == nullptr || mig.count(gpu, &count) != NVML_SUCCESS) return slices;
  for (unsigned index = 0; index < count; ++index) {
    nvmlDevice_t slice = nullptr;
    if (mig.by_index(gpu, index, &slice) == NVML_SUCCESS) slices.push_back(slice);
  }
  return slices;
}

// `slice_name`: "NVIDIA A100-SXM4-40GB MIG 3g.20gb". Where it lies only the GPU instance knows.
Slice Nvml::Library::slice_of(nvmlDevice_t gpu, nvmlDevice_t slice, const std::string& slice_name) const {
  constexpr std::string_view kBefore = "MIG ";
  Slice is;
  const std::size_t at = slice_name.rfind(kBefore);
  if (at != std::string::npos) is.profile = slice_name.substr(at + kBefore.size());
  unsigned id = 0;
  nvmlGpuInstance_t instance = nullptr;
  nvmlGpuInstanceInfo_t info{};
  if (mig.instance_of == nullptr || mig.instance == nullptr || mig.info == nullptr) return is;
  if (mig.instance_of(slice, &id) != NVML_SUCCESS || mig.instance(gpu, id, &instance) != NVML_SUCCESS) return is;
  if (mig.info(instance, &info) != NVML_SUCCESS) return is;
  is.start = info.placement.start;
  is.size = info.placement.size;
  return is;
}

// A GPU that reports no events is still used: what it loses is the early warning.
void Nvml::Library::watch(nvmlDevice_t gpu, const std::string& gpu_uuid) {
  const MutexLock guard(mutex);
  if (event_set_create == nullptr || event_register == nullptr || watched.contains(gpu)) return;
  if (events == nullptr && event_set_create(&events) != NVML_SUCCESS) return;
  if (event_register(gpu, nvmlEventTypeXidCriticalError, events) == NVML_SUCCESS) watched[gpu] = gpu_uuid;
}

Nvml::Nvml(std::unique_ptr<Library> library) : library_(std::move(library)) {}
Nvml::~Nvml() {
  library_->shutdown();
}

Result<std::unique_ptr<Nvml>> Nvml::load(const std::string& library_dir) {
  Result<SharedLibrary> shared = SharedLibrary::load(library_dir, "libnvidia-ml.so.1", kAdvice);
  if (!shared) return fail(shared.error());
  auto library = std::make_unique<Library>(std::move(*shared));
  if (Status status = library->bind_all(); !status) return fail(status.error());
  if (nvmlReturn_t code = library->init(); code != NVML_SUCCESS) {
    Status status = library->check(code, "start");
    return fail(Errc::kUnavailable, "{} ({})", status.error().message, library->shared.path());
  }
  return std::unique_ptr<Nvml>(new Nvml(std::move(library)));
}

Result<std::vector<Nvml::Device>> Nvml::devices() const {
  unsigned count = 0;
  if (Status status = library_->check(library_->device_count(&count), "number of GPUs"); !status) {
    return fail(status.error());
  }
  std::vector<Device> devices;
  for (unsigned index = 0; index < count; ++index) {
    const Result<nvmlDevice_t> handle = library_->handle(index);
    if (!handle) return fail(handle.error());
    Result<Device> device = library_->read(*handle, fmt::format("GPU {}", index));
    if (!device) return fail(device.error());
    devices.push_back(std::move(*device));
  }
  return devices;
}

Result<std::vector<Nvml::Device>> Nvml::compute_devices() const {
  auto gpus = devices();
  if (!gpus) return gpus;
  std::vector<Device> found;
  for (unsigned index = 0; index < gpus->size(); ++index) {
    Device& gpu = (*gpus)[index];
    const Result<nvmlDevice_t> handle = library_->handle(index);
    if (!handle) return fail(handle.error());
    library_->watch(*handle, gpu.uuid);
    const bool mig = gpu.mig_enabled.value_or(false);
    for (const nvmlDevice_t slice : mig ? library_->slices_of(*handle) : std::vector{*handle}) {
      Result<Device> device = library_->read(slice, fmt::format("{} of GPU {}", mig ? "a slice" : "the whole", index));
      if (!device) return fail(device.error());
      device->gpu_uuid = gpu.uuid;
      if (mig) device->slice = library_->slice_of(*handle, slice, device->name);
      const MutexLock guard(library_->mutex);
      library_->handles[device->uuid] = slice;
      found.push_back(std::move(*device));
    }
  }
  return found;
}

Result<nvmlDevice_t> Nvml::handle_of(const std::string& uuid) const {
  const MutexLock guard(library_->mutex);
  const auto found = library_->handles.find(uuid);
  if (found == library_->handles.end()) return fail(Errc::kUnavailable, "NVML: {} was not enumerated", uuid);
  return found->second;
}

Result<std::optional<std::vector<Nvml::ProcessUse>>> Nvml::process_use(const std::string& uuid,
                                                                       std::uint64_t since_us) const {
  using Answer = std::optional<std::vector<ProcessUse>>;
  const Result<nvmlDevice_t> device = handle_of(uuid);
  if (!device) return fail(device.error());
  if (library_->process_utilisation == nullptr) return Answer();
  std::vector<nvmlProcessUtilizationSample_t> samples(128);
  auto count = static_cast<unsigned>(samples.size());
  nvmlReturn_t code = library_->process_utilisation(*device, samples.data(), &count, since_us);
  while (code == NVML_ERROR_INSUFFICIENT_SIZE) {
    samples.resize(std::max<std::size_t>(count, samples.size()) * 2);
    count = static_cast<unsigned>(samples.size());
    code = library_->process_utilisation(*device, samples.data(), &count, since_us);
  }
  if (code == NVML_ERROR_NOT_SUPPORTED) return Answer();
  if (code == NVML_ERROR_NOT_FOUND) return Answer(std::vector<ProcessUse>());
  if (Status s = library_->check(code, "process utilisation of " + uuid); !s) return fail(s.error());
  std::vector<ProcessUse> use;
  for (unsigned i = 0; i < count; ++i) {
    const nvmlProcessUtilizationSample_t& sample = samples[i];
    if (sample.timeStamp <= since_us) continue;  // NVML fills the array with old ones
    use.push_back({static_cast<int>(sample.pid), sample.smUtil / 100.0, sample.timeStamp});
  }
  return Answer(std::move(use));
}

Result<Nvml::Use> Nvml::use(const std::string& uuid) const {
  const Result<nvmlDevice_t> known = handle_of(uuid);
  if (!known) return fail(known.error());
  nvmlDevice_t const device = *known;
  nvmlMemory_t bytes{};
  if (Status s = library_->check(library_->memory(device, &bytes), "memory of " + uuid); !s) return fail(s.error());
  const auto busy = library_->read_utilisation(device, uuid);
  if (!busy) return fail(busy.error());
  return Use{Bytes(static_cast<std::int64_t>(bytes.used)), *busy};
}

std::vector<Nvml::Xid> Nvml::take_xids() const {
  std::vector<Xid> xids;
  const MutexLock guard(library_->mutex);
  if (library_->events == nullptr || library_->event_wait == nullptr) return xids;
  nvmlEventData_t event{};
  while (library_->event_wait(library_->events, &event, 0) == NVML_SUCCESS) {
    const auto gpu = library_->watched.find(event.device);
    if (gpu == library_->watched.end() || event.eventType != nvmlEventTypeXidCriticalError) continue;
    xids.push_back({gpu->second, static_cast<unsigned>(event.eventData)});
  }
  return xids;
}

Result<std::vector<Nvml::Process>> Nvml::processes(std::size_t index) const {
  if (library_->processes == nullptr) {
    return fail(library_->shared.missing("nvmlDeviceGetComputeRunningProcesses_v3"));
  }
  Result<nvmlDevice_t> device = library_->handle(static_cast<unsigned>(index));
  if (!device) return fail(device.error());
  std::vector<nvmlProcessInfo_t> infos(64);
  auto count = static_cast<unsigned>(infos.size());
  nvmlReturn_t code = library_->processes(*device, &count, infos.data());
  while (code == NVML_ERROR_INSUFFICIENT_SIZE) {
    infos.resize(std::max<std::size_t>(count, infos.size()) * 2);  // more may start meanwhile
    count = static_cast<unsigned>(infos.size());
    code = library_->processes(*device, &count, infos.data());
  }
  if (Status status = library_->check(code, fmt::format("processes of GPU {}", index)); !status) {
    return fail(status.error());
  }
  std::vector<Process> processes;
  for (unsigned i = 0; i < count; ++i) {
    bool known = infos[i].usedGpuMemory != NVML_VALUE_NOT_AVAILABLE_ULL;
    processes.push_back({.pid = static_cast<int>(infos[i].pid),
                         .memory = Bytes(known ? static_cast<std::int64_t>(infos[i].usedGpuMemory) : 0)});
  }
  return processes;
}

Result<std::string> Nvml::driver_version() const {
  std::array<char, NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE> text{};
  Status status = library_->check(library_->driver_version(text.data(), text.size()), "driver version");
  if (!status) return fail(status.error());
  return std::string(text.data());
}

std::string Nvml::cuda_version() const {
  int version = 0;  // 1000 x major + 10 x minor
  if (library_->cuda_version == nullptr || library_->cuda_version(&version) != NVML_SUCCESS) return "";
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

const std::string& Nvml::library_path() const {
  return library_->shared.path();
}

}  // namespace fairlead
