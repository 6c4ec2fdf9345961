#include "decide/packing/room_plan.h"

#include <algorithm>

#include "decide/packing/packer.h"

namespace fairlead {

namespace {

// False: they do not fit. Seat i is instance i + 1.
bool put_all(Packer& packer, const std::map<GpuId, DeviceRoom>& devices, const std::vector<SeatTaken>& seats,
             std::size_t most_movable) {
  for (const auto& [gpu, room] : devices) packer.add_device(gpu, room);
  std::map<GpuId, std::size_t> movable;
  for (std::size_t i = 0; i < seats.size(); ++i) {
    const SeatTaken& seat = seats[i];
    if (!devices.contains(seat.gpu)) continue;
    const bool may_move = seat.may_move && movable[seat.gpu]++ < most_movable;
    if (!packer.put({.id = InstanceId(i + 1), .share = seat.share, .may_move = may_move}, seat.gpu)) return false;
  }
  return true;
}

std::vector<SeatMove> named(const std::vector<InstanceMove>& moves, const std::vector<SeatTaken>& seats) {
  std::vector<SeatMove> all;
  for (const InstanceMove& move : moves) {
    all.push_back({seats[move.instance.value() - 1].function, move.from, move.to});
  }
  return all;
}

}  // namespace

std::optional<RoomPlan> plan_room(const std::map<GpuId, DeviceRoom>& devices, const std::vector<SeatTaken>& seats,
                                  const PacedShare& share) {
  Packer packer{PackerOptions()};
  if (!put_all(packer, devices, seats, kMostMovable)) return std::nullopt;
  const Placement made = packer.place({.id = InstanceId(seats.size() + 1), .share = share, .may_move = false});
  if (!made.gpu || made.moves.empty()) return std::nullopt;
  return RoomPlan{.gpu = made.gpu, .moves = named(made.moves, seats)};
}

std::vector<SeatMove> plan_emptying(const std::map<GpuId, DeviceRoom>& devices, const std::vector<SeatTaken>& seats) {
  // Mostly there is none, and nothing is asked of the exact test.
  std::map<GpuId, bool> all_may_move;
  for (const SeatTaken& seat : seats) {
    const auto [known, is_first] = all_may_move.try_emplace(seat.gpu, true);
    known->second = known->second && seat.may_move && devices.contains(seat.gpu);
  }
  if (std::ranges::none_of(all_may_move, [](const auto& device) { return device.second; })) return {};
  Packer packer{PackerOptions()};
  if (!put_all(packer, devices, seats, seats.size())) return {};
  return named(packer.consolidate(), seats);
}

}  // namespace fairlead
