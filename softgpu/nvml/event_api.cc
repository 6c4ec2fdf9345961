// Events. A set remembers what each of its GPUs was like when it last looked; waiting is looking every few milliseconds,
// since the processes that change a GPU do not know who watches it.
#include <algorithm>
#include <chrono>
#include <thread>
#include <vector>

#include "softgpu/mutex.h"
#include "softgpu/nvml/nvml_state.h"

namespace {

constexpr std::chrono::milliseconds kPeriod(20);
constexpr unsigned kNoInstance = 0xFFFFFFFF;
// Those that can be registered. Injected Xids and changes of the MIG partition happen here; the others are accepted,
// because health checkers take a refusal for a broken GPU.
constexpr unsigned long long kSupported = nvmlEventTypeSingleBitEccError | nvmlEventTypeDoubleBitEccError |
                                          nvmlEventTypePState | nvmlEventTypeXidCriticalError | nvmlEventTypeClock |
                                          nvmlEventMigConfigChange;

struct Watch {
  nvmlDevice_t gpu = nullptr;
  unsigned long long types = 0;
  std::vector<softgpu::Uuid> mig_devices;  // as last seen
  std::uint32_t xid_count = 0;             // as last seen
};

std::vector<softgpu::Uuid> mig_uuids(nvmlDevice_t gpu) {
  std::vector<softgpu::Uuid> uuids;
  for (const nvmlDevice_t device : softgpu::mig_devices_of(gpu)) uuids.push_back(device->part().uuid);
  return uuids;
}

}  // namespace

struct nvmlEventSet_st {
  softgpu::Mutex mutex;
  bool live SOFTGPU_GUARDED_BY(mutex) = true;
  std::vector<Watch> watches SOFTGPU_GUARDED_BY(mutex);
};

namespace {

struct Sets {
  softgpu::Mutex mutex;
  std::vector<nvmlEventSet_t> all SOFTGPU_GUARDED_BY(mutex);  // never freed, so that a stale handle is an error
};

Sets& sets() {
  static auto* instance = new Sets;
  return *instance;
}

nvmlReturn_t check_set(nvmlEventSet_t set) {
  if (softgpu::NvmlState::get() == nullptr) return NVML_ERROR_UNINITIALIZED;
  Sets& known = sets();
  const softgpu::LockGuard guard(known.mutex);
  const bool found = std::find(known.all.begin(), known.all.end(), set) != known.all.end();
  if (!found) return NVML_ERROR_INVALID_ARGUMENT;
  const softgpu::LockGuard own(set->mutex);
  return set->live ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT;
}

// The first thing that happened since the last look. Of several Xids in one period the last is seen, as a monitor that
// is slow sees it.
bool look(nvmlEventSet_st& set, nvmlEventData_t& event) SOFTGPU_REQUIRES(set.mutex) {
  for (Watch& watch : set.watches) {
    const softgpu::Faults faults = watch.gpu->view->faults();
    const std::uint32_t xid_count = faults.xid_count();
    if (watch.xid_count != xid_count && (watch.types & nvmlEventTypeXidCriticalError) != 0) {
      watch.xid_count = xid_count;
      event = {watch.gpu, nvmlEventTypeXidCriticalError, faults.last_xid(), kNoInstance, kNoInstance};
      return true;
    }
    if ((watch.types & nvmlEventMigConfigChange) == 0) continue;
    std::vector<softgpu::Uuid> now = mig_uuids(watch.gpu);
    if (now == watch.mig_devices) continue;
    watch.mig_devices = std::move(now);
    event = {watch.gpu, nvmlEventMigConfigChange, 0, kNoInstance, kNoInstance};
    return true;
  }
  return false;
}

}  // namespace

nvmlReturn_t nvmlEventSetCreate(nvmlEventSet_t* set) {
  if (softgpu::NvmlState::get() == nullptr) return NVML_ERROR_UNINITIALIZED;
  if (set == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  *set = new nvmlEventSet_st;
  const softgpu::LockGuard guard(sets().mutex);
  sets().all.push_back(*set);
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlEventSetFree(nvmlEventSet_t set) {
  SOFTGPU_NVML_TRY(check_set(set));
  const softgpu::LockGuard guard(set->mutex);
  set->live = false;
  set->watches.clear();
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetSupportedEventTypes(nvmlDevice_t device, unsigned long long* types) {
  SOFTGPU_NVML_TRY(softgpu::check_gpu(device, types));
  *types = kSupported;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceRegisterEvents(nvmlDevice_t device, unsigned long long types, nvmlEventSet_t set) {
  SOFTGPU_NVML_TRY(softgpu::check_gpu(device));
  SOFTGPU_NVML_TRY(check_set(set));
  if ((types & ~kSupported) != 0) return NVML_ERROR_NOT_SUPPORTED;
  const softgpu::LockGuard guard(set->mutex);
  set->watches.push_back({device, types, mig_uuids(device), device->view->faults().xid_count()});
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlEventSetWait_v2(nvmlEventSet_t set, nvmlEventData_t* event, unsigned timeout_ms) {
  SOFTGPU_NVML_TRY(check_set(set));
  if (event == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(timeout_ms);
  while (true) {
    {
      const softgpu::LockGuard guard(set->mutex);
      if (look(*set, *event)) return NVML_SUCCESS;
    }
    const auto left = end - std::chrono::steady_clock::now();
    if (left <= left.zero()) return NVML_ERROR_TIMEOUT;
    std::this_thread::sleep_for(std::min<std::chrono::nanoseconds>(left, kPeriod));
    SOFTGPU_NVML_TRY(check_set(set));
  }
}

nvmlReturn_t nvmlEventSetWait(nvmlEventSet_t set, nvmlEventData_t* event, unsigned timeout_ms) {
  return nvmlEventSetWait_v2(set, event, timeout_ms);
}
