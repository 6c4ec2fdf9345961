// What follows, device by device, in the order of claims: room for what runs, its memory back; then what is about to run;
// then threads of instances that nothing was sent to; then what is expected to be called.
#include <algorithm>

#include "decide/residency/residency.h"

namespace fairlead {
namespace {

using Motion = RecordState::Motion;

constexpr int kLater = 2;

}  // namespace

bool Residency::Record::absent() const {
  const bool shall_return = use.away > Bytes(0) || state.way_back() == RecordState::WayBack::kDoubted;
  return shall_return && !state.moving() && !state.stopping();
}

Bytes Residency::Record::occupied() const {
  if (!state.reported()) return demand;
  return std::max(granted, state.motion() == Motion::kReturning ? use.resident + use.away : use.resident);
}

// Into room that it was granted before any other.
Bytes Residency::Record::returning() const {
  return std::max(Bytes(0), use.resident + use.away - occupied());
}

Bytes Residency::Record::reserved() const {
  return state.runs() ? std::max(demand, occupied()) : occupied();
}

Bytes Residency::Record::movable() const {
  const bool can_move = idle() && state.motion() == Motion::kStill && !state.unmovable();
  return can_move ? use.movable() : Bytes(0);
}

Bytes Residency::Record::outgoing() const {
  if (state.stopping()) return occupied();
  return state.motion() == Motion::kLeaving && idle() ? moving_bytes : Bytes(0);  // what runs takes it back
}

Residency::Books Residency::Record::books() const {
  return {.occupied = occupied(),
          .reserved = reserved(),
          .outgoing = outgoing(),
          .on_the_link = state.moving() ? moving_bytes : Bytes(0),
          .absent_runs = absent() && state.runs(),
          .absent_idle = absent() && !state.runs(),
          .movable = movable() > Bytes(0),
          .wanted = state.wants(),
          .may_grow = state.starts() || (state.runs() && !state.reported())};
}

// Devices on which nothing has happened since nothing followed are left alone: nothing would follow now.
void Residency::settle(Instant now, ResidencyDecisions& out) {
  if (unsettled_.empty()) return;
  settling_.swap(unsettled_);
  const auto by_id = [](const Device* a, const Device* b) { return a->id < b->id; };
  if (settling_.size() > 1) std::sort(settling_.begin(), settling_.end(), by_id);
  for (Device* device : settling_) {
    device->unsettled = false;
    settle(now, *device, out);
  }
  settling_.clear();
}

// What changes a record unsettles its device again, here too. So does what depends on the time, on other flows or on what is
// decided elsewhere.
void Residency::settle(Instant now, Device& device, ResidencyDecisions& out) {
  if (device.reporting == 0 && device.requests.empty()) return;
  if (!device.requests.empty()) answer_requests(now, device, out);
  if (options_.policy != MemoryPolicy::kNone) make_room_for_runs(now, device, out);
  bring_back_runs(now, device, out);
  if (options_.policy != MemoryPolicy::kNone) prefetch(now, device, out);
  bring_back_wanted(now, device, out);
  if (options_.policy != MemoryPolicy::kNone) anticipate(now, device, out);
  const bool is_short = device.memory > Bytes(0) && device.books.reserved > device.room() + device.books.outgoing;
  const bool waits = !device.requests.empty() || !device.absent_runs.empty() || device.books.wanted > 0;
  if (is_short || waits || device.some_called) unsettle(device);
}

// Memory of unknown size is never short by the books; instances say when it is.
void Residency::make_room_for_runs(Instant now, Device& device, ResidencyDecisions& out) {
  if (device.memory == Bytes(0)) return;
  const Bytes short_of = device.books.reserved - device.room() - device.books.outgoing;
  if (short_of > Bytes(0)) {
    collect_candidates(now, device, Displace::kAnyIdle, InstanceId());
    swap_out(now, device, short_of, out);
  }

  // What could not leave blocks a running invocation: its instance goes.
  Bytes waited_for{0};
  for (const Record* record : device.absent_runs) {
    if (may_return(device, *record)) waited_for += record->returning();
  }
  if (waited_for == Bytes(0)) return;
  const Bytes blocked = device.books.occupied + waited_for - device.room() - device.books.outgoing;
  if (blocked > Bytes(0)) stop_idle(now, device, blocked, InstanceId(), out);
}

bool Residency::may_return(const Device& device, const Record& record) const {
  using WayBack = RecordState::WayBack;
  const WayBack way = record.state.way_back();
  return record.absent() && way != WayBack::kFailed && !(way == WayBack::kFull && record.full_at == device.freed);
}

void Residency::bring_back_runs(Instant now, Device& device, ResidencyDecisions& out) {
  if (device.absent_runs.empty()) return;
  Bytes occupied = device.books.occupied;
  const auto fits = [&](const Record* record) {
    if (device.memory == Bytes(0)) return true;
    const bool is_alone = occupied == record->occupied();  // then it is tried whatever else the device says
    return occupied + record->returning() <= (is_alone ? device.memory : device.room());
  };
  std::vector<Record*> waiting;
  for (Record* record : device.absent_runs) {
    if (may_return(device, *record) && fits(record)) waiting.push_back(record);
  }
  std::sort(waiting.begin(), waiting.end(), [](const Record* a, const Record* b) {
    return std::pair(a->last_used, a->id) < std::pair(b->last_used, b->id);
  });
  for (Record* record : waiting) {
    if (!fits(record)) continue;
    occupied += record->returning();
    start_move(now, device, *record, RecordEvent::kReturns, record->use.away, out);
  }
}

// Of the idle instances of its flow here.
bool Residency::is_latest(const Record& record) {
  const std::vector<Record*>& others = record.function == nullptr ? record.device->records : record.function->records;
  return std::none_of(others.begin(), others.end(), [&record](const Record* other) {
    return other != &record && other->flow == record.flow && other->device == record.device && other->idle() &&
           std::pair(other->last_used, other->id) > std::pair(record.last_used, record.id);
  });
}

// For each flow with work that waits for a slot: its most recently used idle instance here, the longest queue first.
void Residency::prefetch(Instant now, Device& device, ResidencyDecisions& out) {
  struct Ahead {
    Record* record;
    std::size_t queued;
  };
  if (!std::exchange(device.some_called, false)) return;
  std::vector<Ahead> ahead;
  for (Record* record : device.absent_idle) {
    const std::size_t queued = waiting(*record);
    device.some_called |= record->function != nullptr && record->function->may_have_queued;
    if (queued > 0 && may_return(device, *record) && is_latest(*record)) ahead.push_back({record, queued});
  }
  std::sort(ahead.begin(), ahead.end(), [](const Ahead& a, const Ahead& b) {
    return std::pair(b.queued, a.record->id) < std::pair(a.queued, b.record->id);
  });
  Bytes promised{0};
  const Displace displace = options_.policy == MemoryPolicy::kPrefetchSwap ? Displace::kLeaving : Displace::kNobody;
  for (const Ahead& next : ahead) {
    bring_back_idle(now, device, *next.record, {RecordEvent::kReturnsAhead, displace}, promised, out);
  }
}

void Residency::bring_back_wanted(Instant now, Device& device, ResidencyDecisions& out) {
  if (device.books.wanted == 0) return;
  Bytes promised{0};
  for (Record* record : device.records) {
    if (!record->state.wants()) continue;
    if (record->use.away == Bytes(0) && take(*record, RecordEvent::kSatisfied)) recount(*record);
    if (!record->state.wants() || !may_return(device, *record)) continue;
    bring_back_idle(now, device, *record, {RecordEvent::kReturns, Displace::kLeavingUnlessServed}, promised, out);
  }
}

// Nobody has called them yet. Whenever something has ended or left, the memory of the flow that is expected soonest returns:
// into free room, or in the place of what is expected kLater times as late. So what a rare call drove out is back before its
// own next call. Example: A is called every 2 s, C once an hour. C drove A's memory out and is answered: C's leaves, A's
// returns, and A's next call is device-warm.
//
// One at a time, and only while nothing moves: nobody who is called shall wait for it. No two take turns in one place, as each
// would have to be called kLater times as often as the other.
void Residency::anticipate(Instant now, Device& device, ResidencyDecisions& out) {
  const Bytes moving = device.books.on_the_link + device.books.outgoing;
  if (device.absent_idle.empty() || device.anticipated_at == device.freed || moving > Bytes(0)) return;
  if (device.memory == Bytes(0) || !device.requests.empty()) return;
  if (device.books.may_grow > 0) return;
  device.anticipated_at = device.freed;
  Record* next = expected_soonest(now, device);
  if (next == nullptr) return;
  const Bytes over = device.books.reserved + next->use.away - device.room();
  if (over <= Bytes(0)) {
    start_move(now, device, *next, RecordEvent::kReturnsAhead, next->use.away, out);
    return;
  }
  if (options_.policy != MemoryPolicy::kPrefetchSwap) return;
  const Duration soonest = expected_gap(now, *next);
  const Bytes available = collect_candidates(now, device, Displace::kNotQueued, next->id, soonest);
  if (available >= over) swap_out(now, device, over, out);
}

std::size_t Residency::ask_for_waiting(const Record& record) const {
  const FlowDemand demand = context_.demand_of(record.flow);
  record.function->may_have_queued = demand.queued > 0;
  return demand.claim == Claim::kQueued ? demand.queued : 0;
}

Residency::Record* Residency::expected_soonest(Instant now, const Device& device) const {
  Record* next = nullptr;
  Duration soonest = ArrivalPace::kNeverCalled;
  for (Record* record : device.absent_idle) {
    const Duration gap = expected_gap(now, *record);
    if (gap >= soonest || !may_return(device, *record) || !is_latest(*record)) continue;
    next = record;
    soonest = gap;
  }
  return next;
}

// Into free room; else what `purpose` may displace leaves first, if that is enough. `promised`: room that earlier ones will
// take once it is free.
void Residency::bring_back_idle(Instant now, Device& device, Record& record, const Purpose& purpose, Bytes& promised,
                                ResidencyDecisions& out) {
  const Bytes over = device.books.reserved + promised + record.use.away - device.room();
  if (device.memory == Bytes(0) || over <= Bytes(0)) {
    start_move(now, device, record, purpose.event, record.use.away, out);
    return;
  }
  const Bytes short_of = over - device.books.outgoing;
  if (short_of > Bytes(0)) {
    if (collect_candidates(now, device, purpose.displace, record.id) < short_of) return;
    swap_out(now, device, short_of, out);
  }
  promised += record.use.away;
}

// ---- who leaves

// How much of them could leave. `later_than`: only those that are expected kLater times as late.
Bytes Residency::collect_candidates(Instant now, const Device& device, Displace displace, InstanceId except,
                                    Duration later_than) {
  candidates_.clear();
  Bytes sum{0};
  if (options_.policy == MemoryPolicy::kNone || displace == Displace::kNobody) return sum;
  const Claim greatest = displace == Displace::kAnyIdle     ? Claim::kQueued
                         : displace == Displace::kNotQueued ? Claim::kKept
                                                            : Claim::kLeaving;
  for (const Record* record : device.movable) {
    if (record->id == except || (displace == Displace::kLeavingUnlessServed && record->state.was_served())) continue;
    const Duration gap = expected_gap(now, *record);
    if (gap / kLater <= later_than) continue;
    const Claim claim = context_.demand_of(record->flow).claim;
    if (claim > greatest) continue;
    candidates_.push_back({record->id, claim, record->last_used, gap, record->movable()});
    sum += candidates_.back().movable;
  }
  return sum;
}

Bytes Residency::swap_out(Instant now, Device& device, Bytes bytes, ResidencyDecisions& out,
                          std::set<InstanceId>* chosen) {
  Bytes leaving{0};
  while (leaving < bytes && !candidates_.empty()) {
    const std::size_t victim = swap_->victim(candidates_);
    Record& record = records_.at(candidates_[victim].instance);
    const Bytes part = std::min(bytes - leaving, candidates_[victim].movable);
    start_move(now, device, record, RecordEvent::kLeaves, part, out);
    if (chosen != nullptr) chosen->insert(record.id);
    leaving += part;
    candidates_.erase(candidates_.begin() + static_cast<std::ptrdiff_t>(victim));
  }
  return leaving;
}

Bytes Residency::stop_idle(Instant now, Device& device, Bytes bytes, InstanceId except, ResidencyDecisions& out,
                           std::set<InstanceId>* chosen) {
  std::vector<InstanceId> idle;
  for (const Record* record : device.records) {
    const bool holds = record->idle() && !record->state.moving() && record->occupied() > Bytes(0);
    if (holds && record->id != except && context_.may_stop(record->id)) idle.push_back(record->id);
  }
  Bytes leaving{0};
  while (leaving < bytes && !idle.empty()) {
    const InstanceId victim = context_.cheapest_to_stop(idle);
    std::erase(idle, victim);
    Record& record = records_.at(victim);
    leaving += record.occupied();
    begin_stop(now, record);
    if (chosen != nullptr) chosen->insert(victim);
    out.push_back(StopIdle{victim});
  }
  return leaving;
}

void Residency::start_move(Instant now, Device& device, Record& record, RecordEvent event, Bytes bytes,
                           ResidencyDecisions& out) {
  const MoveDirection direction = event == RecordEvent::kLeaves ? MoveDirection::kOut : MoveDirection::kIn;
  must_take(record, event);
  record.moving_bytes = bytes;
  record.before_move = record.use;
  recount(record);
  record.move_began = now;
  record.on_the_link_then = device.books.on_the_link;
  const Duration on_the_link(device.books.on_the_link.count());  // at a byte per nanosecond
  set_deadline(record, now + options_.move_deadline + on_the_link);
  ++(direction == MoveDirection::kOut ? counters_.swap_outs : counters_.swap_ins);
  out.push_back(Move{record.id, device.id, direction, bytes});
}

}  // namespace fairlead
