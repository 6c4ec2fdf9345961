// What the driver knows about its process: the machine, the client slot and the devices it may see.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <vector>

#include "softgpu/device/device.h"
#include "softgpu/device/hold.h"
#include "softgpu/driver/api.h"

namespace softgpu {

// A device as the driver numbers it, with what its contexts share. Lives as long as the process.
struct DriverDevice {
  int ordinal = 0;
  std::unique_ptr<Device> device;
  CUcontext primary = nullptr;
};

// Whether kernels of one device can use memory of the other: not of the same device, nor with MIG.
bool can_be_peers(const DriverDevice& one, const DriverDevice& other);

// Settings that belong to the process, not to the machine.
struct Settings {
  std::uint64_t launch_timeout_ns = 0;  // $SOFTGPU_LAUNCH_TIMEOUT_MS; 0: none
  unsigned workers = 1;                 // $SOFTGPU_WORKERS: host threads per kernel; the number of CPUs by default
};

class Process {
 public:
  // cuInit. Idempotent and thread-safe; a failure is final. Explains failures once on stderr.
  static CUresult initialise();
  // The initialised process, or null before cuInit and in a child of fork.
  static Process* get();

  std::vector<std::unique_ptr<DriverDevice>>& devices() { return devices_; }
  // Null when there is no such ordinal.
  DriverDevice* device(int ordinal);
  // A visible device with that memory (Device::memory_id), or null: a MIG device sees nothing of its neighbours'.
  DriverDevice* device_of_memory(std::uint32_t memory_id);
  const Machine& machine() const { return machine_; }
  const Clients& clients() const { return clients_; }
  const Shares& shares() const { return clients_.shares(); }
  const Settings& settings() const { return settings_; }
  // What others may stop: waits and work of this process pass it.
  CallGate& gate() { return *gate_; }
  // For stopping others.
  Holder& holder() { return *holder_; }
  // The device whose window contains `address`, or null.
  DriverDevice* owner_of(std::uint64_t address);
  // Host memory that all devices may access.
  void add_host(std::uint64_t address, std::uint64_t bytes);
  void remove_host(std::uint64_t address);
  Extent find_host(std::uint64_t address) const;

 private:
  Process(Machine machine, Clients clients) : machine_(std::move(machine)), clients_(clients) {}
  static Result<Process*> open();

  Machine machine_;
  Clients clients_;
  Settings settings_;
  std::optional<CallGate> gate_;
  std::optional<Holder> holder_;
  std::vector<std::unique_ptr<DriverDevice>> devices_;
};

// A call that starts work, or hands memory to others: while it lives, who locks the process waits for it; while the
// process is locked it waits itself. Nothing for operations of a stream, for which the lock waits already.
class CallPass {
 public:
  CallPass() : gate_(Process::get()->gate()) {
    gate_.add();
    if (!gate_.open()) wait_for_gate();
  }
  ~CallPass() { gate_.leave(); }
  CallPass(const CallPass&) = delete;
  CallPass& operator=(const CallPass&) = delete;

 private:
  void wait_for_gate();

  CallGate& gate_;
};

// Waits while the process is locked, as calls do that need neither.
void wait_while_locked();
// To be called before memory is given to another process or taken from one: neither can be checkpointed any more.
void note_shared_memory();

// Process::get() or NOT_INITIALIZED; the device or INVALID_DEVICE.
CUresult get_device(int ordinal, DriverDevice*& device);

}  // namespace softgpu
