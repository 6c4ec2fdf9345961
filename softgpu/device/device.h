// One device as one process uses it, and the machine that holds all of them.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "softgpu/device/activity.h"
#include "softgpu/device/busy_meter.h"
#include "softgpu/device/clients.h"
#include "softgpu/device/device_lock.h"
#include "softgpu/device/faults.h"
#include "softgpu/device/heap.h"
#include "softgpu/device/machine.h"
#include "softgpu/device/page_pool.h"
#include "softgpu/device/time_model.h"
#include "softgpu/device/turn.h"
#include "softgpu/device/window.h"

namespace softgpu {

// The path of a device's file; `what` is "control" or "memory".
std::string device_file(const Machine& machine, unsigned device, std::string_view what);

// The shared part of a device, for reading: what NVML and the tools need.
class DeviceView {
 public:
  static Result<std::unique_ptr<DeviceView>> open(const Machine& machine, const Clients& clients, unsigned index);

  unsigned index() const { return index_; }
  Control& control() const { return control_; }
  PageUse use() const { return PagePool(control_, clients_, -1).use(); }
  BusyMeter meter() const { return BusyMeter(control_); }
  Faults faults() const { return Faults(control_); }
  // The use of the last second.
  BusyMeter::Sample sample() const;

 private:
  DeviceView(unsigned index, Control& control, const Clients& clients)
      : index_(index), control_(control), clients_(clients) {}

  const unsigned index_;
  Control& control_;
  const Clients& clients_;
};

// A device that this process computes on.
class Device {
 public:
  // Error: the shared state is missing, of another version or damaged; says what to do.
  static Result<std::unique_ptr<Device>> open(const Machine& machine, const Clients& clients, Owner self,
                                              unsigned index, const ClientShare& share);
  // The same, with all of the device and by turns.
  static Result<std::unique_ptr<Device>> open(const Machine& machine, const Clients& clients, Owner self,
                                              unsigned index);

  unsigned index() const { return view_->index(); }
  const Machine& machine() const { return machine_; }
  const Profile& profile() const { return machine_.profile(index()); }
  Window& window() { return *window_; }
  const ClientShare& share() const { return share_; }
  // SMs that this process may use.
  std::uint64_t sms() const { return share_.sms; }
  Turn& turn() { return turn_; }
  Activity& activity() { return activity_; }
  Faults faults() const { return view_->faults(); }
  BusyMeter meter() const { return view_->meter(); }
  Owner self() const { return self_; }

  // As far as this process may use it: an MPS client's memory may be limited.
  std::uint64_t total_bytes() const;
  std::uint64_t free_bytes() const;

  std::unique_ptr<Heap> make_heap() { return std::make_unique<Heap>(*window_, pool_, lock_, faults(), self_); }
  // Accounts `bytes` as used without an address; false when the device is full. Give them back with release_pages().
  bool reserve_pages(std::uint64_t bytes, std::vector<PageRun>& runs);
  void release_pages(const std::vector<PageRun>& runs) { pool_.release(runs); }
  // The pages another process maps at `window_page` and on.
  std::vector<PageRun> find_pages(Owner owner, std::uint64_t window_page, std::uint64_t count) const {
    return pool_.find(owner, window_page, count);
  }

  // Counts a context of this process; false when the MPS clients of the device have the most they may have. Does
  // nothing, successfully, for a process that takes turns.
  bool add_context() { return !share_.mps || activity_.add_context(share_.max_contexts); }
  void remove_context() {
    if (share_.mps) activity_.remove_context();
  }

  // A fatal fault of a client for which share().faults_shared holds, told to all such clients as an error code of the
  // driver; the count rises with each.
  void share_fault(int error);
  std::uint32_t shared_fault_count() const {
    return static_cast<std::uint32_t>(view_->control().mps_fault.load() >> 32);
  }
  int shared_fault() const { return static_cast<int>(view_->control().mps_fault.load() & UINT32_MAX); }

  // Holds the caller until `modelled_ns` x time scale have passed since `begin_ns`, or until `cancel`. Does nothing in
  // fast mode.
  void pace(std::uint64_t begin_ns, std::uint64_t modelled_ns, const std::atomic<bool>& cancel) const;

 private:
  Device(const Machine& machine, const Clients& clients, Owner self, const ClientShare& share,
         std::unique_ptr<DeviceView> view, std::unique_ptr<Window> window, int memory_file);

  const Machine& machine_;
  const Owner self_;
  const ClientShare share_;
  std::unique_ptr<DeviceView> view_;
  DeviceLock lock_;
  Activity activity_;
  PagePool pool_;
  Turn turn_;
  std::unique_ptr<Window> window_;
};

}  // namespace softgpu
