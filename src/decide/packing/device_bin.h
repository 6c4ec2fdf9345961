// One device as the packer sees it: what stands on it, whether a share fits beside that, and how well.
//
// Three ways to say "fits", the rest is the same:
//
//   rectangles   a free rectangle holds it (free_rectangles.h); the paper's
//   rebuilt      the same, the free rectangles made anew at every release
//   exact        the set with it passes the exact test (pacing/admission.h)
//
// Memory and MPS clients are counted by all three.
//
// Example: (12, 40) x 4, (24, 40) x 2 and (50, 60) x 2 stand on one device in each of their 420 orders by the exact test, and in a part of
// them by rectangles.
//
// Not thread-safe. Determinism: of the calls.
#pragma once

#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "decide/pacing/admission.h"
#include "decide/packing/free_rectangles.h"

namespace fairlead {

enum class PackingRule { kRectangles, kRebuilt, kExact };
std::string_view packing_rule_name(PackingRule rule);
// kInvalidArgument lists the names: rectangles, rebuilt, exact.
Result<PackingRule> packing_rule(std::string_view name);

struct PackedInstance {
  InstanceId id;
  PacedShare share;
  bool may_move = false;  // it is idle, or its memory is parked in host memory; an instance that runs is never moved
};

class DeviceBin {
 public:
  // most_free_rectangles: of the list, before it is made anew (rectangles only). `admission` is that of the device's room, and outlives it.
  DeviceBin(PackingRule rule, const DeviceRoom& room, std::size_t most_free_rectangles, Admission& admission);

  // How badly the share would fit beside all but `without` and what is to come: less is better, and is the choice among devices. Nothing
  // where it does not. REQUIRES: by rectangles, nobody is without and nothing to come.
  std::optional<double> misfit(const PacedShare& share, const std::vector<InstanceId>& without = {},
                               const std::vector<PacedShare>& to_come = {}) const;
  // The dimension that keeps the share out. REQUIRES: misfit() has nothing.
  Lacking what_lacks(const PacedShare& share) const;

  // REQUIRES: misfit() has something.
  void put(const PackedInstance& instance);
  // REQUIRES: it is here.
  PackedInstance take(InstanceId id);
  void set_may_move(InstanceId id, bool may_move);

  const std::vector<PackedInstance>& instances() const { return instances_; }
  const DeviceRoom& room() const { return room_; }
  double area_percent() const { return area_percent_; }  // of SMs x time that is promised

 private:
  std::vector<PacedShare> shares(const std::vector<InstanceId>& without) const;
  std::optional<Lacking> lacks_memory_or_clients(const std::vector<PacedShare>& shares) const;

  const PackingRule rule_;
  const DeviceRoom room_;
  Admission& admission_;
  FreeRectangles free_;
  std::vector<PackedInstance> instances_;
  std::vector<Rectangle> rectangles_;  // of each, where the rule has them
  double area_percent_ = 0;
};

}  // namespace fairlead
