// What NVML knows: the machine, read through the same shared state as the driver, but without a client slot; and the
// handles it has given out. A handle is never freed, so a stale one is an error and not a crash.
#pragma once

#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "softgpu/device/device.h"
#include "softgpu/device/mig/partition.h"
#include "softgpu/mutex.h"

#pragma GCC visibility push(default)
#include "abi/nvml.h"
#pragma GCC visibility pop

// Leaves the entry point with the first error.
#define SOFTGPU_NVML_TRY(expression)                                                        \
  do {                                                                                      \
    if (const nvmlReturn_t result_ = (expression); result_ != NVML_SUCCESS) return result_; \
  } while (false)

namespace softgpu {

// How long each process had computed when somebody asked for process utilisation, so that a later answer can say what
// happened since then and no more.
struct UseSnapshot {
  unsigned long long timestamp_us = 0;
  std::map<std::uint32_t, std::uint64_t> busy_ns;  // by Owner::pack
};
struct UseHistory {
  Mutex mutex;
  std::deque<UseSnapshot> snapshots SOFTGPU_GUARDED_BY(mutex);  // the last few, oldest first
};

}  // namespace softgpu

// The handle of a GPU, or of a MIG device: a compute instance.
struct nvmlDevice_st {
  nvmlDevice_t gpu = nullptr;  // itself, or the GPU of the MIG device
  std::unique_ptr<softgpu::DeviceView> view;
  std::unique_ptr<softgpu::UseHistory> history = std::make_unique<softgpu::UseHistory>();
  std::atomic<bool> damage_told = false;

  const softgpu::Part& part() const { return view->part(); }
  const softgpu::Profile& profile() const { return part().profile; }
  unsigned index() const { return part().gpu; }
  bool is_mig() const { return part().mig.has_value(); }
};

// Instances are named by their ids; the next instance of the same id has the same handle.
struct nvmlGpuInstance_st {
  nvmlDevice_t gpu = nullptr;
  unsigned id = 0;
};

struct nvmlComputeInstance_st {
  nvmlGpuInstance_t gpu_instance = nullptr;
  unsigned id = 0;
};

namespace softgpu {

class NvmlState {
 public:
  // Counts an initialisation; the first opens the machine. DRIVER_NOT_LOADED, explained once on stderr, when it cannot.
  static nvmlReturn_t retain();
  static nvmlReturn_t release();
  // The state while it is initialised, else null. What it points to lives as long as the process.
  static NvmlState* get();

  const Machine& machine() const { return machine_; }
  const Clients& clients() const { return clients_; }
  // The GPUs, by index.
  const std::vector<std::unique_ptr<nvmlDevice_st>>& gpus() const { return gpus_; }

  // The handle of what was given a handle before, or a new one; null when the machine's state cannot be read.
  // Thread-safe.
  nvmlDevice_t mig_device(nvmlDevice_t gpu, const Part& part);
  nvmlGpuInstance_t gpu_instance(nvmlDevice_t gpu, unsigned id);
  nvmlComputeInstance_t compute_instance(nvmlGpuInstance_t gpu_instance, unsigned id);

  // Whether a handle was given out. Thread-safe.
  bool knows(nvmlDevice_t device) const;
  bool knows(nvmlGpuInstance_t instance) const;
  bool knows(nvmlComputeInstance_t instance) const;

 private:
  NvmlState(Machine machine, Clients clients) : machine_(std::move(machine)), clients_(clients) {}
  // open_once(), and again where a damaged state is to be made anew (state_folder.h).
  static Result<NvmlState*> open();
  static Result<NvmlState*> open_once();

  Machine machine_;
  Clients clients_;
  std::vector<std::unique_ptr<nvmlDevice_st>> gpus_;

  mutable Mutex mutex_;
  std::deque<nvmlDevice_st> mig_devices_ SOFTGPU_GUARDED_BY(mutex_);
  std::deque<nvmlGpuInstance_st> gpu_instances_ SOFTGPU_GUARDED_BY(mutex_);
  std::deque<nvmlComputeInstance_st> compute_instances_ SOFTGPU_GUARDED_BY(mutex_);
};

// UNINITIALIZED; INVALID_ARGUMENT when the handle names no device, or a MIG device that was destroyed; GPU_IS_LOST.
nvmlReturn_t check_device(nvmlDevice_t device);
// The same, and NOT_SUPPORTED for the handle of a MIG device: of a whole GPU only.
nvmlReturn_t check_gpu(nvmlDevice_t device);
// check_gpu() and an output that must not be null: INVALID_ARGUMENT.
template <typename Output>
nvmlReturn_t check_gpu(nvmlDevice_t device, const Output* output) {
  SOFTGPU_NVML_TRY(check_gpu(device));
  return output != nullptr ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT;
}

// The settings of a device's GPU; UNKNOWN, explained on stderr, when they cannot be read.
nvmlReturn_t settings_of(nvmlDevice_t device, std::optional<GpuSettings>& settings);
// The MIG devices of a GPU, in the order of their index; none when it is not in MIG mode.
std::vector<nvmlDevice_t> mig_devices_of(nvmlDevice_t gpu);

// How busy a device was in the last second, 0 to 1; of a GPU in MIG mode its instances count by their SMs.
double busy_of(nvmlDevice_t device);

// Copies text into a caller's buffer: INVALID_ARGUMENT, INSUFFICIENT_SIZE.
nvmlReturn_t write_text(const std::string& text, char* buffer, unsigned length);

// Fills an array of the caller's: `*count` is its room before and the number of `items` after. INVALID_ARGUMENT,
// INSUFFICIENT_SIZE.
template <typename Item>
nvmlReturn_t write_list(const std::vector<Item>& items, unsigned* count, Item* array) {
  if (count == nullptr || (*count != 0 && array == nullptr)) return NVML_ERROR_INVALID_ARGUMENT;
  const unsigned room = *count;
  *count = static_cast<unsigned>(items.size());
  if (room < items.size()) return NVML_ERROR_INSUFFICIENT_SIZE;
  std::copy(items.begin(), items.end(), array);
  return NVML_SUCCESS;
}

// Microseconds since 1970, for a moment of monotonic_ns().
unsigned long long timestamp_us(std::uint64_t monotonic_now_ns);

}  // namespace softgpu
