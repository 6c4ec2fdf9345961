#include "softgpu/ptx/schedule.h"

#include <algorithm>
#include <utility>

#include "softgpu/ptx/budget.h"
#include "softgpu/ptx/isa.h"

namespace softgpu::ptx {
namespace {

constexpr std::size_t kMostCalls = 1024;  // functions without registers need no memory for a call

const Instruction* no_limit() {
  return reinterpret_cast<const Instruction*>(~std::uintptr_t{0});
}

bool same_place(const Group& a, const Group& b) {
  return a.next == b.next && a.frame == b.frame && a.calls == b.calls;
}

// Deeper calls first, so that a call returns before its caller's other lanes run on; then the lowest address.
bool runs_before(const Group& a, const Group& b) {
  if (a.calls.size() != b.calls.size()) return a.calls.size() > b.calls.size();
  return a.next < b.next;
}

void merge_groups(std::vector<Group>& groups) {
  for (std::size_t i = 0; i < groups.size(); ++i) {
    for (std::size_t j = i + 1; j < groups.size();) {
      Group& kept = groups[i];
      const bool waits = kept.state == Group::State::kBarrier || groups[j].state == Group::State::kBarrier;
      if (waits || !same_place(kept, groups[j])) {
        ++j;
        continue;
      }
      kept.mask |= groups[j].mask;
      kept.frame_end = std::max(kept.frame_end, groups[j].frame_end);
      kept.state = Group::State::kReady;
      groups.erase(groups.begin() + static_cast<std::ptrdiff_t>(j));
    }
  }
}

int first_in_state(const std::vector<Group>& groups, Group::State state) {
  int best = -1;
  for (int i = 0; i < static_cast<int>(groups.size()); ++i) {
    const Group& group = groups[static_cast<std::size_t>(i)];
    if (group.state != state) continue;
    if (best < 0 || runs_before(group, groups[static_cast<std::size_t>(best)])) best = i;
  }
  return best;
}

// Groups are parked at the end and keep their place when others merge into them.
int longest_ready(const std::vector<Group>& groups) {
  const auto found = std::find_if(groups.begin(), groups.end(),
                                  [](const Group& group) { return group.state == Group::State::kReady; });
  return found == groups.end() ? -1 : static_cast<int>(found - groups.begin());
}

// Threads that have only to end.
bool needs_no_rows(const Group& group) {
  return group.state == Group::State::kReady && group.calls.empty() &&
         group.next->run == instruction_set().function_end;
}

void set_limit(Warp& warp) {
  warp.limit = no_limit();
  for (const Group& other : warp.others) {
    if (other.state == Group::State::kBarrier || other.frame != warp.group_frame) continue;
    if (other.next > warp.next && other.next < warp.limit) warp.limit = other.next;
  }
  warp.whole = std::all_of(warp.others.begin(), warp.others.end(), needs_no_rows);
}

void park(Warp& warp, const Instruction* next, Group::State state, std::uint8_t barrier = 0) {
  warp.others.push_back({next, warp.mask, warp.group_frame, warp.group_frame_end, warp.local_base, state, barrier,
                         std::move(warp.calls)});
  warp.calls.clear();
  warp.mask = 0;
}

void activate(Warp& warp, std::size_t index) {
  Group group = std::move(warp.others[index]);
  warp.others.erase(warp.others.begin() + static_cast<std::ptrdiff_t>(index));
  warp.next = group.next;
  warp.mask = group.mask;
  set_frame(warp, group.frame);
  warp.group_frame_end = group.frame_end;
  warp.local_base = group.local;
  warp.calls = std::move(group.calls);
  set_limit(warp);
}

// Lanes that have not executed `at` after all: it counts them when they do.
void uncount_lanes(Warp& warp, const Instruction* at, std::uint32_t lanes) {
  warp.lane_instructions -= std::uint64_t{at->counted} * static_cast<unsigned>(__builtin_popcount(lanes));
}

// The lanes `off` become a group of their own, which will execute `at` itself.
void divide(Warp& warp, const Instruction* at, std::uint32_t off, Group::State state) {
  uncount_lanes(warp, at, off);
  warp.others.push_back({at, off, warp.group_frame, warp.group_frame_end, warp.local_base, state, 0, warp.calls});
  warp.mask &= ~off;
  warp.next = at;
  set_limit(warp);
}

const Instruction* choose(Warp& warp, bool longest_waiting) {
  merge_groups(warp.others);
  int best = longest_waiting ? longest_ready(warp.others) : first_in_state(warp.others, Group::State::kReady);
  if (best < 0) {
    best = first_in_state(warp.others, Group::State::kConverge);
    warp.converge_anyway = best >= 0;
  }
  if (best < 0) {
    warp.mask = 0;
    warp.next = nullptr;
    warp.status = warp.others.empty() ? WarpStatus::kExited : WarpStatus::kBarrier;
    return nullptr;
  }
  activate(warp, static_cast<std::size_t>(best));
  return warp.next;
}

void write_reduction(std::byte* frame, std::uint32_t mask, const Instruction& at, std::uint32_t value) {
  if (at.dst == kNoRow) return;
  auto* row = reinterpret_cast<std::uint32_t*>(frame + at.dst);
  if (static_cast<BarrierMode>(at.mode & 7) != BarrierMode::kPopc) {
    *row = (*row & ~mask) | (value != 0 ? mask : 0);
    return;
  }
  for (int lane = 0; lane < kLanes; ++lane) {
    if (mask >> lane & 1) row[lane] = value;
  }
}

std::uint32_t reduction(const Barrier& barrier, const Instruction& at, std::uint32_t lanes) {
  switch (static_cast<BarrierMode>(at.mode & 7)) {
    case BarrierMode::kAnd: return barrier.count_true == lanes;
    case BarrierMode::kOr: return barrier.count_true != 0;
    default: return barrier.count_true;
  }
}

void release_barrier(Block& block, int id) {
  Barrier& barrier = block.barriers[id];
  const std::uint32_t lanes = barrier.lanes;
  for (Warp& warp : block.warps) {
    if (warp.waits_at == id) {
      const Instruction& at = warp.next[-1];
      write_reduction(warp.frame, warp.mask, at, reduction(barrier, at, lanes));
      warp.waits_at = -1;
      warp.status = WarpStatus::kReady;
    }
    for (Group& group : warp.others) {
      if (group.state != Group::State::kBarrier || group.barrier != id) continue;
      const Instruction& at = group.next[-1];
      write_reduction(warp.frames + group.frame, group.mask, at, reduction(barrier, at, lanes));
      group.state = Group::State::kReady;
      if (warp.status == WarpStatus::kBarrier) warp.status = WarpStatus::kReady;
    }
  }
  barrier = {};
}

bool is_complete(const Block& block, const Barrier& barrier) {
  if (barrier.lanes == 0) return false;
  return barrier.expected != 0 ? barrier.arrived >= barrier.expected : barrier.lanes >= block.live_lanes;
}

}  // namespace

const Instruction* raise(Warp& warp, const Instruction* at, FaultKind kind, std::uint64_t address, int lane) {
  warp.fault.kind = kind;
  warp.fault.address = address;
  warp.fault.lane = lane;
  warp.fault.instruction = at;
  warp.status = WarpStatus::kFaulted;
  return nullptr;
}

const Instruction* raise(Warp& warp, const Instruction* at, FaultKind kind, std::string detail) {
  warp.fault.detail = std::move(detail);
  return raise(warp, at, kind, 0, __builtin_ctz(warp.mask | 0x80000000u));
}

const Instruction* switch_group(Warp& warp, const Instruction* next) {
  park(warp, next, Group::State::kReady);
  return choose(warp, false);
}

// Patience is the warp's, not a group's: groups that divide and meet in a loop must give way, too. Whoever has waited
// longest goes on, so that none of three or more groups is passed over for ever.
const Instruction* give_way(Warp& warp, const Instruction* next) {
  warp.patience = kPatience;
  park(warp, next, Group::State::kReady);
  return choose(warp, true);
}

const Instruction* diverge(Warp& warp, const Instruction* branch, std::uint32_t taken) {
  const Instruction* behind = branch + 1;
  const std::uint32_t rest = warp.mask & ~taken;
  warp.others.push_back(
      {behind, rest, warp.group_frame, warp.group_frame_end, warp.local_base, Group::State::kReady, 0, warp.calls});
  warp.mask = taken;
  const bool spins = branch->target <= branch && --warp.patience < 0;
  const Instruction* next = spins ? give_way(warp, branch->target) : switch_group(warp, branch->target);
  if (branch->target <= branch && spend_branch(warp, branch, branch->target) && next != nullptr) {
    return pause(warp, next);
  }
  return next;
}

void split_off(Warp& warp, const Instruction* at, std::uint32_t stay) {
  divide(warp, at, warp.mask & ~stay, Group::State::kReady);
}

void hold_back(Warp& warp, const Instruction* at, std::uint32_t waiting) {
  divide(warp, at, waiting, Group::State::kConverge);
}

const Instruction* await_lanes(Warp& warp, const Instruction* at) {
  warp.instructions -= at->counted;
  uncount_lanes(warp, at, warp.mask);
  park(warp, at, Group::State::kConverge);
  return choose(warp, false);
}

const Instruction* exit_lanes(Warp& warp) {
  Block& block = *warp.block;
  warp.live &= ~warp.mask;
  block.live_lanes -= static_cast<std::uint32_t>(__builtin_popcount(warp.mask));
  warp.mask = 0;
  for (int id = 0; id < kBarriers; ++id) {
    if (is_complete(block, block.barriers[id])) release_barrier(block, id);
  }
  if (warp.others.empty()) {
    warp.status = WarpStatus::kExited;
    return pause(warp, nullptr);
  }
  // Nobody waits for lanes that have ended: those that did look again.
  for (Group& group : warp.others) {
    if (group.state == Group::State::kConverge) group.state = Group::State::kReady;
  }
  return choose(warp, false);
}

const Instruction* arrive(Warp& warp, const Instruction* at, std::uint32_t id, std::uint32_t count,
                          std::uint32_t predicate) {
  Block& block = *warp.block;
  Barrier& barrier = block.barriers[id];
  const auto lanes = static_cast<std::uint32_t>(__builtin_popcount(warp.mask));
  barrier.lanes += lanes;
  // A count is in whole warps: a warp that ends early, or the block's last one, stands for 32 threads.
  barrier.arrived += warp.mask == warp.live ? kLanes : lanes;
  barrier.expected = count;
  barrier.count_true += static_cast<std::uint32_t>(__builtin_popcount(predicate & warp.mask));
  const bool waits = static_cast<BarrierMode>(at->mode & 7) != BarrierMode::kArrive;
  if (!waits) {
    if (is_complete(block, barrier)) release_barrier(block, static_cast<int>(id));
    return at + 1;
  }
  if (warp.others.empty()) {
    warp.next = at + 1;
    warp.waits_at = static_cast<int>(id);
    warp.status = WarpStatus::kBarrier;
    if (!is_complete(block, barrier)) return nullptr;
    release_barrier(block, static_cast<int>(id));
    return at + 1;
  }
  park(warp, at + 1, Group::State::kBarrier, static_cast<std::uint8_t>(id));
  if (is_complete(block, barrier)) release_barrier(block, static_cast<int>(id));
  return choose(warp, false);
}

const Instruction* resume(Warp& warp) {
  if (warp.next != nullptr) {
    // Threads that only have to end wait for long loops, but not for ever.
    const bool others_end = warp.whole && !warp.others.empty();
    return others_end ? give_way(warp, warp.next) : warp.next;
  }
  return choose(warp, false);
}

bool push_call(Warp& warp, const Instruction* call, const Code& callee) {
  std::uint32_t begin = warp.group_frame_end;
  // Groups in different functions lay out their rows differently, so each gets memory of its own.
  for (const Group& other : warp.others) begin = std::max(begin, other.frame_end);
  const std::uint64_t end = align_up(begin + callee.frame_bytes, kRowAlignment);
  const std::uint64_t local = warp.local_base + call->immediate;
  if (warp.calls.size() >= kMostCalls || end > warp.run->frame_bytes || local + callee.local_bytes > warp.local_bytes) {
    raise(warp, call, FaultKind::kLaunchFailed, "call stack overflow");
    return false;
  }
  warp.calls.push_back({call, &callee, warp.group_frame, warp.local_base});
  set_frame(warp, begin);
  warp.group_frame_end = static_cast<std::uint32_t>(end);
  warp.local_base = static_cast<std::uint32_t>(local);
  warp.next = call;
  set_limit(warp);
  return true;
}

CallRecord pop_call(Warp& warp) {
  const CallRecord record = warp.calls.back();
  warp.calls.pop_back();
  warp.group_frame_end = warp.group_frame;
  set_frame(warp, record.frame);
  warp.local_base = record.local;
  warp.next = record.call;
  set_limit(warp);
  return record;
}

}  // namespace softgpu::ptx
