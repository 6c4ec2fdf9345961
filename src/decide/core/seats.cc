// Seats (FlowSpec::seats): where instances of a function are kept. Whoever fills them in has admitted them (pacing/share_book.h);
// here they are taken, and used.
//
//   taken   an instance starts in each seat before anybody calls, and again when it went; nobody evicts it. What stands in its way and
//           may go, goes; memory that it waits for is given to nobody else
//   used    where the function has a request, an invocation begins there as soon as it is queued: it takes no slot, waits for no turn,
//           and costs virtual time only for what it uses beyond the request
//
// Example: D = 1. A has a request and one seat, B none and 100 invocations of 1 s queued. A's invocation begins on arrival, beside B's:
// the pacer (sharing/pacing) gives A's kernels what the request says. Without the seat it would wait for B's slot.
//
// A function that has no instances but those waits for nobody but itself, and the policy is told so (Supply::kSeats). One that may have
// more (FlowSpec::most_instances) is as any other beyond its seats: these take slots in their turn.
//
// Seats that come and go (FlowSpec::parks). A start takes seconds, and a seat is wanted back within a burst. So who loses its seat parks: it
// stays as an idle instance of no slot, whose memory leaves when somebody needs the room. Who is there takes a seat that comes free, in
// the middle of a call too: the call gives its slot back, and is promised its part from its delivery on.
// Example: four seats, a quiet second: three park, at once. The next burst: three seats, none starts cold.
#include "decide/core/seats.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

namespace fairlead {
namespace {

constexpr std::size_t kLeastStartsAtOnce = 1;  // where cold starts hold slots, seats start one at a time all the same

class EverybodyYields final : public Yielding {
 public:
  bool may_go(const Gpu&) const override { return true; }
  bool may_go(const Instance&) const override { return true; }
};

// Nobody is chosen but the one who goes at once.
class AtOnce final : public Placeable {
 public:
  explicit AtOnce(FlowId flow) : flow_(flow) {}
  FlowId at_once() const override { return flow_; }
  bool can_run(FlowId) const override { return false; }
  std::vector<Place> places(FlowId) const override { return {}; }

 private:
  const FlowId flow_;
};

}  // namespace

void Core::State::Seats::tend() const {
  if (state.kept.flows.empty()) return;
  take();
  use();
}

// Memory of what cannot start yet is kept for it.
void Core::State::Seats::take() const {
  state.kept.next_start = Instant::max();
  for (const Gpu* gpu : state.tables.pool.gpus()) state.tables.pool.set_awaited(gpu->id, Bytes(0));
  std::map<GpuId, Bytes> awaited;
  for (const FlowId flow : state.kept.flows) {
    if (state.tables.draining && state.tables.queue->queued(flow) == 0) continue;
    const CoreFunction& function = state.tables.functions.at(flow);
    std::map<GpuId, std::size_t> seats;
    for (const GpuId gpu : function.spec.seats) ++seats[gpu];
    for (const auto& [gpu, wanted] : seats) awaited[gpu] += take_on(function, gpu, wanted);
  }
  for (const Gpu* gpu : state.tables.pool.gpus()) state.tables.pool.set_awaited(gpu->id, awaited[gpu->id]);
}

// Gives the memory of seats there that stay free.
Bytes Core::State::Seats::take_on(const CoreFunction& function, GpuId gpu, std::size_t wanted) const {
  if (!state.devices.contains(gpu) || !state.tables.pool.gpu(gpu).serves) return Bytes(0);
  const FlowId flow = function.spec.flow;
  std::size_t missing = wanted - std::min(wanted, taken(flow, gpu));
  if (function.spec.parks) missing -= seat_those_there(function.spec, gpu, missing);
  if (missing > 0 && function.seat_retries.not_before() > now) {
    state.kept.next_start = std::min(state.kept.next_start, function.seat_retries.not_before());
  } else {
    while (missing > 0 && start_on(function.spec, gpu)) --missing;
  }
  const Bytes each = counted_memory(state.tables.pool.gpu(gpu), state.residency.expected(flow));
  return Bytes(each.count() * static_cast<std::int64_t>(missing));
}

// Those that are to go included: their seats are not free yet.
std::size_t Core::State::Seats::taken(FlowId flow, GpuId gpu) const {
  const std::vector<Instance*>& all = state.tables.pool.of_flow(flow);
  return static_cast<std::size_t>(
      std::count_if(all.begin(), all.end(), [gpu](const Instance* i) { return i->terms.is_seated && i->gpu == gpu; }));
}

// How many of them sit now. First those that wait for work, the last used among them; then those that run, then those that start: their
// slot is free from now on.
std::size_t Core::State::Seats::seat_those_there(const FlowSpec& spec, GpuId gpu, std::size_t most) const {
  std::vector<Instance*> there;
  if (most == 0) return 0;
  for (Instance* instance : state.tables.pool.of_flow(spec.flow)) {
    if (instance->gpu == gpu && !instance->terms.is_seated && !instance->life.retires()) there.push_back(instance);
  }
  const auto rank = [](const Instance* i) {
    return std::tuple(i->life.starts(), !i->spare(), i->returning(), -i->last_used.time_since_epoch(), i->id);
  };
  std::sort(there.begin(), there.end(), [&](const Instance* a, const Instance* b) { return rank(a) < rank(b); });
  there.resize(std::min(most, there.size()));
  for (Instance* instance : there) set_seated(*instance, true);
  return there.size();
}

void Core::State::Seats::set_seated(Instance& instance, bool is_seated) const {
  const int request = state.tables.functions.at(instance.flow).spec.request_percent;
  InstanceTerms terms{.is_session = instance.terms.is_session, .is_seated = is_seated};
  if (is_seated) terms.is_entitled = request > 0, terms.request_percent = request;
  state.tables.pool.set_terms(instance, terms);
  out.push_back(SeatChange{instance.id, instance.flow, instance.gpu, terms.is_entitled});
  state.news.note_setup(instance.flow);
  state.news.note_supply(instance.flow);
}

bool Core::State::Seats::start_on(const FlowSpec& spec, GpuId gpu) const {
  std::vector<GpuId> others;
  for (const Gpu* other : state.tables.pool.gpus()) {
    if (other->id != gpu) others.push_back(other->id);
  }
  const Placer::StartAhead wanted{.flow = spec.flow,
                                  .expected = state.residency.expected(spec.flow),
                                  .at_once = std::max(state.tables.options.starts_per_gpu, kLeastStartsAtOnce),
                                  .is_session = spec.is_kernel_task,
                                  .not_on = std::move(others),
                                  .is_seat = true};
  auto placement = state.placer.place_start(state.tables.pool, wanted, EverybodyYields());
  if (!placement) return false;
  for (const InstanceId victim : placement->evict) state.keeper.evict(now, victim, out);
  placement->terms = {
      .is_seated = true, .is_entitled = spec.request_percent > 0, .request_percent = spec.request_percent};
  const InstanceId started = state.keeper.start(now, spec.flow, *placement, InvocationId(), out);
  state.tables.pool.take(*state.tables.pool.find(started), InstanceEvent::kPrepares);
  return true;
}

void Core::State::Seats::use() const {
  for (const FlowId flow : state.kept.flows) {
    state.news.note_supply(flow);
    while (state.tables.queue->queued(flow) > 0) {
      Instance* const seat = free_seat(flow);
      if (seat == nullptr) break;
      const auto choice = state.tables.queue->choose(now, AtOnce(flow));
      if (!choice) break;  // the flow or its tenant is at its limit
      state.run_on_warm(now, choice->invocation, {.gpu = seat->gpu, .instance = seat, .memory = memory_of(*seat)}, out);
    }
  }
}

// Null: none is free, or has the memory. One that has asked for the next goes before one that is about to.
Instance* Core::State::Seats::free_seat(FlowId flow) const {
  const auto rank = [](const Instance* i) { return std::pair(i->returning(), i->id); };
  Instance* best = nullptr;
  for (Instance* instance : state.tables.pool.of_flow(flow)) {
    if (!instance->terms.is_entitled || !instance->spare() || !instance->on->serves) continue;
    if (!state.tables.pool.has_room(*instance, memory_of(*instance))) continue;
    if (!state.tables.pool.task_room().fits(instance->id)) continue;
    if (best == nullptr || rank(instance) < rank(best)) best = instance;
  }
  return best;
}

Bytes Core::State::Seats::memory_of(const Instance& seat) const {
  return counted_memory(seat, std::max(state.residency.expected(seat.flow), seat.needed));
}

void Core::State::Seats::move(FlowId flow, std::vector<GpuId> seats) const {
  CoreFunction* function = state.tables.functions.find(flow);
  if (function == nullptr) return;
  function->spec.seats = std::move(seats);
  keep(*function);
  clear_surplus(*function, function->spec.parks);
  state.news.note_supply(flow);
}

void Core::State::Seats::renew(const CoreFunction& function) const {
  clear_surplus(function, /*parks=*/true);
  std::map<GpuId, std::size_t> seats;
  for (const GpuId gpu : function.spec.seats) ++seats[gpu];
  for (const auto& [gpu, wanted] : seats) {
    const std::size_t missing = wanted - std::min(wanted, taken(function.spec.flow, gpu));
    seat_those_there(function.spec, gpu, missing);
  }
  for (Instance* instance : state.tables.pool.of_flow(function.spec.flow)) renew(function, *instance);
}

// Who runs by a request that there is no more has no slot to go on in. It keeps its seat until its answer, and goes then; what it is
// promised from now on is what the new terms say.
void Core::State::Seats::renew(const CoreFunction& function, Instance& instance) const {
  const bool is_stranded = instance.bound && instance.terms.is_entitled && function.spec.request_percent == 0;
  if (!instance.life.retires() && !is_stranded) return set_seated(instance, instance.terms.is_seated);
  if (is_stranded && !instance.life.retires()) state.tables.pool.take(instance, InstanceEvent::kRetired);
  out.push_back(SeatChange{instance.id, instance.flow, instance.gpu, instance.terms.is_entitled});
}

// Those beyond the seats that there are. `parks`: who waits for work stays, without a seat.
void Core::State::Seats::clear_surplus(const CoreFunction& function, bool parks) const {
  std::map<GpuId, std::ptrdiff_t> left;
  for (const GpuId gpu : function.spec.seats) ++left[gpu];
  std::vector<Instance*> all = state.tables.pool.of_flow(function.spec.flow);  // a copy: stop() changes it
  if (parks) {
    // Who runs keeps its seat, and who was used last; who has not started yet is the first to go.
    const auto rank = [](const Instance* i) {
      return std::tuple(i->life.starts(), !i->life.runs(), -i->last_used.time_since_epoch(), i->id);
    };
    std::sort(all.begin(), all.end(), [&](const Instance* a, const Instance* b) { return rank(a) < rank(b); });
  }
  for (Instance* instance : all) {
    if (!instance->terms.is_seated || instance->life.retires() || --left[instance->gpu] >= 0) continue;
    if (parks && instance->spare()) {
      set_seated(*instance, false);
    } else if (instance->life.holds_slot()) {
      state.tables.pool.take(*instance, InstanceEvent::kRetired);
    } else {
      state.keeper.stop(now, instance->id, StopReason::kFunctionChanged, out);
    }
  }
}

// Where every invocation has an instance of its own, or a GPU the instances of one function, there is nothing to keep.
void Core::State::Seats::keep(const CoreFunction& function) const {
  forget(function.spec.flow);
  const bool can_keep =
      state.tables.queue->policy().keeps_instances && !state.tables.queue->policy().one_function_per_gpu;
  if (can_keep && !function.spec.seats.empty()) state.kept.flows.push_back(function.spec.flow);
}

void Core::State::Seats::forget(FlowId flow) const {
  if (std::erase(state.kept.flows, flow) == 0 || !state.kept.flows.empty()) return;
  state.kept.next_start = Instant::max();
  for (const Gpu* gpu : state.tables.pool.gpus()) state.tables.pool.set_awaited(gpu->id, Bytes(0));
}

void Core::State::Seats::note_failure(const Instance& instance) const {
  CoreFunction* function = state.tables.functions.find(instance.flow);
  if (function == nullptr || !instance.terms.is_seated) return;
  function->seat_retries.failed(now, instance.life.starts());
}

}  // namespace fairlead
