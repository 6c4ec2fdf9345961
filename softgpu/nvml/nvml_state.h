// What NVML knows: the machine, read through the same shared state as the driver, but without a client slot.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "softgpu/device/device.h"

#pragma GCC visibility push(default)
#include "abi/nvml.h"
#pragma GCC visibility pop

// Leaves the entry point with the first error.
#define SOFTGPU_NVML_TRY(expression)                                                        \
  do {                                                                                      \
    if (const nvmlReturn_t result_ = (expression); result_ != NVML_SUCCESS) return result_; \
  } while (false)

// The handle.
struct nvmlDevice_st {
  unsigned index = 0;
  const softgpu::Machine* machine = nullptr;
  std::unique_ptr<softgpu::DeviceView> view;
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
  const std::vector<std::unique_ptr<nvmlDevice_st>>& devices() const { return devices_; }

 private:
  NvmlState(Machine machine, Clients clients) : machine_(std::move(machine)), clients_(clients) {}
  static Result<NvmlState*> open();

  Machine machine_;
  Clients clients_;
  std::vector<std::unique_ptr<nvmlDevice_st>> devices_;
};

// UNINITIALIZED, or INVALID_ARGUMENT when the handle names no device.
nvmlReturn_t check_device(nvmlDevice_t device);

// Copies text into a caller's buffer: INVALID_ARGUMENT, INSUFFICIENT_SIZE.
nvmlReturn_t write_text(const std::string& text, char* buffer, unsigned length);

}  // namespace softgpu
