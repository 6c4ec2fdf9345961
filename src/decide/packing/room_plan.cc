#include "decide/packing/room_plan.h"

#include "decide/packing/packer.h"

namespace fairlead {

std::optional<RoomPlan> plan_room(const std::map<GpuId, DeviceRoom>& devices, const std::vector<SeatTaken>& seats,
                                  const PacedShare& share) {
  Packer packer{PackerOptions()};
  for (const auto& [gpu, room] : devices) packer.add_device(gpu, room);
  std::map<GpuId, std::size_t> movable;
  for (std::size_t i = 0; i < seats.size(); ++i) {
    const SeatTaken& seat = seats[i];
    if (!devices.contains(seat.gpu)) continue;
    const bool may_move = seat.may_move && movable[seat.gpu]++ < kMostMovable;
    if (!packer.put({.id = InstanceId(i + 1), .share = seat.share, .may_move = may_move}, seat.gpu))
      return std::nullopt;
  }
  const Placement made = packer.place({.id = InstanceId(seats.size() + 1), .share = share, .may_move = false});
  if (!made.gpu || made.moves.empty()) return std::nullopt;
  RoomPlan plan{.gpu = made.gpu, .moves = {}};
  for (const InstanceMove& move : made.moves) {
    plan.moves.push_back({seats[move.instance.value() - 1].function, move.from, move.to});
  }
  return plan;
}

}  // namespace fairlead
