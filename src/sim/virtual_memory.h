// Device memory of a virtual node: what its instances hold, the moves that the core asks for, and who waits for either.
//
//   start ──> takes its memory, in parts ──> the device is full ──> Core.needs_room ──> GrantRoom ──> takes it, ready
//   SwapIn ──> waits for its turn on the link, 1.5 GiB at 12 GB/s ──> there ──> the invocation that waited begins
//
// A start that is granted no room exits. Moves of each direction take turns on the
// link of their GPU. Instances of flows without a size (InstanceModel::memory) and on GPUs that are not modelled are not
// here: all they hold is always there.
#pragma once

#include <optional>
#include <vector>

#include "base/id_map.h"
#include "sim/instance_model.h"
#include "sim/scenario.h"
#include "sim/virtual_clock.h"

namespace fairlead::sim {

class VirtualNode;

class VirtualMemory {
 public:
  explicit VirtualMemory(VirtualNode& node) : node_(node) {}

  // `device` must outlive this.
  void add_gpu(GpuId gpu, const DeviceModel& device);
  // Device memory in use, of all instances. REQUIRES: the GPU was added here.
  Bytes used(GpuId gpu) const { return devices_[gpu.value() - 1].used; }

  // It starts, and is to take `size` in so many parts (InstanceModel::Start).
  void add(InstanceId instance, GpuId gpu, Bytes size, int parts);
  // Its process is gone: the device takes its memory back.
  void release(InstanceId instance);

  // A part of its start is over: takes that part of its memory, and is ready when it has all.
  void allocate(InstanceId instance);
  // Whether the invocation, which was delivered, finds its memory. If not it waits, and begins when it is there.
  bool admits(InstanceId instance, InvocationId invocation);
  // The first answer tells what the first invocation took.
  void report_first(InstanceId instance) {
    if (unreported_ > 0) report_unreported(instance);
  }

  void perform(const SwapOutMemory& action);
  void perform(const SwapInMemory& action);
  void perform(const GrantRoom& action);
  void end_swap_out(InstanceId instance, Bytes bytes);
  void end_swap_in(InstanceId instance);
  void ask_for_all(InstanceId instance);      // that its first invocation takes, if it still waits
  void ask_at_the_gate(InstanceId instance);  // for memory that is away, if it still waits

 private:
  struct Device {
    const DeviceModel* model = nullptr;
    Bytes used{0};
    Instant in_free{}, out_free{};  // when the last move each way is over
  };
  struct Holding {
    GpuId gpu;
    Bytes size{0};
    Bytes resident{0};
    Bytes away{0};         // and what is on its way back
    Bytes incoming{0};     // of it
    InvocationId waiting;  // delivered, and its memory is away
    int parts = 0;         // in which it is taken while it starts
    int parts_left = 0;
    int room_requests = 0;
    bool waits_for_room = false;
    bool is_unreported = false;
  };

  void take_all(InstanceId id, Holding& holding);
  void ask_for_room(InstanceId id, Holding& holding, Bytes bytes);
  void wait_at_the_gate(InstanceId id, const Holding& holding);
  std::optional<Duration> begin_move(InstanceId id, MoveDirection direction, const DeviceModel& device, Bytes bytes);
  void end_move(InstanceId id, MoveDirection direction, MoveOutcome outcome);
  void report(InstanceId id);
  void report_unreported(InstanceId id);
  Device& device_of(const Holding& holding) { return devices_[holding.gpu.value() - 1]; }

  VirtualNode& node_;
  std::vector<Device> devices_;  // by GPU
  IdMap<InstanceId, Holding> holdings_;
  std::size_t unreported_ = 0;  // that took their memory in a run which goes on
};

}  // namespace fairlead::sim
