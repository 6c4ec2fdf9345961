#include "softgpu/nvml/nvml_state.h"

#include <atomic>
#include <cstdio>
#include <cstring>
#include <mutex>

namespace softgpu {
namespace {

struct Shared {
  std::mutex mutex;
  unsigned references = 0;     // guarded by mutex
  NvmlState* state = nullptr;  // guarded by mutex; never deleted, so that the slots file stays open
  std::atomic<NvmlState*> initialised = nullptr;
};

Shared& shared() {
  static auto* instance = new Shared;
  return *instance;
}

}  // namespace

Result<NvmlState*> NvmlState::open() {
  auto machine = open_machine();
  if (!machine) return failure(machine.error());
  auto clients = Clients::open(*machine);
  if (!clients) return failure(clients.error());
  auto state = std::unique_ptr<NvmlState>(new NvmlState(std::move(*machine), *clients));
  for (unsigned index = 0; index < state->machine_.device_count; ++index) {
    auto view = DeviceView::open(state->machine_, state->clients_, index);
    if (!view) return failure(view.error());
    auto device = std::make_unique<nvmlDevice_st>();
    *device = {index, &state->machine_, std::move(*view)};
    state->devices_.push_back(std::move(device));
  }
  return state.release();
}

nvmlReturn_t NvmlState::retain() {
  Shared& all = shared();
  const std::lock_guard guard(all.mutex);
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
  const std::lock_guard guard(all.mutex);
  if (all.references == 0) return NVML_ERROR_UNINITIALIZED;
  if (--all.references == 0) all.initialised.store(nullptr);
  return NVML_SUCCESS;
}

NvmlState* NvmlState::get() {
  return shared().initialised.load(std::memory_order_acquire);
}

nvmlReturn_t check_device(nvmlDevice_t device) {
  NvmlState* state = NvmlState::get();
  if (state == nullptr) return NVML_ERROR_UNINITIALIZED;
  for (const auto& known : state->devices()) {
    if (known.get() == device) return NVML_SUCCESS;
  }
  return NVML_ERROR_INVALID_ARGUMENT;
}

nvmlReturn_t write_text(const std::string& text, char* buffer, unsigned length) {
  if (buffer == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  if (length <= text.size()) return NVML_ERROR_INSUFFICIENT_SIZE;
  std::memcpy(buffer, text.c_str(), text.size() + 1);
  return NVML_SUCCESS;
}

}  // namespace softgpu
