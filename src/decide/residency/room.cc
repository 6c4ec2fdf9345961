// Requests for room: an instance found the device full in the middle of its work. The bytes it asks for are freed whatever
// the books say is free: the device has just said otherwise (contexts, other programs, fragments).
#include <algorithm>
#include <tuple>
#include <utility>

#include "decide/residency/residency.h"

namespace fairlead {

namespace {

// So many starts of a function give way one after the other; the next one has the device for itself, where a refusal is final.
constexpr int kMostGiveWays = 3;

}  // namespace

// Oldest first. One that waits is left alone until its moves are over or its time is up.
void Residency::answer_requests(Instant now, Device& device, ResidencyDecisions& out) {
  std::vector<RoomRequest> open;
  open.swap(device.requests);
  for (RoomRequest& request : open) {
    Record& asker = records_.at(request.instance);
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

// Not if what runs would not fit beside it with everything else gone.
bool Residency::is_possible(const Device& device, const Record& asker, const RoomRequest& request) const {
  if (device.memory == Bytes(0)) return true;
  Bytes least = asker.use.needed_with(request.bytes);
  for (const Record* record : device.records) {
    if (record->state.runs() && record != &asker) least += record->occupied();
  }
  return least <= device.memory;
}

// The device was full when it was asked, but may not be any more: what was about to leave has left while the request was on
// its way. Believed once; when it is full again and nothing was freed since, the books are wrong.
bool Residency::became_free(const Device& device, Record& asker, const RoomRequest& request) {
  if (device.memory == Bytes(0) || asker.believed_at == device.freed) return false;
  const Bytes occupied = device.books.occupied - asker.occupied() + asker.use.resident;
  if (occupied + request.bytes > device.memory) return false;
  asker.believed_at = device.freed;
  return true;
}

// What leaves already, beyond what earlier requests will take; then memory of idle instances; then idle instances.
void Residency::plan(Instant now, Device& device, const Record& asker, RoomRequest& request, ResidencyDecisions& out) {
  Bytes taken{0};
  for (const RoomRequest& earlier : device.requests) taken += earlier.bytes;
  Bytes found{0};
  for (const Record* record : device.records) {
    const Bytes left = std::max(Bytes(0), record->outgoing() - taken);
    taken = std::max(Bytes(0), taken - record->outgoing());
    if (found >= request.bytes || record == &asker || left == Bytes(0)) continue;
    found += left;
    request.awaited.insert(record->id);
  }
  if (found < request.bytes) {
    collect_candidates(now, device, Displace::kAnyIdle, asker.id);
    found += swap_out(now, device, request.bytes - found, out, &request.awaited);
  }
  if (found < request.bytes && asker.state.runs()) {
    stop_idle(now, device, request.bytes - found, asker.id, out, &request.awaited);
  }
  if (!request.awaited.empty()) return;
  // Better late than refused: what leaves for others, and what returns ahead of use and can leave again.
  for (const Record* record : device.records) {
    const bool leaves = record->state.stopping() || (record->idle() && record->state.moving());
    if (leaves && record != &asker) request.awaited.insert(record->id);
  }
}

// Whether the asker would have what it asks for if the others here were done, or, for a start, were not here at all. Not
// for memory that returns, which is tried again whenever something was freed.
bool Residency::others_are_in_the_way(const Device& device, const Record& asker, const RoomRequest& request) {
  if (!request.request || device.memory == Bytes(0) || !asker.state.runs()) return false;
  if (asker.use.needed_with(request.bytes) > device.memory) return false;
  return std::any_of(device.records.begin(), device.records.end(), [&](const Record* other) {
    return other != &asker && (other->state.runs() || asker.state.starts()) && other->occupied() > Bytes(0);
  });
}

// By its own books, too, it needs that much from now on, so that idle memory leaves for it.
void Residency::wait_for_runs(Record& asker, RoomRequest& request, ResidencyDecisions& out) {
  request.waits_for_runs = true;
  const Bytes with_it = asker.use.needed_with(request.bytes);
  if (with_it <= asker.demand) return;
  asker.demand = with_it;
  recount(asker);
  out.push_back(NeedsMore{asker.id});
}

// Nobody waits for the room of those who wait for his. Example: two starts on 8 GiB hold 4 GiB each and ask for 2 more.
// The one that began last gives way. Where none of them starts, the invocation that began last is refused its request.
// Memory that cannot return waits as well.
void Residency::end_standstill(Instant now, Device& device, ResidencyDecisions& out) {
  std::vector<Record*> waiting;
  for (const RoomRequest& request : device.requests) {
    if (!request.waits_for_runs) return;  // it waits for a move
    waiting.push_back(&records_.at(request.instance));
  }
  const bool somebody_goes_on = std::any_of(device.records.begin(), device.records.end(), [&](const Record* record) {
    const bool waits = record->absent() || std::find(waiting.begin(), waiting.end(), record) != waiting.end();
    const RecordState& state = record->state;
    return state.moving() || state.stopping() || (state.runs() && record->occupied() > Bytes(0) && !waits);
  });
  if (waiting.empty() || somebody_goes_on) return;
  Record& last = **std::max_element(waiting.begin(), waiting.end(), [](const Record* a, const Record* b) {
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
void Residency::give_way(Instant now, Record& record, Bytes asked, ResidencyDecisions& out) {
  if (Function* function = record.function) {
    const bool tries_again = ++function->gave_way < kMostGiveWays;
    function->footprint.raise(tries_again ? record.use.needed_with(asked) : record.device->memory);
  }
  ++counters_.starts_gave_way;
  begin_stop(now, record);
  out.push_back(GiveWay{record.id});
}

void Residency::answer(const RoomRequest& request, Device& device, bool granted, ResidencyDecisions& out) {
  Record& asker = records_.at(request.instance);
  if (!request.request) return;  // freed: may_return() sees it; not: it waits for the next thing that frees
  ++(granted ? counters_.room_granted : counters_.room_refused);
  const Bytes wanted = asker.use.needed_with(request.bytes);
  if (granted && asker.state.runs()) {
    asker.demand = std::max(asker.demand, wanted);
    asker.granted = asker.use.resident + request.bytes;  // nobody's memory returns into it
  }
  recount(asker);
  // Refused beside others; next time it is admitted only where it fits.
  const bool fits_alone = device.memory == Bytes(0) || wanted <= device.memory;
  if (!granted && fits_alone && asker.function != nullptr) asker.function->footprint.sample(wanted);
  out.push_back(RoomAnswer{request.instance, *request.request, granted});
}

}  // namespace fairlead
