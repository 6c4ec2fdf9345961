// Room for one more seat where no device has any: at most two seats whose instances do not run go to another device (packer.h). And a device
// that nobody needs: all of its seats find room on others.
//
// Idea. Functions keep an instance ready each, wherever there was room when it started, and after a while each device has a little room and none
// has enough. Who is idle can sit elsewhere at the price of a start. Who runs never moves.
//
// Example. Device 1 holds (100, 50), which runs, 2 holds (100, 30), which is idle. (100, 70) has room on neither: 50 + 70 and 30 + 70 are more
// than 97. The plan: the idle one goes from 2 to 1, and the new one sits on 2.
//
// With 20 % in place of the 70 % nobody moves. When (100, 50) is idle, too, it goes to 2 or the other to 1, and a device is empty: a move costs a
// fifth of what a device is worth (PackerOptions::move_price), so a device of up to four seats is emptied.
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

// The moves that empty one device, the one with the least on it that can be; none: no device can be, it would cost more than it is worth,
// or the seats that are taken do not fit. A device on which a seat may not move stays in use. REQUIRES: as above.
std::vector<SeatMove> plan_emptying(const std::map<GpuId, DeviceRoom>& devices, const std::vector<SeatTaken>& seats);

}  // namespace fairlead
