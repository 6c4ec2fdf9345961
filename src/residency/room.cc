// Requests for room: an instance found the device full in the middle of its work. The bytes it asks for are freed whatever
// the books say is free: the device has just said otherwise (contexts, other programs, fragments).
#include <algorithm>
#include <utility>

#include "residency/residency.h"

namespace fairlead {

// Oldest first. One that waits is left alone until its moves are over or its time is up.
void Residency::answer_requests(Instant now, Device& device, ResidencyDecisions& out) {
  std::vector<RoomRequest> open;
  open.swap(device.requests);
  for (RoomRequest& request : open) {
    Record& asker = records_.at(request.instance);
    if (asker.stopping) continue;
    const bool is_late = request.deadline <= now;
    if (!is_late && request.awaited.empty() && !request.freed && is_possible(device, asker, request)) {
      plan(now, device, asker, request, out);
    }
    if (!is_late && !request.awaited.empty()) {
      device.requests.push_back(std::move(request));
    } else {
      answer(request, device, request.freed || became_free(device, asker, request), out);
    }
  }
}

namespace {

// What the asker needs with what it asks for. Memory that is away and must return is part of its need already; so is an
// allocation that a report has seen under way, because the shim counts it as held before it asks the device.
Bytes needed_with(const MemoryUse& use, Bytes asked) {
  return std::max(use.held, use.resident + std::max(use.away, asked));
}

}  // namespace

// Not if what runs would not fit beside it with everything else gone.
bool Residency::is_possible(const Device& device, const Record& asker, const RoomRequest& request) const {
  if (device.memory == Bytes(0)) return true;
  Bytes least = needed_with(asker.use, request.bytes);
  for (const Record* record : device.records) {
    if (record->runs && record != &asker) least += record->occupied();
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
    found += swap_out(now, device, request.bytes - found, candidates(now, device, Displace::kAnyIdle, asker.id), out,
                      &request.awaited);
  }
  if (found < request.bytes && asker.runs) {
    stop_idle(now, device, request.bytes - found, asker.id, out, &request.awaited);
  }
  if (!request.awaited.empty()) return;
  // Better late than refused: what leaves for others, and what returns ahead of use and can leave again.
  for (const Record* record : device.records) {
    const bool leaves = !record->runs && (record->moving || record->stopping);
    if (leaves && record != &asker) request.awaited.insert(record->id);
  }
}

void Residency::answer(const RoomRequest& request, Device& device, bool granted, ResidencyDecisions& out) {
  Record& asker = records_.at(request.instance);
  if (!request.request) return;  // freed: may_return() sees it; not: it waits for the next thing that frees
  ++(granted ? counters_.room_granted : counters_.room_refused);
  const Bytes wanted = needed_with(asker.use, request.bytes);
  if (granted && asker.runs) {
    asker.demand = std::max(asker.demand, wanted);
    asker.granted = asker.use.resident + request.bytes;  // nobody's memory returns into it
  }
  recount(asker);
  // Refused beside others; next time it is admitted only where it fits.
  const bool fits_alone = device.memory == Bytes(0) || wanted <= device.memory;
  Learnt* learnt = functions_.find(asker.flow);
  if (!granted && fits_alone && learnt != nullptr) learnt->footprint.sample(wanted);
  out.push_back(RoomAnswer{request.instance, *request.request, granted});
}

}  // namespace fairlead
