#include "decide/residency/memory_record.h"

#include <algorithm>
#include <utility>

namespace fairlead {
namespace {

using Motion = RecordState::Motion;

}  // namespace

bool MemoryRecord::absent() const {
  const bool shall_return = use.away > Bytes(0) || state.way_back() == RecordState::WayBack::kDoubted;
  return shall_return && !state.moving() && !state.stopping();
}

bool MemoryRecord::may_return() const {
  using WayBack = RecordState::WayBack;
  const WayBack way = state.way_back();
  return absent() && way != WayBack::kFailed && !(way == WayBack::kFull && full_at == device->freed);
}

Bytes MemoryRecord::occupied() const {
  if (!state.reported()) return demand;
  return std::max(granted, state.motion() == Motion::kReturning ? use.resident + use.away : use.resident);
}

// Into room that it was granted before any other.
Bytes MemoryRecord::returning() const {
  return std::max(Bytes(0), use.resident + use.away - occupied());
}

Bytes MemoryRecord::reserved() const {
  return state.runs() ? std::max(demand, occupied()) : occupied();
}

Bytes MemoryRecord::movable() const {
  const bool can_move = idle() && state.motion() == Motion::kStill && !state.unmovable();
  return can_move ? use.movable() : Bytes(0);
}

Bytes MemoryRecord::outgoing() const {
  if (state.stopping()) return occupied();
  return state.motion() == Motion::kLeaving && idle() ? move.bytes : Bytes(0);  // what runs takes it back
}

Bytes MemoryRecord::pinned(bool nothing_moves) const {
  if (!state.reported()) return demand;
  if (nothing_moves) return use.needed();
  return state.unmovable() ? use.resident : use.fixed;
}

MemoryBooks MemoryRecord::books() const {
  return {.occupied = occupied(),
          .reserved = reserved(),
          .outgoing = outgoing(),
          .on_the_link = state.moving() ? move.bytes : Bytes(0),
          .absent_runs = absent() && state.runs(),
          .absent_idle = absent() && !state.runs(),
          .movable = movable() > Bytes(0),
          .wanted = state.wants(),
          .may_grow = state.starts() || (state.runs() && !state.reported())};
}

Bytes needed_by(const MemoryRecord& record) {
  const std::vector<RoomRequest>& requests = record.device->requests;
  const bool waits = std::any_of(requests.begin(), requests.end(), [&record](const RoomRequest& r) {
    return r.instance == record.id && r.waits_for_runs;
  });
  return waits ? std::max(record.use.needed(), record.demand) : record.use.needed();
}

bool is_latest(const MemoryRecord& record) {
  const std::vector<MemoryRecord*>& others =
      record.function == nullptr ? record.device->records : record.function->records;
  return std::none_of(others.begin(), others.end(), [&record](const MemoryRecord* other) {
    return other != &record && other->flow == record.flow && other->device == record.device && other->idle() &&
           std::pair(other->last_used, other->id) > std::pair(record.last_used, record.id);
  });
}

}  // namespace fairlead
