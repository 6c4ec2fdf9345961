#include "decide/queueing/residency_index.h"

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

void ResidencyIndex::set_setup(Row row, GpuId gpu, std::optional<Duration> setup) {
  if (row >= places_.size()) {
    places_.resize(row + 1);
    expectations_.resize(row + 1);
  }
  if (setup) expectations_[row].reload = std::max(expectations_[row].reload, *setup);
  std::vector<Place>& places = places_[row];
  const auto at = std::find_if(places.begin(), places.end(), [&](const Place& place) { return place.gpu >= gpu; });
  const bool known = at != places.end() && at->gpu == gpu;
  if (!setup) {
    if (known) places.erase(at);
    if (known) residents_[gpu].erase(row);
    if (known) expected_[gpu].erase(row);
    if (known) quiet_[gpu].erase(row);
  } else if (known) {
    at->setup = *setup;
    if (*setup > Duration(0)) expected_[gpu].erase(row);
    if (*setup > Duration(0)) quiet_[gpu].erase(row);
  } else {
    places.insert(at, {gpu, *setup});
  }
}

void ResidencyIndex::forget(Row row) {
  stop_waiting(row);
  if (row >= places_.size()) return;
  for (const Place& place : places_[row]) {
    expected_[place.gpu].erase(row);
    quiet_[place.gpu].erase(row);
  }
  places_[row].clear();
  expectations_[row] = {};
}

Duration ResidencyIndex::paid(Duration setup) const {
  return Duration(static_cast<Duration::rep>(patience_ * static_cast<double>(setup.count())));
}

ResidencyIndex::Copies ResidencyIndex::copies_of(Row row) const {
  Copies copies;
  for (const Place& place : places_[row]) {
    if (place.setup == Duration(0)) {
      ++copies.count;
    } else {
      copies.quickest = std::min(copies.quickest, place.setup);
    }
  }
  return copies;
}

void ResidencyIndex::enter(const Flow& flow, Row row) {
  const Copies copies = copies_of(row);
  const Duration handicap = flow.cost(flow.service.value_or(Duration(0))) * (kServicesPerCopy * copies.more());
  for (const Place& place : places_[row]) {
    quiet_[place.gpu].erase(row);
    if (place.setup == Duration(0)) {
      residents_[place.gpu].set(row, {flow.virtual_time + handicap, flow.id});
    } else {
      residents_[place.gpu].erase(row);
    }
  }
  const Duration copy = copies.quickest;
  const bool can_copy = copy != Duration::max();
  waiting_.set(row, {flow.virtual_time + (can_copy ? flow.cost(paid(copy)) : Duration(0)), flow.id});
  homeless_.erase(row);
  may_copy_.erase(row);
  may_evict_.erase(row);
  settled_.erase(row);
  if (copies.count == 0) {
    const Duration each = paid(copy) / static_cast<Duration::rep>(flow.queue.size());
    homeless_.set(row, {flow.virtual_time + flow.cost(each), flow.id});
  } else if (can_copy) {
    settled_.set(row, {flow.queue.front().arrived + copies.more() * copy / 4, flow.id});
  }
}

void ResidencyIndex::expect(const Flow& flow, Row row, Instant until) {
  if (!has_places(row)) return;
  expectations_[row].until = until;
  for (const Place& place : places_[row]) {
    if (place.setup != Duration(0)) continue;
    expected_[place.gpu].set(row, {flow.virtual_time, flow.id});
    if (flow.queue.empty()) quiet_[place.gpu].set(row, {until, flow.id});
  }
}

void ResidencyIndex::on_end(Instant now, const Flow& flow, Row row) {
  if (has_places(row)) expect(flow, row, flow.in_flight.empty() ? now + expectations_[row].reload : Instant::max());
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

void ResidencyIndex::leave(const Flow& flow, Row row) {
  stop_waiting(row);
  if (!has_places(row) || !flow.queue.empty()) return;
  for (const Place& place : places_[row]) {
    if (place.setup == Duration(0)) quiet_[place.gpu].set(row, {expectations_[row].until, flow.id});
  }
}

void ResidencyIndex::stop_waiting(Row row) {
  settled_.erase(row);
  may_copy_.erase(row);
  may_evict_.erase(row);
  homeless_.erase(row);
  waiting_.erase(row);
  if (row >= places_.size()) return;
  for (const Place& place : places_[row]) residents_[place.gpu].erase(row);
}

std::optional<Instant> ResidencyIndex::next_chance() const {
  return settled_.empty() ? std::nullopt : std::optional(settled_.top_key().time);
}

void ResidencyIndex::lose_patience(Row row, const FlowTable& flows) {
  if (may_copy_.contains(row)) {
    settled_.erase(row);
    may_evict_.set(row, waiting_.key_of(row));
    return;
  }
  may_copy_.set(row, waiting_.key_of(row));
  const Flow& flow = flows[row];
  const Instant tired = flow.queue.front().arrived + paid(copies_of(row).quickest);
  settled_.set(row, {std::max(settled_.key_of(row).time, tired), flow.id});
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
    const auto row = residents->second.find_first([&](Row candidate) {
      const auto place = placeable.place(flows[candidate].id, gpu);
      if (place) running = place->running;
      return place && place->free;
    });
    if (!row) continue;
    const Candidate candidate{residents->second.key_of(*row), running, {*row, gpu, Duration(0)}};
    if (!best || candidate < *best) best = candidate;
  }
}

// Where a flow that must load goes: where it takes nobody's room, then where it is quickest, then where least runs.
template <typename Accept>
std::optional<Placeable::Place> ResidencyIndex::cheapest(FlowId flow, Row row, const Placeable& placeable,
                                                         Accept accept) const {
  const auto rank = [](const Placeable::Place& place) {
    return std::tuple(place.evicts, place.setup, place.running, place.gpu);
  };
  std::optional<Placeable::Place> best;
  for (const Place& known : places_[row]) {
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
  homeless_.find_first([&](Row row) {
    const Key& key = waiting_.key_of(row);
    const bool behind = best && !(key < best->key);
    const auto worth = [&](const Placeable::Place& at) { return worth_evicting(now, flows[row], key, at); };
    const auto place = behind ? std::nullopt : cheapest(flows[row].id, row, placeable, worth);
    if (place) found = Candidate{key, place->running, {row, place->gpu, place->setup}};
    return place || (best && ++looks == kLooks);
  });
  if (found) best = found;
}

std::optional<GpuId> ResidencyIndex::place_of_one(Instant now, const Flow& flow, Row row, const Placeable& placeable) {
  const auto place = cheapest(flow.id, row, placeable, [&](const Placeable::Place& at) {
    return worth_evicting(now, flow, {flow.virtual_time + flow.cost(paid(at.setup)), flow.id}, at);
  });
  return place ? std::optional(place->gpu) : std::nullopt;
}

ResidencyIndex::Unpicked ResidencyIndex::why_unpicked(Instant now, const Flow& flow, Row row,
                                                      const Placeable& placeable) {
  if (!cheapest(flow.id, row, placeable, [](const Placeable::Place&) { return true; })) {
    return Unpicked::kNoPlaceIsFree;
  }
  if (may_evict_.contains(row)) return Unpicked::kNothing;
  const bool is_homeless = homeless_.contains(row);
  const Key key{flow.virtual_time + (is_homeless ? flow.cost(paid(copies_of(row).quickest)) : Duration(0)), flow.id};
  const bool would_do = cheapest(flow.id, row, placeable, [&](const Placeable::Place& at) {
                          return at.setup == Duration(0) || (is_homeless && worth_evicting(now, flow, key, at));
                        }).has_value();
  return would_do ? Unpicked::kNothing : Unpicked::kKept;
}

std::optional<ResidencyIndex::Pick> ResidencyIndex::free_copy(const FlowTable& flows, const Placeable& placeable) {
  std::optional<Pick> found;
  int looks = 0;
  may_copy_.find_first([&](Row row) {
    const auto place = cheapest(flows[row].id, row, placeable, [](const Placeable::Place& at) { return !at.evicts; });
    if (place) found = Pick{row, place->gpu, place->setup};
    return place || ++looks == kLooks;
  });
  return found;
}

std::optional<ResidencyIndex::Pick> ResidencyIndex::leave_home(const FlowTable& flows, const Placeable& placeable) {
  std::optional<Pick> found;
  may_evict_.find_first([&](Row row) {
    const auto place = cheapest(flows[row].id, row, placeable, [](const Placeable::Place&) { return true; });
    if (place) found = Pick{row, place->gpu, place->setup};
    return place.has_value();
  });
  return found;
}

}  // namespace fairlead
