#include "decide/residency/room_desk.h"

#include <algorithm>
#include <tuple>
#include <utility>
#include <vector>

namespace fairlead {
namespace {

// So many starts of a function give way one after the other; the next one has the device for itself, where a refusal is final.
constexpr int kMostGiveWays = 3;

// Not if what runs would not fit beside it with everything else gone.
bool is_possible(const MemoryDevice& device, const MemoryRecord& asker, const RoomRequest& request) {
  if (device.memory == Bytes(0)) return true;
  Bytes least = asker.use.needed_with(request.bytes);
  for (const MemoryRecord* record : device.records) {
    if (record->state.runs() && record != &asker) least += record->occupied();
  }
  return least <= device.memory;
}

// The device was full when it was asked, but may not be any more: what was about to leave has left while the request was on
// its way. Believed once; when it is full again and nothing was freed since, the books are wrong.
bool became_free(const MemoryDevice& device, MemoryRecord& asker, const RoomRequest& request) {
  if (device.memory == Bytes(0) || asker.believed_at == device.freed) return false;
  const Bytes occupied = device.books.occupied - asker.occupied() + asker.use.resident;
  if (occupied + request.bytes > device.memory) return false;
  asker.believed_at = device.freed;
  return true;
}

// Whether the asker would have what it asks for if the others here were done, or, for a start, were not here at all. Not
// for memory that returns, which is tried again whenever something was freed.
bool others_are_in_the_way(const MemoryDevice& device, const MemoryRecord& asker, const RoomRequest& request) {
  if (!request.request || device.memory == Bytes(0) || !asker.state.runs()) return false;
  if (asker.use.needed_with(request.bytes) > device.memory) return false;
  return std::any_of(device.records.begin(), device.records.end(), [&](const MemoryRecord* other) {
    return other != &asker && (other->state.runs() || asker.state.starts()) && other->occupied() > Bytes(0);
  });
}

}  // namespace

bool RoomDesk::ask(Instant deadline, MemoryRecord& asker, std::uint64_t number, Bytes bytes) {
  std::vector<RoomRequest>& requests = asker.device->requests;
  const bool is_repeated = std::any_of(requests.begin(), requests.end(), [&](const RoomRequest& r) {
    return r.instance == asker.id && r.request == number;
  });
  if (is_repeated) return false;
  requests.push_back({asker.id, number, bytes, deadline, {}, false});
  ledger_.unsettle(*asker.device);
  return true;
}

void RoomDesk::ask_to_return(MemoryRecord& record) {
  record.device->requests.push_back({record.id, std::nullopt, record.use.away, Instant::max(), {}, false});
}

// Oldest first. One that waits is left alone until its moves are over or its time is up.
void RoomDesk::answer_all(Instant now, MemoryDevice& device, ResidencyDecisions& out) {
  std::vector<RoomRequest> open;
  open.swap(device.requests);
  for (RoomRequest& request : open) {
    MemoryRecord& asker = ledger_.at(request.instance);
    if (asker.state.stopping()) continue;
    const bool is_late = request.deadline <= now;
    request.waits_for_runs = false;
    if (!is_late && request.awaited.empty() && !request.freed && is_possible(device, asker, request)) {
      plan(now, device, asker, request, out);
    }
    if (!is_late && !request.awaited.empty()) {
      device.requests.push_back(std::move(request));
    } else if (request.freed || became_free(device, asker, request)) {
      answer(request, device, true, out);
    } else if (!others_are_in_the_way(device, asker, request)) {
      answer(request, device, false, out);
    } else if (!is_late) {
      wait_for_runs(asker, request, out);
      device.requests.push_back(std::move(request));
    } else if (asker.state.starts()) {
      give_way(now, asker, request.bytes, out);
    } else {
      answer(request, device, false, out);
    }
  }
  end_standstill(now, device, out);
}

// What leaves already, beyond what earlier requests will take; then memory of idle instances; then idle instances.
void RoomDesk::plan(Instant now, MemoryDevice& device, const MemoryRecord& asker, RoomRequest& request,
                    ResidencyDecisions& out) {
  Bytes taken{0};
  for (const RoomRequest& earlier : device.requests) taken += earlier.bytes;
  Bytes found{0};
  for (const MemoryRecord* record : device.records) {
    const Bytes left = std::max(Bytes(0), record->outgoing() - taken);
    taken = std::max(Bytes(0), taken - record->outgoing());
    if (found >= request.bytes || record == &asker || left == Bytes(0)) continue;
    found += left;
    request.awaited.insert(record->id);
  }
  if (found < request.bytes) {
    victims_.collect(now, device, {.displace = Displace::kAnyIdle, .except = asker.id});
    found += victims_.swap_out(now, request.bytes - found, out, &request.awaited);
  }
  if (found < request.bytes && asker.state.runs()) {
    victims_.stop_idle(now, device, request.bytes - found, asker.id, out, &request.awaited);
  }
  if (!request.awaited.empty()) return;
  // Better late than refused: what leaves for others, and what returns ahead of use and can leave again.
  for (const MemoryRecord* record : device.records) {
    const bool leaves = record->state.stopping() || (record->idle() && record->state.moving());
    if (leaves && record != &asker) request.awaited.insert(record->id);
  }
}

// By its own books, too, it needs that much from now on, so that idle memory leaves for it.
void RoomDesk::wait_for_runs(MemoryRecord& asker, RoomRequest& request, ResidencyDecisions& out) {
  request.waits_for_runs = true;
  const Bytes with_it = asker.use.needed_with(request.bytes);
  if (with_it <= asker.demand) return;
  asker.demand = with_it;
  ledger_.recount(asker);
  out.push_back(NeedsMore{asker.id});
}

// Nobody waits for the room of those who wait for his. Example: two starts on 8 GiB hold 4 GiB each and ask for 2 more.
// The one that began last gives way. Where none of them starts, the invocation that began last is refused its request.
// Memory that cannot return waits as well.
void RoomDesk::end_standstill(Instant now, MemoryDevice& device, ResidencyDecisions& out) {
  std::vector<MemoryRecord*> waiting;
  for (const RoomRequest& request : device.requests) {
    if (!request.waits_for_runs) return;  // it waits for a move
    waiting.push_back(&ledger_.at(request.instance));
  }
  const bool somebody_goes_on =
      std::any_of(device.records.begin(), device.records.end(), [&](const MemoryRecord* record) {
        const bool waits = record->absent() || std::find(waiting.begin(), waiting.end(), record) != waiting.end();
        const RecordState& state = record->state;
        return state.moving() || state.stopping() || (state.runs() && record->occupied() > Bytes(0) && !waits);
      });
  if (waiting.empty() || somebody_goes_on) return;
  MemoryRecord& last =
      **std::max_element(waiting.begin(), waiting.end(), [](const MemoryRecord* a, const MemoryRecord* b) {
        return std::tuple(a->state.starts(), a->last_used, a->id) < std::tuple(b->state.starts(), b->last_used, b->id);
      });
  const auto found = std::find_if(device.requests.begin(), device.requests.end(),
                                  [&](const RoomRequest& request) { return request.instance == last.id; });
  if (last.state.starts()) return give_way(now, last, found->bytes, out);
  const RoomRequest refused = *found;
  device.requests.erase(found);
  answer(refused, device, false, out);
}

// Its next start is let in only where what it asked for fits as well.
void RoomDesk::give_way(Instant now, MemoryRecord& record, Bytes asked, ResidencyDecisions& out) {
  if (MemoryFunction* function = record.function) {
    const bool tries_again = ++function->gave_way < kMostGiveWays;
    function->footprint.raise(tries_again ? record.use.needed_with(asked) : record.device->memory);
  }
  ++ledger_.counters().starts_gave_way;
  ledger_.begin_stop(now, record);
  out.push_back(GiveWay{record.id});
}

void RoomDesk::answer(const RoomRequest& request, MemoryDevice& device, bool granted, ResidencyDecisions& out) {
  MemoryRecord& asker = ledger_.at(request.instance);
  if (!request.request)
    return;  // freed: MemoryRecord::may_return() sees it; not: it waits for the next thing that frees
  ++(granted ? ledger_.counters().room_granted : ledger_.counters().room_refused);
  const Bytes wanted = asker.use.needed_with(request.bytes);
  if (granted && asker.state.runs()) {
    asker.demand = std::max(asker.demand, wanted);
    asker.granted = asker.use.resident + request.bytes;  // nobody's memory returns into it
  }
  ledger_.recount(asker);
  // Refused beside others; next time it is admitted only where it fits.
  const bool fits_alone = device.memory == Bytes(0) || wanted <= device.memory;
  if (!granted && fits_alone && asker.function != nullptr) asker.function->footprint.sample(wanted);
  out.push_back(RoomAnswer{request.instance, *request.request, granted});
}

}  // namespace fairlead
