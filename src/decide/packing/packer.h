// On which device an instance goes, over all devices of a cluster; who may move to make room; when a device can be emptied.
//
// Idea. A share goes to the device that it fits best (device_bin.h), an empty one last. By the exact test there is no place on a device, only
// a set that fits, so the best fit is the fullest device. Where no device in use has room, up to two instances that do not run (idle, or
// their memory parked on the host) may go elsewhere, if that costs less than a device. When instances leave, the device with the least on it
// is emptied where all that it holds may move and finds room on others, and the moves cost less than the device.
//
// Price. A move costs `move_price` of what a device in use is worth: at the default of 0.2, two moves for one device are fine, five are
// not worth it. An instance that runs never moves.
//
// Example. Device 1 holds (100, 50), 2 holds (100, 30), which is idle. (100, 80) comes and has room on neither. (100, 30) moves to 1, and
// (100, 80) takes its place on 2. Without the move it would be the only one on a third device.
//
// Not thread-safe. Determinism: of the calls; among equals, the device with the lower number.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "base/ids.h"
#include "decide/packing/device_bin.h"

namespace fairlead {

struct PackerOptions {
  PackingRule rule = PackingRule::kExact;
  std::size_t most_free_rectangles = 16;  // the paper's threshold, to which it gives no value
  int most_moves = 2;                     // of instances for one that comes, 0 to 2; by the exact test only
  double move_price = 0.2;                // of what a device in use is worth, at least 0
};

struct InstanceMove {
  InstanceId instance;
  GpuId from, to;
  bool operator==(const InstanceMove&) const = default;
};

// What one device lacked.
struct DeviceLack {
  GpuId gpu;
  Lacking lacking;
};

struct Placement {
  GpuId gpu;                        // none: it was not placed
  bool was_empty = false;           // the device is one more in use
  std::vector<InstanceMove> moves;  // that were made for it, in order
  std::vector<DeviceLack> lacking;  // why not on the devices in use, where it was not placed or took an empty one
};

class Packer {
 public:
  explicit Packer(const PackerOptions& options) : options_(options) {}

  // REQUIRES: the id is new.
  void add_device(GpuId gpu, const DeviceRoom& room);
  // Returns what stood on it. REQUIRES: it is there.
  std::vector<PackedInstance> remove_device(GpuId gpu);

  // REQUIRES: the id is not placed, the share is valid (check() in paced_share.h).
  Placement place(const PackedInstance& instance);
  // On this device and no other, as it stands already; false where it does not fit. REQUIRES: the id is not placed, the device is there.
  bool put(const PackedInstance& instance, GpuId gpu);
  // What stood there; nothing where it is not placed.
  std::optional<PackedInstance> remove(InstanceId id);
  // The share becomes another one where it stands; false where the device has no room for that, and nothing changes then.
  // REQUIRES: it is placed.
  bool resize(InstanceId id, const PacedShare& share);
  // Whether it may move from now on: it went idle, or runs again.
  void set_may_move(InstanceId id, bool may_move);
  // The moves that empty one device, made; none where no device can be emptied for less than it is worth.
  std::vector<InstanceMove> consolidate();

  GpuId where(InstanceId id) const;  // none: not placed
  const std::map<GpuId, DeviceBin>& devices() const { return devices_; }
  std::size_t devices_in_use() const;

 private:
  Admission& admission_of(const DeviceRoom& room);
  GpuId best_device(const PacedShare& share, bool in_use, GpuId but) const;
  struct RoomMade {
    GpuId gpu;
    std::vector<InstanceMove> moves;
  };
  RoomMade make_room(const PacedShare& share) const;
  std::vector<InstanceMove> to_leave(GpuId gpu, const std::vector<PackedInstance>& leave) const;
  static std::vector<PackedInstance> movable(const DeviceBin& bin);
  void carry_out(const InstanceMove& move);
  std::vector<DeviceLack> why_not(const PacedShare& share) const;

  struct KnownRoom {
    DeviceRoom room;
    std::unique_ptr<Admission> admission;
  };
  const PackerOptions options_;
  std::vector<KnownRoom> rooms_;  // devices that are alike share what is known of sets
  std::map<GpuId, DeviceBin> devices_;
  std::map<InstanceId, GpuId> where_;
};

}  // namespace fairlead
