// Room for one more seat where no device has any: at most two seats whose instances do not run go to another device (packer.h).
//
// Idea. Functions keep an instance ready each, wherever there was room when it started, and after a while each device has a little room and none
// has enough. Who is idle can sit elsewhere at the price of a start. Who runs never moves.
//
// Example. Device 1 holds (100, 50), which runs, 2 holds (100, 30), which is idle. (100, 70) has room on neither: 50 + 70 and 30 + 70 are more
// than 97. The plan: the idle one goes from 2 to 1, and the new one sits on 2.
//
// Pure. Determinism: of the arguments. Cost: kMostMovable bounds it, two exact tests for each pair of them on each device.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "decide/pacing/admission.h"

namespace fairlead {

struct SeatTaken {
  std::string function;
  PacedShare share;
  GpuId gpu;
  bool may_move = false;  // its instance does not run
};

struct SeatMove {
  std::string function;
  GpuId from, to;
  bool operator==(const SeatMove&) const = default;
};

struct RoomPlan {
  GpuId gpu;                    // where there is room then
  std::vector<SeatMove> moves;  // 1 or 2, in order
};

inline constexpr std::size_t kMostMovable =
    4;  // seats of one device that are looked at: the first of those that may move

// Nothing: there is no such plan, or the seats that are taken do not fit their devices (one shrank). Seats on devices that are not there
// are left out. REQUIRES: the shares are valid (check() in paced_share.h).
std::optional<RoomPlan> plan_room(const std::map<GpuId, DeviceRoom>& devices, const std::vector<SeatTaken>& seats,
                                  const PacedShare& share);

}  // namespace fairlead
