// One device as one process uses it, and the machine that holds all of them.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "softgpu/device/clients.h"
#include "softgpu/device/device_lock.h"
#include "softgpu/device/faults.h"
#include "softgpu/device/machine.h"
#include "softgpu/device/memory/heap.h"
#include "softgpu/device/memory/page_pool.h"
#include "softgpu/device/memory/window.h"
#include "softgpu/device/mig/part.h"
#include "softgpu/device/time/activity.h"
#include "softgpu/device/time/busy_meter.h"
#include "softgpu/device/time/time_model.h"
#include "softgpu/device/time/turn.h"
#include "softgpu/device/users.h"
#include "softgpu/mutex.h"

namespace softgpu {

// The path of a device's file; `what` is "control", "memory" or "settings".
std::string device_file(const Machine& machine, unsigned device, std::string_view what);

// The shared state of a device, for reading: what NVML and the tools need.
class DeviceView {
 public:
  // Makes the device's files where they are absent, its memory's too: the members of a shared folder's group cannot.
  static Result<std::unique_ptr<DeviceView>> open(const Clients& clients, const Part& part);
  // The whole GPU.
  static Result<std::unique_ptr<DeviceView>> open(const Machine& machine, const Clients& clients, unsigned index) {
    return open(clients, whole_gpu(machine, index));
  }

  const Part& part() const { return part_; }
  unsigned index() const { return part_.gpu; }
  // Turn, users and statistics; the page table is another's when the device is a MIG compute instance.
  Control& control() const { return compute_; }
  Control& memory() const { return memory_; }
  std::uint64_t total_bytes() const { return part_.page_count() * kPageBytes; }
  PageUse use() const { return PagePool(memory_, part_.page_count(), clients_, -1).use(); }
  Users users() const { return Users(compute_, clients_); }
  BusyMeter meter() const { return BusyMeter(compute_); }
  // Of the whole GPU.
  Faults faults() const { return Faults(gpu_); }
  // The use of the last second.
  BusyMeter::Sample sample() const;
  // Why the shared state cannot be what this library wrote, empty when it can: a file was cut short, or a word has a value
  // that no process stores. Words that are possible and wrong are not seen. Thread-safe.
  std::string damage() const;

 private:
  DeviceView(Part part, Control& gpu, Control& memory, Control& compute, const Clients& clients)
      : part_(std::move(part)), gpu_(gpu), memory_(memory), compute_(compute), clients_(clients) {}

  const Part part_;
  Control& gpu_;
  Control& memory_;
  Control& compute_;
  const Clients& clients_;
};

// A device that this process computes on.
class Device {
 public:
  // Error: the shared state is missing, of another version or damaged; says what to do.
  static Result<std::unique_ptr<Device>> open(const Machine& machine, const Clients& clients, Owner self,
                                              const Part& part, const ClientShare& share);
  // The same, with all of the device and by turns.
  static Result<std::unique_ptr<Device>> open(const Machine& machine, const Clients& clients, Owner self,
                                              const Part& part);
  // The whole GPU.
  static Result<std::unique_ptr<Device>> open(const Machine& machine, const Clients& clients, Owner self,
                                              unsigned index, const ClientShare& share) {
    return open(machine, clients, self, whole_gpu(machine, index), share);
  }
  static Result<std::unique_ptr<Device>> open(const Machine& machine, const Clients& clients, Owner self,
                                              unsigned index) {
    return open(machine, clients, self, whole_gpu(machine, index));
  }

  // Marks this process as a user from its first context to its last, one call per context. What stands against it:
  enum class Refusal {
    kNone,
    kBusy,  // the compute mode allows no process, or no second one
    kGone,  // the instance was destroyed, the GPU is in MIG mode, or its state cannot be read
  };
  Refusal attach();
  void detach();

  unsigned index() const { return view_->index(); }
  const Part& part() const { return view_->part(); }
  // Equal for devices with the same memory: a GPU, or the compute instances of one GPU instance.
  std::uint32_t memory_id() const { return index() | (part().mig ? (part().mig->gpu_instance + 1) << 8 : 0); }
  const Machine& machine() const { return machine_; }
  const Profile& profile() const { return part().profile; }
  std::uint64_t context_bytes() const { return (profile().context_mib << 20) / machine_.memory_scale; }
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

  std::unique_ptr<Heap> make_heap() { return std::make_unique<Heap>(*window_, pool_, memory_lock_, faults(), self_); }
  // The heap of a memory pool that claims pages in the name of `name`.
  std::unique_ptr<Heap> make_pool_heap(const PageEntry& name, std::uint64_t limit_pages) {
    return std::make_unique<Heap>(*window_, pool_, memory_lock_, faults(), name, limit_pages);
  }
  // Accounts `bytes` as used without an address; false when the device is full. Give them back with release_pages().
  bool reserve_pages(std::uint64_t bytes, std::vector<PageRun>& runs);
  void release_pages(const std::vector<PageRun>& runs) { pool_.release(runs); }
  // Physical pages outside any heap (PagePool).
  std::vector<PageRun> claim_pages(const PageEntry& first, std::uint64_t count) {
    return pool_.claim(memory_lock_, first, count);
  }
  std::vector<PageRun> find_pages(const PageEntry& first, std::uint64_t count) const {
    return pool_.find(first, count);
  }
  void collect_pages() { pool_.collect(memory_lock_); }
  PagePool& pool() { return pool_; }
  Control& control() const { return view_->control(); }
  // The pages another process maps at `window_page` and on.
  std::vector<PageRun> find_pages(Owner owner, std::uint64_t window_page, std::uint64_t count) const {
    return pool_.find(owner, window_page, count);
  }

  // Counts a context of an MPS client, unless the answer says why not. Does nothing for a process that takes turns.
  Activity::ContextRefusal add_context() {
    return share_.mps ? activity_.add_context(share_) : Activity::ContextRefusal::kNone;
  }
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

  Refusal admission() const;

  const Machine& machine_;
  const Owner self_;
  const ClientShare share_;
  std::unique_ptr<DeviceView> view_;
  DeviceLock memory_lock_;
  DeviceLock compute_lock_;
  Activity activity_;
  PagePool pool_;
  Turn turn_;
  std::unique_ptr<Window> window_;

  Mutex attach_mutex_;
  unsigned attached_ SOFTGPU_GUARDED_BY(attach_mutex_) = 0;
};

}  // namespace softgpu
