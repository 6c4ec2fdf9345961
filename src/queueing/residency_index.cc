#include "queueing/residency_index.h"

#include <algorithm>
#include <tuple>

namespace fairlead {

// The least is next.
struct ResidencyIndex::Candidate {
  Key key;
  std::size_t running;
  Pick pick;

  bool operator<(const Candidate& other) const {
    return std::tie(key.time, running, key.flow, pick.gpu) <
           std::tie(other.key.time, other.running, other.key.flow, other.pick.gpu);
  }
};

void ResidencyIndex::set_setup(Slot slot, GpuId gpu, std::optional<Duration> setup) {
  if (slot >= places_.size()) {
    places_.resize(slot + 1);
    expectations_.resize(slot + 1);
  }
  if (setup) expectations_[slot].reload = std::max(expectations_[slot].reload, *setup);
  std::vector<Place>& places = places_[slot];
  const auto at = std::find_if(places.begin(), places.end(), [&](const Place& place) { return place.gpu >= gpu; });
  const bool known = at != places.end() && at->gpu == gpu;
  if (!setup) {
    if (known) places.erase(at);
    if (known) residents_[gpu].erase(slot);
    if (known) expected_[gpu].erase(slot);
    if (known) quiet_[gpu].erase(slot);
  } else if (known) {
    at->setup = *setup;
    if (*setup > Duration(0)) expected_[gpu].erase(slot);
    if (*setup > Duration(0)) quiet_[gpu].erase(slot);
  } else {
    places.insert(at, {gpu, *setup});
  }
}

void ResidencyIndex::forget(Slot slot) {
  stop_waiting(slot);
  if (slot >= places_.size()) return;
  for (const Place& place : places_[slot]) {
    expected_[place.gpu].erase(slot);
    quiet_[place.gpu].erase(slot);
  }
  places_[slot].clear();
  expectations_[slot] = {};
}

Duration ResidencyIndex::paid(Duration setup) const {
  return Duration(static_cast<Duration::rep>(patience_ * static_cast<double>(setup.count())));
}

ResidencyIndex::Copies ResidencyIndex::copies_of(Slot slot) const {
  Copies copies;
  for (const Place& place : places_[slot]) {
    if (place.setup == Duration(0)) {
      ++copies.count;
    } else {
      copies.quickest = std::min(copies.quickest, place.setup);
    }
  }
  return copies;
}

void ResidencyIndex::enter(const Flow& flow, Slot slot) {
  const Copies copies = copies_of(slot);
  const Duration handicap = flow.cost(flow.service.value_or(Duration(0))) * (kServicesPerCopy * copies.more());
  for (const Place& place : places_[slot]) {
    quiet_[place.gpu].erase(slot);
    if (place.setup == Duration(0)) {
      residents_[place.gpu].set(slot, {flow.virtual_time + handicap, flow.id});
    } else {
      residents_[place.gpu].erase(slot);
    }
  }
  const Duration copy = copies.quickest;
  const bool can_copy = copy != Duration::max();
  waiting_.set(slot, {flow.virtual_time + (can_copy ? flow.cost(paid(copy)) : Duration(0)), flow.id});
  homeless_.erase(slot);
  may_copy_.erase(slot);
  may_evict_.erase(slot);
  settled_.erase(slot);
  if (copies.count == 0) {
    const Duration each = paid(copy) / static_cast<Duration::rep>(flow.queue.size());
    homeless_.set(slot, {flow.virtual_time + flow.cost(each), flow.id});
  } else if (can_copy) {
    settled_.set(slot, {flow.queue.front().arrived + copies.more() * copy / 4, flow.id});
  }
}

void ResidencyIndex::expect(const Flow& flow, Slot slot, Instant until) {
  if (!has_places(slot)) return;
  expectations_[slot].until = until;
  for (const Place& place : places_[slot]) {
    if (place.setup != Duration(0)) continue;
    expected_[place.gpu].set(slot, {flow.virtual_time, flow.id});
    if (flow.queue.empty()) quiet_[place.gpu].set(slot, {until, flow.id});
  }
}

void ResidencyIndex::on_end(Instant now, const Flow& flow, Slot slot) {
  if (has_places(slot)) expect(flow, slot, flow.in_flight.empty() ? now + expectations_[slot].reload : Instant::max());
}

// A load that pushes others' data out is worth it where they were given as much more service as pays for it; where nothing
// runs there is nothing to lose. Who was served and is not back after as long as loading its own data takes is not waited
// for: that is what its eviction costs. Patience ends where nobody whose data is there waits for the GPU: else it has better
// things to do.
bool ResidencyIndex::worth_evicting(Instant now, const Flow& flow, const Key& key, const Placeable::Place& place) {
  if (!place.evicts || place.running == 0 || somebody_idles(now, place.gpu)) return true;
  const bool patient = now < flow.queue.front().arrived + paid(place.setup);
  if (!patient && residents_[place.gpu].empty()) return true;
  const auto found = expected_.find(place.gpu);
  if (found == expected_.end()) return true;
  IndexedHeap<Key>& expected = found->second;
  while (!expected.empty() && expectations_[expected.top()].until < now) expected.erase(expected.top());
  return expected.empty() || key < expected.top_key();
}

bool ResidencyIndex::somebody_idles(Instant now, GpuId gpu) {
  const IndexedHeap<Deadline>& quiet = quiet_[gpu];
  return !quiet.empty() && quiet.top_key().time < now;
}

void ResidencyIndex::leave(const Flow& flow, Slot slot) {
  stop_waiting(slot);
  if (!has_places(slot) || !flow.queue.empty()) return;
  for (const Place& place : places_[slot]) {
    if (place.setup == Duration(0)) quiet_[place.gpu].set(slot, {expectations_[slot].until, flow.id});
  }
}

void ResidencyIndex::stop_waiting(Slot slot) {
  settled_.erase(slot);
  may_copy_.erase(slot);
  may_evict_.erase(slot);
  homeless_.erase(slot);
  waiting_.erase(slot);
  if (slot >= places_.size()) return;
  for (const Place& place : places_[slot]) residents_[place.gpu].erase(slot);
}

std::optional<Instant> ResidencyIndex::next_chance() const {
  return settled_.empty() ? std::nullopt : std::optional(settled_.top_key().time);
}

void ResidencyIndex::lose_patience(Slot slot, const FlowTable& flows) {
  if (may_copy_.contains(slot)) {
    settled_.erase(slot);
    may_evict_.set(slot, waiting_.key_of(slot));
    return;
  }
  may_copy_.set(slot, waiting_.key_of(slot));
  const Flow& flow = flows[slot];
  const Instant tired = flow.queue.front().arrived + paid(copies_of(slot).quickest);
  settled_.set(slot, {std::max(settled_.key_of(slot).time, tired), flow.id});
}

std::optional<ResidencyIndex::Pick> ResidencyIndex::pick(Instant now, const FlowTable& flows,
                                                         const Placeable& placeable) {
  if (waiting_.empty()) return std::nullopt;
  while (!settled_.empty() && settled_.top_key().time <= now) lose_patience(settled_.top(), flows);
  const std::vector<GpuId> free = placeable.free_gpus();
  std::optional<Candidate> best;
  consider_residents(free, flows, placeable, best);
  consider_homeless(now, flows, placeable, best);
  if (best) return best->pick;
  if (const auto copy = free_copy(flows, placeable)) return copy;
  return leave_home(flows, placeable);
}

void ResidencyIndex::consider_residents(const std::vector<GpuId>& free, const FlowTable& flows,
                                        const Placeable& placeable, std::optional<Candidate>& best) {
  for (const GpuId gpu : free) {
    const auto residents = residents_.find(gpu);
    if (residents == residents_.end()) continue;
    std::size_t running = 0;
    const auto slot = residents->second.find_first([&](Slot candidate) {
      const auto place = placeable.place(flows[candidate].id, gpu);
      if (place) running = place->running;
      return place && place->free;
    });
    if (!slot) continue;
    const Candidate candidate{residents->second.key_of(*slot), running, {*slot, gpu, Duration(0)}};
    if (!best || candidate < *best) best = candidate;
  }
}

// Where a flow that must load goes: where it takes nobody's room, then where it is quickest, then where least runs.
template <typename Accept>
std::optional<Placeable::Place> ResidencyIndex::cheapest(FlowId flow, Slot slot, const Placeable& placeable,
                                                         Accept accept) const {
  const auto rank = [](const Placeable::Place& place) {
    return std::tuple(place.evicts, place.setup, place.running, place.gpu);
  };
  std::optional<Placeable::Place> best;
  for (const Place& known : places_[slot]) {
    const auto place = placeable.place(flow, known.gpu);
    if (!place || !place->free || !accept(*place)) continue;
    if (!best || rank(*place) < rank(*best)) best = place;
  }
  return best;
}

void ResidencyIndex::consider_homeless(Instant now, const FlowTable& flows, const Placeable& placeable,
                                       std::optional<Candidate>& best) {
  std::optional<Candidate> found;
  int looks = 0;
  homeless_.find_first([&](Slot slot) {
    const Key& key = waiting_.key_of(slot);
    const bool behind = best && !(key < best->key);
    const auto worth = [&](const Placeable::Place& at) { return worth_evicting(now, flows[slot], key, at); };
    const auto place = behind ? std::nullopt : cheapest(flows[slot].id, slot, placeable, worth);
    if (place) found = Candidate{key, place->running, {slot, place->gpu, place->setup}};
    return place || (best && ++looks == kLooks);
  });
  if (found) best = found;
}

std::optional<GpuId> ResidencyIndex::place_of_one(Instant now, const Flow& flow, Slot slot,
                                                  const Placeable& placeable) {
  const auto place = cheapest(flow.id, slot, placeable, [&](const Placeable::Place& at) {
    return worth_evicting(now, flow, {flow.virtual_time + flow.cost(paid(at.setup)), flow.id}, at);
  });
  return place ? std::optional(place->gpu) : std::nullopt;
}

ResidencyIndex::Unpicked ResidencyIndex::why_unpicked(Instant now, const Flow& flow, Slot slot,
                                                      const Placeable& placeable) {
  if (!cheapest(flow.id, slot, placeable, [](const Placeable::Place&) { return true; })) {
    return Unpicked::kNoPlaceIsFree;
  }
  if (may_evict_.contains(slot)) return Unpicked::kNothing;
  const bool is_homeless = homeless_.contains(slot);
  const Key key{flow.virtual_time + (is_homeless ? flow.cost(paid(copies_of(slot).quickest)) : Duration(0)), flow.id};
  const bool would_do = cheapest(flow.id, slot, placeable, [&](const Placeable::Place& at) {
                          return at.setup == Duration(0) || (is_homeless && worth_evicting(now, flow, key, at));
                        }).has_value();
  return would_do ? Unpicked::kNothing : Unpicked::kKept;
}

std::optional<ResidencyIndex::Pick> ResidencyIndex::free_copy(const FlowTable& flows, const Placeable& placeable) {
  std::optional<Pick> found;
  int looks = 0;
  may_copy_.find_first([&](Slot slot) {
    const auto place = cheapest(flows[slot].id, slot, placeable, [](const Placeable::Place& at) { return !at.evicts; });
    if (place) found = Pick{slot, place->gpu, place->setup};
    return place || ++looks == kLooks;
  });
  return found;
}

std::optional<ResidencyIndex::Pick> ResidencyIndex::leave_home(const FlowTable& flows, const Placeable& placeable) {
  std::optional<Pick> found;
  may_evict_.find_first([&](Slot slot) {
    const auto place = cheapest(flows[slot].id, slot, placeable, [](const Placeable::Place&) { return true; });
    if (place) found = Pick{slot, place->gpu, place->setup};
    return place.has_value();
  });
  return found;
}

}  // namespace fairlead
