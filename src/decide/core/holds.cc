// Idle instances that are held where they are, and that end when they were kept long enough (model/warm_hold.h).
//
//   ready, or its run is over ──> fits into what pins may take? ──yes──> held: nobody evicts it
//                                        └──no──> as any other, and over_bound says so; asked again with every event
//   idle for `keep`, and nothing is queued for it ──> StopInstance kept_long_enough
//
// Who is held stays held as long as what it takes fits; then the older instance goes first. A hold is no seat: nothing starts because of
// it, a crash ends it, and a seat that needs the room takes it. So what is promised for good is promised by seats alone, and a pool always
// has a place for each slot that is not held.
//
// Example: D = 2, 32 instances at most, 4 seats: at most 26 are held, and two slots always find a place.
//
// Cost: O(instances of the node) per event where somebody is to be held, nothing elsewhere.
#include "decide/core/holds.h"

#include <algorithm>

namespace fairlead {

namespace {

// What runs there or sits there, without what is held and idles.
Bytes in_use_beside_holds(const Gpu& gpu) {
  Bytes sum = gpu.memory_in_use;
  for (const Instance* instance : gpu.instances) {
    if (instance->spare() && !instance->terms.is_seated) sum -= instance->kept_memory();
  }
  return sum;
}

template <typename Map>
typename Map::mapped_type of(const Map& map, const typename Map::key_type& key) {
  const auto found = map.find(key);
  return found == map.end() ? typename Map::mapped_type() : found->second;
}

}  // namespace

void Core::State::Holds::tend() const {
  if (state.kept.held.empty()) return;
  end_those_kept_long_enough();
  Given given;
  for (const Gpu* gpu : state.tables.pool.gpus()) hold_on(*gpu, given);
}

// Calls that wait will have the instance, whatever it was promised: starting another would take longer.
void Core::State::Holds::end_those_kept_long_enough() const {
  state.kept.next_end = Instant::max();
  for (const FlowId flow : state.kept.held) {
    const std::optional<Duration> keep = state.tables.functions.at(flow).hold.keep;
    if (!keep || state.tables.queue->queued(flow) > 0) continue;
    std::vector<InstanceId> over;
    for (const Instance* instance : state.tables.pool.of_flow(flow)) {
      if (instance->terms.is_seated || !instance->spare() || instance->returning()) continue;
      const Instant end = instance->idle_since + *keep;
      if (end <= now) {
        over.push_back(instance->id);
      } else {
        state.kept.next_end = std::min(state.kept.next_end, end);
      }
    }
    std::sort(over.begin(), over.end());
    for (const InstanceId id : over) state.keeper.stop(now, id, StopReason::kKeptLongEnough, out);
  }
}

void Core::State::Holds::hold_on(const Gpu& gpu, Given& given) const {
  std::vector<Instance*> all(gpu.instances.begin(), gpu.instances.end());
  const auto rank = [](const Instance* i) { return std::pair(i->terms.held == PinKind::kNone, i->id); };
  std::sort(all.begin(), all.end(), [&](const Instance* a, const Instance* b) { return rank(a) < rank(b); });
  for (Instance* instance : all) {
    const PinKind kind = wanted(*instance);
    const bool may = kind != PinKind::kNone && fits(*instance, kind, given);
    instance->over_bound = kind != PinKind::kNone && !may;
    set_held(*instance, may ? kind : PinKind::kNone);
    if (may) give(*instance, kind, given);
  }
}

void Core::State::Holds::set_held(Instance& instance, PinKind kind) const {
  if (instance.terms.held == kind) return;
  InstanceTerms terms = instance.terms;
  terms.held = kind;
  state.tables.pool.set_terms(instance, terms);
}

PinKind Core::State::Holds::wanted(const Instance& instance) const {
  const CoreFunction* function = state.tables.functions.find(instance.flow);
  if (function == nullptr || instance.life.starts() || instance.life.retires()) return PinKind::kNone;
  const bool is_listed = std::binary_search(state.kept.held.begin(), state.kept.held.end(), instance.flow);
  return is_listed && !instance.terms.is_seated && instance.on->serves ? function->hold.pin : PinKind::kNone;
}

// A pool keeps a place for each slot, and for each seat. On the device, what is not in use yet must find room beside what is.
bool Core::State::Holds::fits(const Instance& instance, PinKind kind, const Given& given) const {
  const Gpu& gpu = *instance.on;
  std::size_t seats = 0;
  for (const FlowId flow : state.kept.flows) {
    const std::vector<GpuId>& all = state.tables.functions.at(flow).spec.seats;
    seats += static_cast<std::size_t>(std::count(all.begin(), all.end(), gpu.id));
  }
  const std::size_t slots = std::max(state.tables.options.slots_per_gpu, gpu.capacity.slots);
  if (of(given.instances, gpu.id) + seats + slots >= gpu.capacity.clients) return false;
  const PinBounds& bounds = state.tables.pins;
  const TenantId tenant = tenant_of(instance);
  const bool several = state.tables.invocations.has_several_tenants();
  const Bytes device = kind == PinKind::kDevice ? instance.memory : instance.pinned;
  if (gpu.capacity.memory > Bytes(0)) {
    if (of(given.device, gpu.id) + device > bounds.of(gpu.capacity.memory)) return false;
    if (of(given.device_of, {gpu.id, tenant}) + device > bounds.of_tenant(gpu.capacity.memory, several)) return false;
    if (!fits_beside_others(instance, device, given)) return false;
  }
  if (kind != PinKind::kHost || bounds.staging == Bytes(0)) return true;
  return given.staging + instance.memory <= bounds.of(bounds.staging) &&
         of(given.staging_of, tenant) + instance.memory <= bounds.of_tenant(bounds.staging, several);
}

// Of those that were promised and have no instance yet.
Bytes Core::State::Holds::memory_of_missing_seats(const Gpu& gpu) const {
  Bytes sum{0};
  for (const FlowId flow : state.kept.flows) {
    const std::vector<GpuId>& seats = state.tables.functions.at(flow).spec.seats;
    auto missing = std::count(seats.begin(), seats.end(), gpu.id);
    for (const Instance* instance : state.tables.pool.of_flow(flow)) {
      if (instance->terms.is_seated && instance->gpu == gpu.id) --missing;
    }
    const Bytes each = std::min(gpu.capacity.memory, state.residency.expected(flow));
    if (missing > 0) sum += Bytes(each.count() * missing);
  }
  return sum;
}

// Who is held is asked again only where a seat waits for the room: a neighbour that grows takes no pin away.
bool Core::State::Holds::fits_beside_others(const Instance& instance, Bytes device, const Given& given) const {
  const Gpu& gpu = *instance.on;
  const bool is_held = instance.terms.held != PinKind::kNone;
  const Bytes seats = memory_of_missing_seats(gpu);
  if (is_held && seats == Bytes(0)) return true;
  const Bytes claimed = is_held ? Bytes(0) : gpu.claimed;
  const Bytes own = instance.spare() ? device : Bytes(0);  // what runs is in use already
  return in_use_beside_holds(gpu) + of(given.idle, gpu.id) + own + claimed + seats <=
         gpu.capacity.memory - gpu.unreported;
}

void Core::State::Holds::give(const Instance& instance, PinKind kind, Given& given) const {
  const TenantId tenant = tenant_of(instance);
  const Bytes device = kind == PinKind::kDevice ? instance.memory : instance.pinned;
  ++given.instances[instance.gpu];
  given.device[instance.gpu] += device;
  if (instance.spare()) given.idle[instance.gpu] += device;
  given.device_of[{instance.gpu, tenant}] += device;
  if (kind != PinKind::kHost) return;
  given.staging += instance.memory;
  given.staging_of[tenant] += instance.memory;
}

void Core::State::Holds::keep(FlowId flow, const WarmHold& hold) const {
  forget(flow);
  state.tables.functions.at(flow).hold = hold;
  if (hold == WarmHold() || !can_hold(state.tables.queue->policy())) return;
  std::vector<FlowId>& held = state.kept.held;
  held.insert(std::upper_bound(held.begin(), held.end(), flow), flow);
}

// Nobody tends what nobody is to hold: so what was held is as any other from here on.
void Core::State::Holds::forget(FlowId flow) const {
  if (std::erase(state.kept.held, flow) == 0) return;
  for (Instance* instance : state.tables.pool.of_flow(flow)) {
    instance->over_bound = false;
    set_held(*instance, PinKind::kNone);
  }
  if (state.kept.held.empty()) state.kept.next_end = Instant::max();
}

}  // namespace fairlead
