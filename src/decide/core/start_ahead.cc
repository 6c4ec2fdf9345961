// Starting ahead (CoreOptions::starts_per_gpu): a cold start is mostly process start, loading of libraries and copying,
// and leaves the GPU idle. So an instance starts without a slot, for a flow rather than for an invocation, while warm
// invocations of others run. Once ready it is an idle instance like any other, and the policy's own order gives it its
// turn.
//
// Example: one slot, A (start 9 s, tau 1 s) and B (warm, tau 2 s) with four queued each, all at 0 s. Holding the slot,
// A's start ends at 9 s and all is answered at 9 + 4 + 8 = 21 s. Started ahead, B's four run from 0 to 8 s, A is ready at
// 9 s and all is answered at 13 s.
//
// What must not happen, and why it does not:
// - Thrashing. An instance that has served nothing yet while its flow has work is not stopped for another's start, unless
//   a slot idles: then nothing that is warm could use it. Nor is any other once as many instances start, or wait for their
//   first invocation, as the GPU has slots: they are enough for the next turns, and a further start would only put somebody
//   else's warm instance in the place of one that waits. Example: a pool of 12, five functions that start in 10 s and are
//   called once a second, and 270 that start in 0.2 s and are called once. Without this rule the 270 fill the pool with
//   instances that wait for a slot, and the five lose theirs: their mean latency is 200 s instead of 20.
// - Starving. The policy orders starts as it orders invocations, and all other idle instances can go. What starts and what
//   runs fit the device together; a flow that needs much memory holds Global_VT until there is room, as ever.
// - Starting for ever. A failed start ends one queued invocation of its flow and charges the flow its time.
#include <algorithm>

#include "base/check.h"
#include "decide/core/seats.h"

namespace fairlead {
namespace {

class NobodyYields final : public Yielding {
 public:
  bool may_go(const Gpu&) const override { return false; }
  bool may_go(const Instance&) const override { return false; }
};

}  // namespace

// Work that waits goes first; then functions that nobody has called yet, in the order in which they came, where a place is free.
void Core::State::start_prepared(Instant now, Actions& out) {
  while (!kept.to_prepare.empty() && may_start_ahead()) {
    const FlowId flow = kept.to_prepare.front();
    kept.to_prepare.pop_front();
    if (draining || !functions.contains(flow) || !pool.of_flow(flow).empty()) continue;
    const Placer::StartAhead wanted{.flow = flow,
                                    .expected = residency.expected(flow),
                                    .at_once = options.starts_per_gpu,
                                    .is_session = functions.at(flow).spec.is_kernel_task};
    const auto placement = placer.place_start(pool, wanted, NobodyYields());
    if (!placement || !placement->evict.empty()) continue;
    pool.take(*pool.find(start(now, flow, *placement, InvocationId(), out)), InstanceEvent::kPrepares);
  }
}

// Terminates: each start takes one of the starts that are allowed at a time.
void Core::State::start_ahead(Instant now, Actions& out) {
  struct Startable final : Placeable {
    explicit Startable(const State& of) : state(of) {}
    bool can_run(FlowId flow) const override { return obstacle(flow) == Obstacle::kNothing; }
    Obstacle obstacle(FlowId flow) const override {
      const Obstacle found = state.obstacle_to_start(flow);
      if (found != Obstacle::kNothing) state.answers.note_start(found);
      return found;
    }
    bool may_start() const override { return state.may_start_ahead(); }
    bool has_free_slot() const override { return state.pool.has_turn(); }
    std::vector<Place> places(FlowId flow) const override { return state.places(flow); }
    const State& state;
  };
  while (policy->queued() > 0 && may_start_ahead()) {
    const auto flow = policy->next_start(now, Startable(*this));
    if (!flow) return;
    const auto placement = place_start(*flow);
    FL_CHECK(placement, "flow {} was chosen and cannot be started", flow->value());
    keep_claim();
    for (const InstanceId victim : placement->evict) evict(now, victim, out);
    start(now, *flow, *placement, InvocationId(), out);
  }
}

// What the policy's claimant needs is kept for it. While an instance of it starts, the start itself has reserved that.
void Core::State::keep_claim() {
  const FlowId claims = policy->claimant();
  if (!claims && !claim.flow) return;
  const bool begins = claims != claim.flow;
  claim.flow = claims;
  if (!claims || pool.gpus().empty()) return pool.set_claim(FlowId(), GpuId(), Bytes(0));
  const std::vector<Instance*>& instances = pool.of_flow(claims);
  const bool starts =
      std::any_of(instances.begin(), instances.end(), [](const Instance* i) { return i->starts_ahead(); });
  if (begins || !claim.place || !instances.empty())
    claim.place = placer.place_claim(pool, claims, residency.expected(claims));
  pool.set_claim(claims, claim.place->gpu, starts ? Bytes(0) : claim.place->memory);
}

bool Core::State::may_start_ahead() const {
  return std::any_of(pool.gpus().begin(), pool.gpus().end(),
                     [this](const Gpu* gpu) { return gpu->serves && gpu->starting_ahead < options.starts_per_gpu; });
}

// The next instance that the flow should have, wherever it fits. Empty: it needs none.
std::optional<Placer::StartAhead> Core::State::wanted_start(FlowId flow) const {
  const std::vector<Instance*>& instances = pool.of_flow(flow);
  const bool is_first =
      std::all_of(instances.begin(), instances.end(), [](const Instance* i) { return i->life.retires(); });
  if (!may_have_more(flow) || (!is_first && !worth_a_duplicate(flow))) return std::nullopt;
  return Placer::StartAhead{.flow = flow,
                            .expected = residency.expected(flow),
                            .at_once = options.starts_per_gpu,
                            .is_session = functions.at(flow).spec.is_kernel_task,
                            .only_where_a_slot_idles = !is_first,
                            .not_on = held_back_on(flow)};
}

// Of its instances those that go are none any more.
bool Core::State::may_have_more(FlowId flow) const {
  const auto& most = functions.at(flow).spec.most_instances;
  if (!most) return true;
  const std::vector<Instance*>& all = pool.of_flow(flow);
  const auto goes = std::count_if(all.begin(), all.end(), [](const Instance* i) { return i->life.retires(); });
  return all.size() - static_cast<std::size_t>(goes) < *most;
}

// Where it should start now. Empty: nowhere, or it needs none.
std::optional<Placement> Core::State::place_start(FlowId flow) const {
  const auto start = wanted_start(flow);
  return start ? placer.place_start(pool, *start, *this) : std::nullopt;
}

Obstacle Core::State::obstacle_to_start(FlowId flow) const {
  const auto start = wanted_start(flow);
  if (!start) return Obstacle::kItself;
  return placer.can_start(pool, *start, *this) ? Obstacle::kNothing : placer.obstacle(pool, *start);
}

// GPUs on which a ready instance of the flow could take a slot, and was not chosen: its data's turn has not come, there is no
// memory beside what runs, or another loads. Another instance there would wait for the same.
std::vector<GpuId> Core::State::held_back_on(FlowId flow) const {
  std::vector<GpuId> held_back;
  if (!functions.at(flow).keeps_data) return held_back;
  for (const Instance* instance : pool.of_flow(flow)) {
    if (!instance->spare() || instance->terms.is_entitled) continue;
    if (instance->on->takes(*instance) || instance->reload > Duration(0)) held_back.push_back(instance->gpu);
  }
  return held_back;
}

// One more instance helps only where a slot idles, and no more of them than slots idle. (An instance that is ready and
// could have taken such a slot has taken it already.)
bool Core::State::worth_a_duplicate(FlowId flow) const {
  if (!pool.has_turn()) return false;
  const std::vector<Instance*>& instances = pool.of_flow(flow);
  const auto coming = static_cast<std::size_t>(
      std::count_if(instances.begin(), instances.end(), [](const Instance* i) { return i->starts_ahead(); }));
  const FlowView view = policy->view(flow);
  const FlowSpec& spec = functions.at(flow).spec;
  if (coming >= std::min(free_turns(pool, spec.is_kernel_task), view.queued)) return false;
  const auto limit = spec.max_concurrency;
  return (!limit || view.in_flight + coming < *limit) && !worth_waiting(flow);
}

// Not once as many instances as the GPU has slots start, or are ready for work that waits within the window and have served
// none.
bool Core::State::may_go(const Gpu& gpu) const {
  std::size_t next = gpu.starting_ahead;
  for (const Instance* instance : gpu.instances) {
    if (next >= gpu.capacity.slots) return false;
    if (!instance->life.unused()) continue;
    if (queued(instance->flow) > 0 && is_active(instance->flow)) ++next;
  }
  return next < gpu.capacity.slots;
}

// One that became ready for work that still waits would have been started for nothing, and two flows could start in each
// other's place for ever.
bool Core::State::may_go(const Instance& instance) const {
  return !instance.life.unused() || queued(instance.flow) == 0;
}

InstanceId Core::State::start(Instant now, FlowId flow, const Placement& placement, InvocationId bound, Actions& out) {
  Instance& started = pool.add(now, flow, placement.gpu, placement.memory, bound);
  InstanceTerms terms = placement.terms;
  terms.is_session = functions.at(flow).spec.is_kernel_task;
  if (terms.is_session || terms.is_seated) pool.set_terms(started, terms);
  residency.add(now, started.id, flow, started.gpu, placement.memory);
  note_setup(flow);
  note_supply(flow);
  deadlines.set(started.id, now + options.start_deadline);
  ++counters.cold_starts;
  out.push_back(StartInstance{started.id, flow, started.gpu, terms.is_entitled});
  return started.id;
}

// What the flow has to run on, told to the policy when it changes. Called where an instance of it begins to start, has
// started, goes, or is to go.
void Core::State::note_supply(FlowId flow) {
  Function* function = functions.find(flow);
  if (function == nullptr) return;
  const bool only_seats = Seats::are_all(*this, function->spec);
  if (!starts_ahead() && !only_seats && function->told_supply != Supply::kSeats) return;
  Supply supply = only_seats ? Supply::kSeats : starts_ahead() ? Supply::kNone : Supply::kReady;
  for (const Instance* instance : pool.of_flow(flow)) {
    if (only_seats) break;
    if (instance->life.retires() || instance->terms.is_entitled) continue;
    if (!instance->starts_ahead()) supply = Supply::kReady;
    if (supply == Supply::kNone) supply = Supply::kStarting;
  }
  if (supply == function->told_supply) return;
  function->told_supply = supply;
  policy->set_supply(flow, supply);
}

// It was not ready and will not be.
void Core::State::fail_start(Instant now, const Instance& instance, Actions& out) {
  if (!instance.starts_ahead() || !functions.contains(instance.flow)) return;
  const auto head = policy->fail_head(now, instance.flow, now - instance.last_used);
  if (head) complete(now, *head, OutcomeKind::kStartFailed, Duration(0), out);
}

}  // namespace fairlead
