#include "decide/residency/memory_returns.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace fairlead {

// What changes a record unsettles its device again, here too.
void MemoryReturns::decide(Instant now, MemoryDevice& device, ResidencyDecisions& out) {
  const bool may_move = policy_ != MemoryPolicy::kNone;
  if (may_move) make_room_for_runs(now, device, out);
  bring_back_runs(now, device, out);
  if (may_move) prefetch(now, device, out);
  bring_back_wanted(now, device, out);
  if (may_move) anticipate(now, device, out);
}

// Memory of unknown size is never short by the books; instances say when it is.
void MemoryReturns::make_room_for_runs(Instant now, MemoryDevice& device, ResidencyDecisions& out) {
  if (device.memory == Bytes(0)) return;
  const Bytes short_of = device.books.short_of(device.room());
  if (short_of > Bytes(0)) {
    victims_.collect(now, device, {});
    victims_.swap_out(now, short_of, out);
  }

  // What could not leave blocks a running invocation: its instance goes.
  Bytes waited_for{0};
  for (const MemoryRecord* record : device.absent_runs) {
    if (record->may_return()) waited_for += record->returning();
  }
  if (waited_for == Bytes(0)) return;
  const Bytes blocked = device.books.occupied + waited_for - device.room() - device.books.outgoing;
  if (blocked > Bytes(0)) victims_.stop_idle(now, device, blocked, InstanceId(), out);
}

void MemoryReturns::bring_back_runs(Instant now, MemoryDevice& device, ResidencyDecisions& out) {
  if (device.absent_runs.empty()) return;
  Bytes occupied = device.books.occupied;
  const auto fits = [&](const MemoryRecord* record) {
    if (device.memory == Bytes(0)) return true;
    const bool is_alone = occupied == record->occupied();  // then it is tried whatever else the device says
    return occupied + record->returning() <= (is_alone ? device.memory : device.room());
  };
  std::vector<MemoryRecord*> waiting;
  for (MemoryRecord* record : device.absent_runs) {
    if (record->may_return() && fits(record)) waiting.push_back(record);
  }
  std::sort(waiting.begin(), waiting.end(), [](const MemoryRecord* a, const MemoryRecord* b) {
    return std::pair(a->last_used, a->id) < std::pair(b->last_used, b->id);
  });
  for (MemoryRecord* record : waiting) {
    if (!fits(record)) continue;
    occupied += record->returning();
    ledger_.begin_move(now, *record, RecordEvent::kReturns, record->use.away, out);
  }
}

// For each flow with work that waits for a slot: its most recently used idle instance here, the longest queue first.
void MemoryReturns::prefetch(Instant now, MemoryDevice& device, ResidencyDecisions& out) {
  struct Ahead {
    MemoryRecord* record;
    std::size_t queued;
  };
  if (!std::exchange(device.some_called, false)) return;
  std::vector<Ahead> ahead;
  for (MemoryRecord* record : device.absent_idle) {
    const std::size_t queued = waiting(context_, *record);
    device.some_called |= record->function != nullptr && record->function->may_have_queued;
    if (queued > 0 && record->may_return() && is_latest(*record)) ahead.push_back({record, queued});
  }
  std::sort(ahead.begin(), ahead.end(), [](const Ahead& a, const Ahead& b) {
    return std::pair(b.queued, a.record->id) < std::pair(a.queued, b.record->id);
  });
  Bytes promised{0};
  const Displace displace = policy_ == MemoryPolicy::kPrefetchSwap ? Displace::kLeaving : Displace::kNobody;
  for (const Ahead& next : ahead) {
    bring_back_idle(now, device, *next.record, {RecordEvent::kReturnsAhead, displace}, promised, out);
  }
}

void MemoryReturns::bring_back_wanted(Instant now, MemoryDevice& device, ResidencyDecisions& out) {
  if (device.books.wanted == 0) return;
  Bytes promised{0};
  for (MemoryRecord* record : device.records) {
    if (!record->state.wants()) continue;
    if (record->use.away == Bytes(0) && MemoryLedger::take(*record, RecordEvent::kSatisfied)) ledger_.recount(*record);
    if (!record->state.wants() || !record->may_return()) continue;
    bring_back_idle(now, device, *record, {RecordEvent::kReturns, Displace::kLeavingUnlessServed}, promised, out);
  }
}

// Nobody has called them yet. Whenever something has ended or left, the memory of the flow that is expected soonest returns:
// into free room, or in the place of what is expected twice as late. So what a rare call drove out is back before its
// own next call. Example: A is called every 2 s, C once an hour. C drove A's memory out and is answered: C's leaves, A's
// returns, and A's next call is device-warm.
//
// One at a time, and only while nothing moves: nobody who is called shall wait for it. No two take turns in one place, as each
// would have to be called twice as often as the other.
void MemoryReturns::anticipate(Instant now, MemoryDevice& device, ResidencyDecisions& out) {
  const Bytes moving = device.books.on_the_link + device.books.outgoing;
  if (device.absent_idle.empty() || device.anticipated_at == device.freed || moving > Bytes(0)) return;
  if (device.memory == Bytes(0) || !device.requests.empty()) return;
  if (device.books.may_grow > 0) return;
  device.anticipated_at = device.freed;
  MemoryRecord* next = expected_soonest(now, device);
  if (next == nullptr) return;
  const Bytes over = device.books.reserved + next->use.away - device.room();
  if (over <= Bytes(0)) {
    ledger_.begin_move(now, *next, RecordEvent::kReturnsAhead, next->use.away, out);
    return;
  }
  if (policy_ != MemoryPolicy::kPrefetchSwap) return;
  const Duration soonest = expected_gap(now, context_, *next);
  const Bytes available =
      victims_.collect(now, device, {.displace = Displace::kNotQueued, .except = next->id, .later_than = soonest});
  if (available >= over) victims_.swap_out(now, over, out);
}

MemoryRecord* MemoryReturns::expected_soonest(Instant now, const MemoryDevice& device) const {
  MemoryRecord* next = nullptr;
  Duration soonest = ArrivalPace::kNeverCalled;
  for (MemoryRecord* record : device.absent_idle) {
    const Duration gap = expected_gap(now, context_, *record);
    if (gap >= soonest || !record->may_return() || !is_latest(*record)) continue;
    next = record;
    soonest = gap;
  }
  return next;
}

// Into free room; else what `purpose` may displace leaves first, if that is enough. `promised`: room that earlier ones will
// take once it is free.
void MemoryReturns::bring_back_idle(Instant now, MemoryDevice& device, MemoryRecord& record, const Purpose& purpose,
                                    Bytes& promised, ResidencyDecisions& out) {
  const Bytes over = device.books.reserved + promised + record.use.away - device.room();
  if (device.memory == Bytes(0) || over <= Bytes(0)) {
    ledger_.begin_move(now, record, purpose.event, record.use.away, out);
    return;
  }
  const Bytes short_of = over - device.books.outgoing;
  if (short_of > Bytes(0)) {
    if (victims_.collect(now, device, {.displace = purpose.displace, .except = record.id}) < short_of) return;
    victims_.swap_out(now, short_of, out);
  }
  promised += record.use.away;
}

}  // namespace fairlead
