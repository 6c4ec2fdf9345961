#include "gpu/mig_control.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <optional>

#include "abi/nvml.h"
#include "abi/nvml_mig.h"
#include "gpu/shared_library.h"

namespace fairlead {
namespace {

constexpr std::size_t kMostInstances = 16;  // of a profile; a GPU has 7 slices today

// "MIG 1g.10gb": without the first word.
std::string short_name(std::string_view name) {
  constexpr std::string_view kBefore = "MIG ";
  if (name.starts_with(kBefore)) name.remove_prefix(kBefore.size());
  return std::string(name);
}

}  // namespace

struct MigControl::Library {
  explicit Library(SharedLibrary file) : shared(std::move(file)) {}

  Status bind_all() {
    for (const Status& status : {shared.bind(init, "nvmlInit_v2"),
                                 shared.bind(shutdown, "nvmlShutdown"),
                                 shared.bind(error_string, "nvmlErrorString"),
                                 shared.bind(gpus.count, "nvmlDeviceGetCount_v2"),
                                 shared.bind(gpus.by_index, "nvmlDeviceGetHandleByIndex_v2"),
                                 shared.bind(gpus.by_uuid, "nvmlDeviceGetHandleByUUID"),
                                 shared.bind(gpus.uuid, "nvmlDeviceGetUUID"),
                                 shared.bind(gpus.mode, "nvmlDeviceGetMigMode"),
                                 shared.bind(slices.count, "nvmlDeviceGetMaxMigDeviceCount"),
                                 shared.bind(slices.by_index, "nvmlDeviceGetMigDeviceHandleByIndex"),
                                 shared.bind(slices.instance, "nvmlDeviceGetGpuInstanceId"),
                                 shared.bind(slices.compute, "nvmlDeviceGetComputeInstanceId"),
                                 shared.bind(instances.profile, "nvmlDeviceGetGpuInstanceProfileInfoV"),
                                 shared.bind(instances.places, "nvmlDeviceGetGpuInstancePossiblePlacements_v2"),
                                 shared.bind(instances.of_profile, "nvmlDeviceGetGpuInstances"),
                                 shared.bind(instances.by_id, "nvmlDeviceGetGpuInstanceById"),
                                 shared.bind(instances.info, "nvmlGpuInstanceGetInfo"),
                                 shared.bind(instances.make, "nvmlDeviceCreateGpuInstanceWithPlacement"),
                                 shared.bind(instances.end, "nvmlGpuInstanceDestroy"),
                                 shared.bind(computes.profile, "nvmlGpuInstanceGetComputeInstanceProfileInfo"),
                                 shared.bind(computes.by_id, "nvmlGpuInstanceGetComputeInstanceById"),
                                 shared.bind(computes.make, "nvmlGpuInstanceCreateComputeInstance"),
                                 shared.bind(computes.end, "nvmlComputeInstanceDestroy")}) {
      if (!status) return status;
    }
    return {};
  }

  Status check(nvmlReturn_t code, const std::string& what) const {
    if (code == NVML_SUCCESS) return {};
    const bool may_not = code == NVML_ERROR_NO_PERMISSION;
    return fail(may_not ? Errc::kForbidden : Errc::kInternal, "NVML: {}: {}{}", what, error_string(code),
                may_not ? ": run the node as root, or leave out --mig-reslice" : "");
  }

  std::vector<MigLayout::Profile> profiles_of(nvmlDevice_t gpu) const;
  Result<std::vector<MigLayout::Instance>> instances_of(nvmlDevice_t gpu,
                                                        const std::vector<MigLayout::Profile>& profiles) const;
  Status fill(nvmlGpuInstance_t handle, const std::string& what) const;
  Result<MigPiece> end(nvmlDevice_t gpu, unsigned id, const MigEnd* expected) const;
  Result<unsigned> make(nvmlDevice_t gpu, const MigPiece& piece) const;
  template <typename Visit>
  void visit_slices(nvmlDevice_t gpu, Visit visit) const;

  SharedLibrary shared;
  decltype(nvmlInit_v2)* init = nullptr;
  decltype(nvmlShutdown)* shutdown = nullptr;
  decltype(nvmlErrorString)* error_string = nullptr;
  struct {
    decltype(nvmlDeviceGetCount_v2)* count = nullptr;
    decltype(nvmlDeviceGetHandleByIndex_v2)* by_index = nullptr;
    decltype(nvmlDeviceGetHandleByUUID)* by_uuid = nullptr;
    decltype(nvmlDeviceGetUUID)* uuid = nullptr;
    decltype(nvmlDeviceGetMigMode)* mode = nullptr;
  } gpus;
  struct {
    decltype(nvmlDeviceGetMaxMigDeviceCount)* count = nullptr;
    decltype(nvmlDeviceGetMigDeviceHandleByIndex)* by_index = nullptr;
    decltype(nvmlDeviceGetGpuInstanceId)* instance = nullptr;
    decltype(nvmlDeviceGetComputeInstanceId)* compute = nullptr;
  } slices;
  struct {
    decltype(nvmlDeviceGetGpuInstanceProfileInfoV)* profile = nullptr;
    decltype(nvmlDeviceGetGpuInstancePossiblePlacements_v2)* places = nullptr;
    decltype(nvmlDeviceGetGpuInstances)* of_profile = nullptr;
    decltype(nvmlDeviceGetGpuInstanceById)* by_id = nullptr;
    decltype(nvmlGpuInstanceGetInfo)* info = nullptr;
    decltype(nvmlDeviceCreateGpuInstanceWithPlacement)* make = nullptr;
    decltype(nvmlGpuInstanceDestroy)* end = nullptr;
  } instances;
  struct {
    decltype(nvmlGpuInstanceGetComputeInstanceProfileInfo)* profile = nullptr;
    decltype(nvmlGpuInstanceGetComputeInstanceById)* by_id = nullptr;
    decltype(nvmlGpuInstanceCreateComputeInstance)* make = nullptr;
    decltype(nvmlComputeInstanceDestroy)* end = nullptr;
  } computes;
};

// Those that the GPU does not have answer an error.
std::vector<MigLayout::Profile> MigControl::Library::profiles_of(nvmlDevice_t gpu) const {
  std::vector<MigLayout::Profile> found;
  for (unsigned query = 0; query < NVML_GPU_INSTANCE_PROFILE_COUNT; ++query) {
    nvmlGpuInstanceProfileInfo_v2_t info{};
    info.version = nvmlGpuInstanceProfileInfo_v2;
    if (instances.profile(gpu, query, &info) != NVML_SUCCESS) continue;
    std::array<nvmlGpuInstancePlacement_t, 64> places{};
    auto count = static_cast<unsigned>(places.size());
    if (instances.places(gpu, info.id, nullptr, &count) != NVML_SUCCESS || count > places.size()) continue;
    if (count > 0 && instances.places(gpu, info.id, places.data(), &count) != NVML_SUCCESS) continue;
    MigLayout::Profile profile{.id = info.id,
                               .name = short_name(info.name),
                               .compute = static_cast<int>(info.sliceCount),
                               .memory_slices = count > 0 ? static_cast<int>(places[0].size) : 1,
                               .memory = mib(static_cast<std::int64_t>(info.memorySizeMB)),
                               .starts = {}};
    for (unsigned i = 0; i < count; ++i) profile.starts.push_back(static_cast<int>(places[i].start));
    found.push_back(std::move(profile));
  }
  return found;
}

// `visit` is given a slice that programs can use, and the id of its GPU instance.
template <typename Visit>
void MigControl::Library::visit_slices(nvmlDevice_t gpu, Visit visit) const {
  unsigned count = 0;
  if (slices.count(gpu, &count) != NVML_SUCCESS) return;
  for (unsigned index = 0; index < count; ++index) {
    nvmlDevice_t slice = nullptr;
    unsigned id = 0;
    if (slices.by_index(gpu, index, &slice) == NVML_SUCCESS && slices.instance(slice, &id) == NVML_SUCCESS)
      visit(slice, id);
  }
}

Result<std::vector<MigLayout::Instance>> MigControl::Library::instances_of(
    nvmlDevice_t gpu, const std::vector<MigLayout::Profile>& profiles) const {
  std::vector<MigLayout::Instance> found;
  for (std::size_t profile = 0; profile < profiles.size(); ++profile) {
    std::array<nvmlGpuInstance_t, kMostInstances> handles{};
    unsigned count = 0;
    const auto what = fmt::format("instances of {}", profiles[profile].name);
    if (Status s = check(instances.of_profile(gpu, profiles[profile].id, handles.data(), &count), what); !s)
      return fail(s.error());
    for (unsigned i = 0; i < std::min<std::size_t>(count, handles.size()); ++i) {
      nvmlGpuInstanceInfo_t info{};
      if (Status s = check(instances.info(handles[i], &info), what); !s) return fail(s.error());
      found.push_back(
          {.id = info.id, .profile = profile, .start = static_cast<int>(info.placement.start), .uuids = {}});
    }
  }
  visit_slices(gpu, [&](nvmlDevice_t slice, unsigned id) {
    std::array<char, NVML_DEVICE_NAME_V2_BUFFER_SIZE> text{};
    const auto its = std::find_if(found.begin(), found.end(), [&](const auto& one) { return one.id == id; });
    if (its == found.end() || gpus.uuid(slice, text.data(), text.size()) != NVML_SUCCESS) return;
    its->uuids.emplace_back(text.data());
  });
  return found;
}

// One compute instance that takes all of it.
Status MigControl::Library::fill(nvmlGpuInstance_t handle, const std::string& what) const {
  std::optional<nvmlComputeInstanceProfileInfo_t> widest;
  for (unsigned query = 0; query < NVML_COMPUTE_INSTANCE_PROFILE_COUNT; ++query) {
    nvmlComputeInstanceProfileInfo_t info{};
    const auto engines = NVML_COMPUTE_INSTANCE_ENGINE_PROFILE_SHARED;
    if (computes.profile(handle, query, engines, &info) != NVML_SUCCESS) continue;
    if (!widest || info.sliceCount > widest->sliceCount) widest = info;
  }
  if (!widest) return fail(Errc::kInternal, "NVML: {} has no profile of compute instances", what);
  nvmlComputeInstance_t made = nullptr;
  return check(computes.make(handle, widest->id, &made), "a compute instance of " + what);
}

// How it can be made again. On an error it is there as it was. `expected`: what it must be; null: whatever it is.
Result<MigPiece> MigControl::Library::end(nvmlDevice_t gpu, unsigned id, const MigEnd* expected) const {
  const std::string what = fmt::format("GPU instance {}", id);
  nvmlGpuInstance_t handle = nullptr;
  nvmlGpuInstanceInfo_t info{};
  if (Status s = check(instances.by_id(gpu, id, &handle), what); !s) return fail(s.error());
  if (Status s = check(instances.info(handle, &info), what); !s) return fail(s.error());
  std::vector<unsigned> found;
  bool is_expected = expected == nullptr;
  visit_slices(gpu, [&](nvmlDevice_t slice, unsigned of) {
    unsigned number = 0;
    if (of != id || slices.compute(slice, &number) != NVML_SUCCESS) return;
    found.push_back(number);
    std::array<char, NVML_DEVICE_NAME_V2_BUFFER_SIZE> text{};
    if (gpus.uuid(slice, text.data(), text.size()) == NVML_SUCCESS)
      is_expected = is_expected || expected->uuid == text.data();
  });
  is_expected = is_expected && (expected == nullptr || (info.profileId == expected->profile &&
                                                        static_cast<int>(info.placement.start) == expected->start));
  if (!is_expected) return fail(Errc::kConflict, "{} is another one by now than {}", what, expected->uuid);
  if (found.size() > 1) {
    return fail(Errc::kConflict, "{} has {} compute instances, and is left as it is", what, found.size());
  }
  for (const unsigned number : found) {
    nvmlComputeInstance_t one = nullptr;
    if (Status s = check(computes.by_id(handle, number, &one), "a compute instance of " + what); !s)
      return fail(s.error());
    if (Status s = check(computes.end(one), "the end of a compute instance of " + what); !s) return fail(s.error());
  }
  Status ended = check(instances.end(handle), "the end of " + what);
  if (ended) {
    return MigPiece{.profile = info.profileId,
                    .start = static_cast<int>(info.placement.start),
                    .memory_slices = static_cast<int>(info.placement.size)};
  }
  if (found.empty()) return fail(ended.error());
  if (Status filled = fill(handle, what); !filled) {
    return fail(ended.error().code, "{}; programs cannot use it any more: {}", ended.error().message,
                filled.error().message);
  }
  return fail(ended.error());
}

Result<unsigned> MigControl::Library::make(nvmlDevice_t gpu, const MigPiece& piece) const {
  const std::string what = fmt::format("a GPU instance of profile {} at {}", piece.profile, piece.start);
  const nvmlGpuInstancePlacement_t place{static_cast<unsigned>(piece.start),
                                         static_cast<unsigned>(piece.memory_slices)};
  nvmlGpuInstance_t handle = nullptr;
  nvmlGpuInstanceInfo_t info{};
  if (Status s = check(instances.make(gpu, piece.profile, &place, &handle), what); !s) return fail(s.error());
  Status s = check(instances.info(handle, &info), what);
  if (s) s = fill(handle, what);
  if (s) return info.id;
  (void)instances.end(handle);
  return fail(s.error());
}

MigControl::MigControl(std::unique_ptr<Library> library) : library_(std::move(library)) {}
MigControl::~MigControl() {
  library_->shutdown();
}

Result<std::unique_ptr<MigControl>> MigControl::load(const std::string& library_dir) {
  auto shared = SharedLibrary::load(library_dir, "libnvidia-ml.so.1", "GPUs are cut anew by NVIDIA's driver alone");
  if (!shared) return fail(shared.error());
  auto library = std::make_unique<Library>(std::move(*shared));
  if (Status status = library->bind_all(); !status) return fail(status.error());
  if (Status begun = library->check(library->init(), "start"); !begun) return fail(begun.error());
  return std::unique_ptr<MigControl>(new MigControl(std::move(library)));
}

Result<std::vector<MigLayout>> MigControl::layouts() const {
  unsigned count = 0;
  if (Status s = library_->check(library_->gpus.count(&count), "number of GPUs"); !s) return fail(s.error());
  std::vector<MigLayout> all;
  for (unsigned index = 0; index < count; ++index) {
    const std::string what = fmt::format("GPU {}", index);
    nvmlDevice_t gpu = nullptr;
    unsigned current = 0, pending = 0;
    if (!library_->check(library_->gpus.by_index(index, &gpu), what)) continue;
    const bool has_mig = library_->gpus.mode(gpu, &current, &pending) == NVML_SUCCESS;
    if (!has_mig || current != NVML_DEVICE_MIG_ENABLE || pending != current) continue;
    std::array<char, NVML_DEVICE_NAME_V2_BUFFER_SIZE> text{};
    if (!library_->check(library_->gpus.uuid(gpu, text.data(), text.size()), "UUID of " + what)) continue;
    MigLayout layout{.gpu_uuid = text.data(), .profiles = library_->profiles_of(gpu), .instances = {}};
    auto instances = library_->instances_of(gpu, layout.profiles);
    if (!instances) continue;
    layout.instances = *std::move(instances);
    all.push_back(std::move(layout));
  }
  return all;
}

Status MigControl::cut(const std::string& gpu_uuid, const std::vector<MigEnd>& destroy,
                       const std::vector<MigPiece>& make) {
  nvmlDevice_t gpu = nullptr;
  if (Status s = library_->check(library_->gpus.by_uuid(gpu_uuid.c_str(), &gpu), gpu_uuid); !s) return s;
  std::vector<MigPiece> ended;
  std::vector<unsigned> made;
  std::optional<Error> failed;
  for (const MigEnd& one : destroy) {
    auto piece = library_->end(gpu, one.id, &one);
    if (!piece) failed = piece.error();
    if (failed) break;
    ended.push_back(*piece);
  }
  for (const MigPiece& piece : make) {
    if (failed) break;
    auto one = library_->make(gpu, piece);
    if (one) made.push_back(*one);
    if (!one) failed = one.error();
  }
  if (!failed) return {};
  std::vector<std::string> lost;
  for (const unsigned id : made) {
    if (auto undone = library_->end(gpu, id, nullptr); !undone) lost.push_back(undone.error().message);
  }
  for (const MigPiece& piece : ended) {
    if (auto again = library_->make(gpu, piece); !again) lost.push_back(again.error().message);
  }
  if (lost.empty()) return fail(*failed);
  return fail(failed->code, "{}; what was there could not be made again: {}", failed->message, fmt::join(lost, "; "));
}

}  // namespace fairlead
