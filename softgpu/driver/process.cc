#include "softgpu/driver/process.h"

#include <pthread.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <thread>

#include "softgpu/device/key_value.h"
#include "softgpu/device/time/mps.h"
#include "softgpu/device/time/trace.h"
#include "softgpu/driver/operation_scope.h"
#include "softgpu/driver/visible_devices.h"

namespace softgpu {
namespace {

std::atomic<Process*> g_process = nullptr;  // never deleted: worker threads may outlive static destruction

std::uint64_t environment_number(const char* name, std::uint64_t fallback, std::uint64_t high) {
  const char* text = std::getenv(name);
  if (text == nullptr) return fallback;
  return parse_number(name, text, 0, high).value_or(fallback);
}

Settings read_settings() {
  Settings settings;
  settings.launch_timeout_ns = environment_number("SOFTGPU_LAUNCH_TIMEOUT_MS", 0, 86'400'000) * 1'000'000;
  const unsigned cpus = std::max(1U, std::thread::hardware_concurrency());
  settings.workers = std::max(1U, static_cast<unsigned>(environment_number("SOFTGPU_WORKERS", cpus, 256)));
  return settings;
}

// MPS within a MIG slice: the client's part of the SMs, and of the clients there may be, is one of the slice's.
ClientShare share_within(const Part& part, std::uint64_t whole, ClientShare share) {
  if (!part.mig) return share;
  share.sms = (share.sms * part.profile.sm_count + whole - 1) / whole;
  share.max_contexts = std::max<unsigned>(1, static_cast<unsigned>(share.max_contexts * part.profile.sm_count / whole));
  return share;
}

bool single_mig_device() {
  const char* text = std::getenv("SOFTGPU_MIG_ENUMERATION");
  return text != nullptr && std::string_view(text) == "single";
}

}  // namespace

Result<Process*> Process::open() {
  auto machine = open_machine();
  if (!machine) return failure(machine.error());
  auto clients = Clients::open(*machine);
  if (!clients) return failure(clients.error());
  const auto mps = find_mps(*machine, mps_environment());
  if (!mps) return failure(mps.error());
  const auto visible = visible_devices(*machine, std::getenv("CUDA_VISIBLE_DEVICES"), single_mig_device());
  if (!visible) return failure(visible.error());
  auto process = std::unique_ptr<Process>(new Process(std::move(*machine), *clients));
  process->settings_ = read_settings();
  if (const char* trace = std::getenv("SOFTGPU_TRACE"); trace != nullptr && *trace != '\0') {
    if (const auto opened = open_trace(trace); !opened) return failure(opened.error());
  }
  const auto self = process->clients_.join();
  if (!self) return failure(self.error());
  process->gate_.emplace(process->clients_, *self);
  process->holder_.emplace(process->machine_, process->clients_, *self);
  for (const Part& part : *visible) {
    const auto ordinal = static_cast<unsigned>(process->devices_.size());
    const auto share = client_share(process->machine_, *mps, mps_environment(), part.gpu, ordinal);
    if (!share) return failure(share.error());
    auto device = Device::open(process->machine_, process->clients_, *self, part,
                               share_within(part, process->machine_.profile(part.gpu).sm_count, *share));
    if (!device) return failure(device.error());
    if ((*device)->faults().lost()) continue;  // fallen off the bus: not there
    auto& entry = process->devices_.emplace_back(std::make_unique<DriverDevice>());
    entry->ordinal = static_cast<int>(process->devices_.size()) - 1;
    entry->device = std::move(*device);
  }
  return process.release();
}

CUresult Process::initialise() {
  static std::once_flag once;
  static CUresult result = CUDA_ERROR_NOT_INITIALIZED;
  std::call_once(once, [] {
    const auto process = open();
    if (!process) {
      std::fprintf(stderr, "softgpu: %s\n", process.error().c_str());
      result = CUDA_ERROR_SYSTEM_NOT_READY;
      return;
    }
    // A child of fork has none of the worker threads and not the slot's lock: it must start afresh by exec.
    ::pthread_atfork(nullptr, nullptr, [] {
      g_process.store(nullptr);
      result = CUDA_ERROR_NOT_INITIALIZED;
    });
    g_process.store(*process);
    result = (*process)->devices_.empty() ? CUDA_ERROR_NO_DEVICE : CUDA_SUCCESS;
  });
  return result;
}

bool can_be_peers(const DriverDevice& one, const DriverDevice& other) {
  return &one != &other && !one.device->part().mig && !other.device->part().mig;
}

Process* Process::get() {
  return g_process.load(std::memory_order_acquire);
}

DriverDevice* Process::device(int ordinal) {
  if (ordinal < 0 || static_cast<std::size_t>(ordinal) >= devices_.size()) return nullptr;
  return devices_[static_cast<std::size_t>(ordinal)].get();
}

DriverDevice* Process::device_of_memory(std::uint32_t memory_id) {
  for (const auto& entry : devices_) {
    if (entry->device->memory_id() == memory_id) return entry.get();
  }
  return nullptr;
}

DriverDevice* Process::owner_of(std::uint64_t address) {
  for (const auto& entry : devices_) {
    if (entry->device->window().contains(address)) return entry.get();
  }
  return nullptr;
}

void Process::add_host(std::uint64_t address, std::uint64_t bytes) {
  for (const auto& entry : devices_) entry->device->window().add_host(address, bytes);
}

void Process::remove_host(std::uint64_t address) {
  for (const auto& entry : devices_) entry->device->window().remove_host(address);
}

Extent Process::find_host(std::uint64_t address) const {
  return devices_.empty() ? Extent{} : devices_.front()->device->window().find_host(address);
}

void CallPass::wait_for_gate() {
  if (OperationScope::within()) return;
  gate_.leave();
  gate_.enter();
}

void wait_while_locked() {
  const CallGate& gate = Process::get()->gate();
  if (!gate.open() && !OperationScope::within()) gate.wait();
}

void note_shared_memory() {
  const CallPass pass;
  Process::get()->gate().note_sharing();
}

CUresult get_device(int ordinal, DriverDevice*& device) {
  Process* process = Process::get();
  if (process == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  device = process->device(ordinal);
  return device != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

}  // namespace softgpu
