// The lanes that calls of a device server run on: four at first, up to sixteen as calls overlap, shared beyond. Those of calls that are kept to a part
// of the SMs are beside them (part_lanes.h).
//
// A call gets a lane that no other is on: behind one that waits for its constants another would wait with it.
//
// Threads: the device server's loop.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/device_server/kernel_session.h"
#include "runtime/device_server/part_lanes.h"

namespace fairlead {

class LanePool {
 public:
  static constexpr std::size_t kFirst = 4;
  static constexpr std::size_t kMost = 16;

  // Errors: the driver's, of making kFirst lanes.
  static Result<std::unique_ptr<LanePool>> create(CudaContext& cuda);

  // Each lane, and those to come, have so many events. kUnavailable, or the driver's words.
  Status need_events(std::uint32_t count);
  LaunchLane& take();
  void give_back(const LaunchLane& lane);  // REQUIRES: it was taken, once for each call
  LaunchLane& first() { return *lanes_.front().lane; }
  PartLanes& parts() { return parts_; }  // whose lanes come back by give_back(), too

 private:
  struct Held {
    std::unique_ptr<LaunchLane> lane;
    std::uint32_t calls = 0;  // that are on it
  };

  explicit LanePool(CudaContext& cuda) : cuda_(cuda), parts_(cuda) {}
  Status make_lane();

  CudaContext& cuda_;
  std::vector<Held> lanes_;
  std::uint32_t events_ = 0;  // of each
  std::size_t next_ = 0;      // of those that are shared
  PartLanes parts_;
};

}  // namespace fairlead
