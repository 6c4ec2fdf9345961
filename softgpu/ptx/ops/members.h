// Which lanes of a warp execute an instruction together.
//
// An instruction with a member mask has one mask per lane. Lanes that name the same mask are a team: the halves of a
// converged warp that name their own 16 lanes each are two teams, and each gets a result of its own. A team waits until
// every member that still lives has come to the instruction. Teams do not wait for one another.
#pragma once

#include <span>
#include <utility>

#include "softgpu/ptx/rows.h"
#include "softgpu/ptx/schedule.h"

#include "softgpu/ptx/isa_begin.h"
namespace softgpu::ptx::SOFTGPU_ISA {

struct Team {
  std::uint32_t lanes;    // that execute the instruction now
  std::uint32_t members;  // that they name and that are there: their results are over these
};

// Without initial values, which would take longer than most instructions that use it.
struct Teams {
  int count;
  Team all[kLanes];
  std::span<const Team> list() const { return {all, static_cast<std::size_t>(count)}; }
};

template <class T>
inline std::uint32_t lanes_equal_to(const T* values, T value) {
  std::uint32_t equal = 0;
  for (int lane = 0; lane < kLanes; ++lane) equal |= static_cast<std::uint32_t>(values[lane] == value) << lane;
  return equal;
}

// Lanes of several masks, or a team of which members are missing. Lanes whose members are missing stay behind.
[[gnu::noinline]] inline bool divide_into_teams(Warp& warp, const Instruction* at, Teams& teams) {
  const auto* masks = source<std::uint32_t>(warp, at->d);
  const std::uint32_t present = warp.mask;
  const bool anyway = std::exchange(warp.converge_anyway, false);
  std::uint32_t ready = 0;
  for (std::uint32_t rest = present; rest != 0; rest &= rest - 1) {
    const int lane = __builtin_ctz(rest);
    if (anyway || (masks[lane] & warp.live & ~present) == 0) ready |= 1u << lane;
  }
  if (ready == 0) return false;
  if (ready != present) hold_back(warp, at, present & ~ready);
  teams.count = 0;
  for (std::uint32_t rest = ready; rest != 0;) {
    const std::uint32_t mask = masks[__builtin_ctz(rest)];
    const std::uint32_t lanes = lanes_equal_to(masks, mask) & rest;
    teams.all[teams.count++] = {lanes, mask & warp.live & present};
    rest &= ~lanes;
  }
  return true;
}

// The teams of the current lanes; the masks lie in row d. When it is false the handler returns await_lanes and is
// executed again. Lanes that have to wait are no longer current when it is true.
//
// A mask that PTX leaves undefined has a meaning here, too: a lane that is not in its own mask gets the result of the
// lanes it names; lanes that can never come are left out.
inline bool assemble(Warp& warp, const Instruction* at, Teams& teams) {
  const auto* masks = source<std::uint32_t>(warp, at->d);
  const std::uint32_t mask = masks[__builtin_ctz(warp.mask)];
  const bool are_there = (mask & warp.live & ~warp.mask) == 0;
  // A constant is one mask for all.
  const bool is_one_team = at->d < 0 || (lanes_equal_to(masks, mask) & warp.mask) == warp.mask;
  if (!are_there || !is_one_team) [[unlikely]]
    return divide_into_teams(warp, at, teams);
  warp.converge_anyway = false;
  teams.count = 1;
  teams.all[0] = {warp.mask, mask & warp.live};
  return true;
}

// For the .aligned instructions of a whole warp, which carry no mask.
inline bool is_warp_together(Warp& warp) {
  const bool anyway = std::exchange(warp.converge_anyway, false);
  return warp.mask == warp.live || anyway;
}

// Gives the lanes of each team `value(team)`.
template <class T, class F>
inline void write_teams(Warp& warp, std::int32_t offset, const Teams& teams, const F& value) {
  if (teams.count == 1) [[likely]]
    return write_uniform<T>(warp, offset, value(teams.all[0]));
  alignas(kRowAlignment) T values[kLanes] = {};
  for (const Team& team : teams.list()) {
    const T own = value(team);
    const std::uint32_t lanes = team.lanes;
    SOFTGPU_LANES values[lane] = (lanes >> lane) & 1 ? own : values[lane];
  }
  blend(row<T>(warp, offset), values, warp.mask);
}

// The lanes of the teams for which `holds(team)`.
template <class F>
inline std::uint32_t lanes_of_teams(const Teams& teams, const F& holds) {
  std::uint32_t lanes = 0;
  for (const Team& team : teams.list()) lanes |= holds(team) ? team.lanes : 0;
  return lanes;
}

}  // namespace softgpu::ptx::SOFTGPU_ISA
#include "softgpu/ptx/isa_end.h"
