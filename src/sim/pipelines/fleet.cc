#include "sim/pipelines/fleet.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <queue>
#include <utility>

#include "base/check.h"
#include "base/rng.h"
#include "sim/pipelines/slices.h"

namespace fairlead::sim {
namespace {

using namespace std::chrono_literals;

constexpr Duration kWarmUp = 30s;
constexpr Duration kTick = 250ms;
constexpr Duration kHold = 2s;          // an instance too many for as long drains
constexpr Duration kSharedPeriod = 5s;  // how often the number of shared slices changes
constexpr Duration kProcess = 50ms;     // a process, when its memory is in the host
constexpr double kLinkBytesPerS = 12e9;
constexpr double kSpread = 1.5;     // standard deviations of what runs at a time
constexpr double kRelief = 0.5;     // by so much of what it wants another must be better off
constexpr double kRateWindowS = 2;  // of the moving rate
constexpr double kSegmentS = 15;    // mean time for which a rate holds

// Arrivals of one function.
class Arrivals {
 public:
  Arrivals(double mean_rate, double burstiness, std::uint64_t seed)
      : mean_rate_(mean_rate), burstiness_(burstiness), rng_(seed) {}

  Instant next(Instant now) {
    while (true) {
      if (now >= until_) begin_segment(now);
      const Instant at = now + from_seconds(rng_.exponential(1 / rate_)) + Duration(1);
      if (at < until_) return at;
      now = until_;
    }
  }

 private:
  void begin_segment(Instant now) {
    until_ = now + from_seconds(rng_.exponential(kSegmentS)) + Duration(1);
    const double normal = std::sqrt(-2 * std::log1p(-rng_.uniform())) * std::cos(6.283185307179586 * rng_.uniform());
    rate_ = std::max(1e-3, mean_rate_ * std::exp(burstiness_ * normal - burstiness_ * burstiness_ / 2));
  }

  const double mean_rate_, burstiness_;
  Rng rng_;
  double rate_ = 1;
  Instant until_;
};

struct Instance {
  InstanceId id;
  std::size_t function = 0;
  PipelinePlan plan;
  std::vector<std::size_t> slices;  // by stage; of host stages nothing is read
  std::vector<Instant> free_at;     // by stage
  Instant ready;
  bool is_ready = false, drains = false;
  std::size_t inside = 0;
  std::optional<Instant> too_many_since;
  InstanceId replaces;  // a pipeline, when this one is ready
};

struct Function {
  const Application* what;
  PipelineModel model;
  Arrivals arrivals;
  KeepAlive life;
  RequestQueue queue;
  Duration expected{0};     // of a request, for its adjusted deadline
  bool is_in_host = false;  // it was started once
  Instant host_from;        // from when on
  double rate = 0;          // moving
  Instant last_arrival;
  std::uint64_t arrived = 0;              // since the last tick
  std::map<InstanceId, MoveToOne> moves;  // by pipeline
};

struct Event {
  enum class What { kArrive, kReady, kFree, kAnswered, kSharedDone, kDecide };
  Instant at;
  std::uint64_t order = 0;
  What what = What::kDecide;
  std::size_t function = 0;
  std::uint64_t id = 0;  // of an instance, or a shared slice
  bool operator<(const Event& other) const { return std::tie(other.at, other.order) < std::tie(at, order); }
};

// What becomes of requests that arrive after the warm-up.
class Meter {
 public:
  explicit Meter(std::size_t functions) : arrived_(functions), hits_(functions) {}

  void arrived(std::size_t function, Instant at) {
    if (at >= Instant(kWarmUp)) ++arrived_[function];
  }
  void answered(std::size_t function, const QueuedRequest& request, Instant sent, Duration transfer, Duration execution,
                Instant done, Instant end) {
    hash_ = hash_ * 1099511628211u + static_cast<std::uint64_t>((done - request.arrived).count()) + function;
    if (request.arrived < Instant(kWarmUp) || done > end) return;
    const Duration latency = done - request.arrived;
    if (done <= request.deadline) ++hits_[function];
    latencies_.push_back(to_ms(latency));
    queue_ += to_ms(sent - request.arrived);
    transfer_ += to_ms(transfer);
    execution_ += to_ms(execution);
    if (request.adjusted() >= sent) {
      met_.push_back(static_cast<double>(latency.count()) /
                     static_cast<double>((request.deadline - request.arrived).count()));
    }
  }

  FleetResult result(Duration length) {
    FleetResult made;
    std::sort(latencies_.begin(), latencies_.end());
    std::sort(met_.begin(), met_.end());
    const double count = std::max(1.0, static_cast<double>(latencies_.size()));
    double hits = 0;
    for (std::size_t i = 0; i < arrived_.size(); ++i) {
      made.requests += arrived_[i];
      hits += hits_[i];
      made.hits.push_back(arrived_[i] == 0 ? 1 : hits_[i] / static_cast<double>(arrived_[i]));
    }
    made.hit_rate = made.requests == 0 ? 1 : hits / static_cast<double>(made.requests);
    made.answered_per_s = static_cast<double>(latencies_.size()) / to_seconds(length);
    made.in_time_per_s = hits / to_seconds(length);
    made.p50_ms = part(latencies_, 0.5);
    made.p95_ms = part(latencies_, 0.95);
    made.p95_of_objective = part(met_, 0.95);
    made.queue_ms = queue_ / count;
    made.transfer_ms = transfer_ / count;
    made.execution_ms = execution_ / count;
    made.latencies_ms = std::move(latencies_);
    made.state_hash = hash_;
    return made;
  }

 private:
  static double part(const std::vector<double>& sorted, double part) {
    return sorted.empty() ? 0 : sorted[static_cast<std::size_t>(part * static_cast<double>(sorted.size() - 1))];
  }

  std::vector<std::uint64_t> arrived_;
  std::vector<double> hits_, latencies_, met_;
  double queue_ = 0, transfer_ = 0, execution_ = 0;
  std::uint64_t hash_ = 14695981039346656037u;
};

Duration load_time(Bytes memory) {
  return kProcess + from_seconds(static_cast<double>(memory.count()) / kLinkBytesPerS);
}

class Fleet {
 public:
  Fleet(const FleetOptions& options, const Planner& planner, const std::vector<std::vector<int>>& gpus)
      : options_(options),
        planner_(planner),
        pool_(gpus),
        shared_{.rule = SharedSlices({.rule = options.eviction})},
        meter_(options.functions.size()),
        end_(Instant(kWarmUp + options.length)) {
    const std::vector<int> all = all_slices(gpus);
    for (std::size_t i = 0; i < options.functions.size(); ++i) {
      PipelineModel model(options.functions[i].dag, paper_types(), options.hop);
      const double most = fluid_bound(model, all);
      const double mean = options.load * most / static_cast<double>(options.functions.size());
      functions_.push_back({.what = &options.functions[i],
                            .model = std::move(model),
                            .arrivals = Arrivals(mean, options.burstiness, options.seed * 1000 + i),
                            .life = KeepAlive(),
                            .queue = RequestQueue(options.order, options.late_share),
                            .moves = {}});
      Function& made = functions_.back();
      for (std::size_t type = 0; type < all.size(); ++type) {
        if (const auto alone = made.model.alone(type); alone && all[type] > 0) made.expected = *alone;
      }
      if (made.expected == Duration(0)) made.expected = made.model.dag().objective * 2 / 3;
      at(made.arrivals.next(Instant()), Event::What::kArrive, i);
    }
    change_shared(2);
    at(Instant(kTick), Event::What::kDecide);
  }

  FleetResult run() {
    while (!events_.empty() && events_.top().at < end_) {
      const Event event = events_.top();
      events_.pop();
      now_ = event.at;
      carry_out(event);
    }
    FleetResult made = meter_.result(options_.length);
    const double answered = std::max(1.0, made.answered_per_s * to_seconds(options_.length));
    const double counted = to_seconds(options_.length) / to_seconds(options_.length + kWarmUp);
    made.mig_s = pool_.active().mig_s * counted / answered;
    made.gpu_s = pool_.active().gpu_s * counted / answered;
    const double minutes = to_seconds(options_.length + kWarmUp) / 60;
    made.starts = static_cast<double>(counts_.starts) / minutes;
    made.evictions = static_cast<double>(counts_.evictions) / minutes;
    made.migrations = static_cast<double>(counts_.migrations) / minutes;
    return made;
  }

 private:
  void at(Instant when, Event::What what, std::size_t function = 0, std::uint64_t id = 0) {
    events_.push({.at = when, .order = ++last_.event, .what = what, .function = function, .id = id});
  }

  void carry_out(const Event& event) {
    using enum Event::What;
    switch (event.what) {
      case kArrive: return arrive(event.function);
      case kReady: return become_ready(InstanceId(event.id));
      case kFree: return dispatch(event.function);
      case kAnswered: return answered(InstanceId(event.id));
      case kSharedDone: {
        const auto [from, to] = shared_.runs.at(SharedSliceId(event.id));
        shared_.rule.finished(now_, SharedSliceId(event.id), to - from);
        for (std::size_t i = 0; i < functions_.size(); ++i) dispatch(i);
        return;
      }
      case kDecide: return tick();
    }
  }

  // ---- requests

  void arrive(std::size_t index) {
    Function& one = functions_[index];
    ++one.arrived;
    one.last_arrival = now_;
    meter_.arrived(index, now_);
    one.life.on_request(now_);
    if (!one.is_in_host) {
      one.is_in_host = true;
      one.host_from = now_ + kColdStart;
    }
    one.queue.push({.id = PipelineRequestId(++last_.request),
                    .arrived = now_,
                    .deadline = now_ + one.model.dag().objective,
                    .expected = one.expected});
    at(one.arrivals.next(now_), Event::What::kArrive, index);
    dispatch(index);
  }

  void dispatch(std::size_t index) {
    Function& one = functions_[index];
    while (!one.queue.empty()) {
      std::vector<RoutedInstance> all;
      for (const auto& [id, instance] : instances_) {
        if (instance.function != index) continue;
        const bool takes = instance.is_ready && !instance.drains && instance.free_at.front() <= now_;
        all.push_back({.id = id,
                       .latency = instance.plan.latency,
                       .inside = instance.inside,
                       .capacity = instance.free_at.size() + 1,
                       .is_hot = true,
                       .takes_new = takes});
      }
      const auto found = route(all);
      if (!found && !share(index)) return;
      if (!found) continue;
      Instance& instance = instances_.at(*found);
      // A little more than predicted, as times vary.
      const auto request = one.queue.pop(now_, walk(instance, false).done * 21 / 20, late_too(one, all));
      if (!request) return;
      send(instance, *request);
    }
  }

  double noise() { return 0.95 + 0.1 * noise_.uniform(); }

  // The late are served in gaps. A gap is where a request in time that comes now still finds an idle instance, or none has come for long.
  bool late_too(const Function& one, const std::vector<RoutedInstance>& all) {
    if (!options_.keeps_one_idle || options_.order == QueueOrder::kDeadline) return true;
    const auto idle = std::count_if(all.begin(), all.end(), [](const RoutedInstance& each) {
      return each.takes_new && each.inside < each.capacity;
    });
    if (idle > 1) return true;
    const Duration patience = one.model.dag().objective / 2;
    if (now_ - one.last_arrival >= patience) return true;
    at(one.last_arrival + patience, Event::What::kFree, static_cast<std::size_t>(&one - functions_.data()));
    return false;
  }

  // The way of a request that is sent now. `for_good`: it takes the slices; else it is only looked at, without noise.
  struct Way {
    Duration transfer{0}, execution{0}, done{0};
  };
  Way walk(Instance& instance, bool for_good) {
    const auto& stages = functions_[instance.function].model.partitions()[instance.plan.partition].stages;
    Instant rank_ready = now_, rank_done = now_;
    Way way;
    for (std::size_t i = 0; i < stages.size(); ++i) {
      if (i > 0 && stages[i].rank != stages[i - 1].rank) {
        way.transfer += stages[i].hop;
        rank_ready = rank_done;
      }
      const bool on_slice = stages[i].needs_slice;
      const Duration plain = on_slice ? *stages[i].times[instance.plan.slices[i].front()] : stages[i].host;
      const Duration time(std::llround(static_cast<double>(plain.count()) * (for_good ? noise() : 1)));
      const Instant from =
          on_slice ? std::max(rank_ready + stages[i].hop, instance.free_at[i]) : rank_ready + stages[i].hop;
      if (on_slice && for_good) {
        pool_.note_busy(instance.slices[i], from, from + time);
        instance.free_at[i] = from + time;
      }
      way.execution += time;
      rank_done = std::max(rank_done, from + time);
    }
    way.done = rank_done - now_;
    return way;
  }

  void send(Instance& instance, const QueuedRequest& request) {
    const Way way = walk(instance, true);
    ++instance.inside;
    meter_.answered(instance.function, request, now_, way.transfer, way.execution, now_ + way.done, end_);
    at(instance.free_at.front(), Event::What::kFree, instance.function);
    at(now_ + way.done, Event::What::kAnswered, instance.function, instance.id.value());
  }

  void answered(InstanceId id) {
    Instance& instance = instances_.at(id);
    --instance.inside;
    const std::size_t function = instance.function;
    if (instance.drains && instance.inside == 0) retire(id);
    dispatch(function);
  }

  // ---- shared slices

  std::set<SharedSliceId> shared_for(const Function& one) const {
    std::set<SharedSliceId> fits;
    for (const auto& [id, slice] : shared_.slices) {
      const auto alone = one.model.alone(pool_.type_of(slice));
      if (alone && *alone <= one.model.dag().objective) fits.insert(id);
    }
    return fits;
  }

  bool share(std::size_t index) {
    Function& one = functions_[index];
    Bytes memory{0};
    for (const Component& component : one.model.dag().components) memory += component.peak;
    const Duration back = load_time(memory);
    const auto placed = shared_.rule.place(now_, FlowId(index + 1), back, shared_for(one));
    if (!placed) return false;
    const std::size_t slice = shared_.slices.at(placed->slice);
    Duration load{0};
    if (placed->must_load) load = std::max(back, one.host_from - now_);
    if (placed->evicts) {
      ++counts_.evictions;
      functions_[placed->evicts->value() - 1].life.on_evicted(now_);
    }
    const Duration alone = *one.model.alone(pool_.type_of(slice));
    auto popped = one.queue.pop(now_, load + alone);
    if (!popped) popped = one.queue.pop(now_);  // late here; nobody else takes it now
    const QueuedRequest request = *popped;
    const Duration execution(std::llround(static_cast<double>(alone.count()) * noise()));
    const Instant done = now_ + load + execution;
    pool_.note_busy(slice, now_ + load, done);
    shared_.runs[placed->slice] = {now_, done};
    shared_.rule.note_answer(done <= request.deadline);
    meter_.answered(index, request, now_, load, execution, done, end_);
    at(done, Event::What::kSharedDone, index, placed->slice.value());
    return true;
  }

  // More: free slices of the largest type. Fewer: idle ones, the smallest first; one stays.
  void change_shared(int change) {
    for (std::size_t type = pool_.free().size(); change > 0 && type-- > 0;) {
      while (change > 0 && pool_.free()[type] > 0) {
        const SharedSliceId id(++last_.shared);
        shared_.slices[id] = pool_.take(type);
        shared_.rule.add(id);
        --change;
      }
    }
    for (auto slice = shared_.slices.begin();
         change < 0 && shared_.slices.size() > 1 && slice != shared_.slices.end();) {
      const auto resident = shared_.rule.resident(slice->first);
      if (!shared_.rule.remove(slice->first)) {
        ++slice;
        continue;
      }
      if (resident) functions_[resident->value() - 1].life.on_evicted(now_);
      pool_.give_back(slice->second);
      slice = shared_.slices.erase(slice);
      ++change;
    }
  }

  // ---- instances

  double wanted(Function& one) {
    const double waits = static_cast<double>(one.queue.in_time(now_));
    // Square-root staffing: as many idle as the spread of a Poisson load asks for.
    const double spread = std::sqrt(one.rate / std::max(1e-3, to_seconds(one.expected)));
    return one.rate + kSpread * spread + waits / std::max(0.1, to_seconds(one.model.dag().objective));
  }
  double capacity(std::size_t function) const {
    double all = 0;
    for (const auto& [id, one] : instances_) {
      if (one.function == function && !one.drains && !one.replaces) all += one.plan.rate_per_s;
    }
    return all;
  }

  Instance& start(std::size_t function, PipelinePlan plan) {
    Function& one = functions_[function];
    Instance made{
        .id = InstanceId(++last_.instance), .function = function, .plan = std::move(plan), .slices = {}, .free_at = {}};
    Duration slowest{0};
    const auto& stages = one.model.partitions()[made.plan.partition].stages;
    for (std::size_t i = 0; i < stages.size(); ++i) {
      made.slices.push_back(stages[i].needs_slice ? pool_.take(made.plan.slices[i].front()) : 0);
      made.free_at.push_back(now_);
      slowest = std::max(slowest, load_time(stages[i].memory));
    }
    const bool warm = options_.warm_starts && one.is_in_host;
    made.ready = warm ? std::max(now_ + slowest, one.host_from) : now_ + kColdStart;
    ++counts_.starts;
    at(made.ready, Event::What::kReady, function, made.id.value());
    return instances_.emplace(made.id, std::move(made)).first->second;
  }

  void become_ready(InstanceId id) {
    const auto found = instances_.find(id);
    if (found == instances_.end()) return;
    found->second.is_ready = true;
    const std::size_t function = found->second.function;
    if (const InstanceId old = std::exchange(found->second.replaces, {}); old) {
      const auto pipeline = instances_.find(old);
      if (pipeline != instances_.end() &&
          functions_[function].moves[old].one_is_warm() == MoveToOne::Step::kRouteToOne) {
        ++counts_.migrations;
        drain(pipeline->second);
      }
    }
    dispatch(function);
  }

  void drain(Instance& one) {
    one.drains = true;
    if (one.inside == 0) retire(InstanceId(one.id));
  }

  void retire(InstanceId id) {
    const Instance& one = instances_.at(id);
    Function& function = functions_[one.function];
    const auto& stages = function.model.partitions()[one.plan.partition].stages;
    for (std::size_t i = 0; i < stages.size(); ++i) {
      if (stages[i].needs_slice) pool_.give_back(one.slices[i]);
    }
    if (const auto move = function.moves.find(id); move != function.moves.end()) {
      move->second.pipeline_is_empty();
      function.moves.erase(move);
    }
    instances_.erase(id);
  }

  // ---- how many there are

  void tick() {
    const double weight = 1 - std::exp(-to_seconds(kTick) / kRateWindowS);
    std::vector<std::pair<double, std::size_t>> short_of;  // the part that is there, and the function
    for (std::size_t i = 0; i < functions_.size(); ++i) {
      Function& one = functions_[i];
      one.rate += weight * (static_cast<double>(std::exchange(one.arrived, 0)) / to_seconds(kTick) - one.rate);
      one.life.on_utilisation(now_, one.rate * to_seconds(one.expected));
      one.life.wake(now_);
      const double want = wanted(one), have = capacity(i);
      if (one.life.state() == KeepAliveState::kExclusiveHot && have < want) short_of.emplace_back(have / want, i);
      shrink(i, want, have);
    }
    std::sort(short_of.begin(), short_of.end());
    bool is_short = false;
    for (const auto& [part, function] : short_of) {
      if (grow(function)) continue;
      if (!is_short) relieve(function);
      is_short = true;
    }
    if (options_.migrates && !is_short) migrate();
    if (now_ >= shared_.next) {
      change_shared(shared_.rule.wanted_change(kSharedPeriod));
      shared_.next = now_ + kSharedPeriod;
    }
    for (std::size_t i = 0; i < functions_.size(); ++i) dispatch(i);
    at(now_ + kTick, Event::What::kDecide);
  }

  Duration planned(const Function& one) const {
    return Duration(std::llround(static_cast<double>(one.model.dag().objective.count()) * options_.plan_objective));
  }

  // True: it has what it wants now.
  bool grow(std::size_t index) {
    Function& one = functions_[index];
    const double want = wanted(one);
    for (double have = capacity(index); have < want; have = capacity(index)) {
      auto plan =
          planner_.one(one.model, {.free = pool_.free(), .wanted_per_s = want - have, .objective = planned(one)});
      if (!plan || plan->count() == 0) return false;
      start(index, std::move(*plan));
    }
    return true;
  }

  // Nothing is free for a function that has less of what it wants than another one would have with an instance less: that one goes.
  void relieve(std::size_t index) {
    const double least = capacity(index) / std::max(1e-9, wanted(functions_[index]));
    Instance* goes = nullptr;
    double most = least + kRelief;
    for (auto& [id, one] : instances_) {
      if (one.function == index || one.drains || !one.is_ready || one.replaces) continue;
      const double left =
          (capacity(one.function) - one.plan.rate_per_s) / std::max(1e-9, wanted(functions_[one.function]));
      if (left < most) continue;
      most = left;
      goes = &one;
    }
    if (goes != nullptr) drain(*goes);
  }

  // Of those without which the rest suffices, the one with the highest latency goes, once it has been too many for a while.
  void shrink(std::size_t index, double want, double have) {
    const bool hot = functions_[index].life.state() == KeepAliveState::kExclusiveHot;
    Instance* last = nullptr;
    for (auto& [id, one] : instances_) {
      if (one.function != index || one.drains || !one.is_ready) continue;
      const bool too_many = !hot || have - one.plan.rate_per_s >= want;
      if (!too_many) one.too_many_since.reset();
      if (too_many && !one.too_many_since) one.too_many_since = now_;
      if (!too_many || now_ - *one.too_many_since < kHold) continue;
      if (last == nullptr || one.plan.latency >= last->plan.latency) last = &one;
    }
    if (last != nullptr) drain(*last);
  }

  // A pipeline whose function fits a slice that is free moves there, where that slice answers as much.
  void migrate() {
    for (auto& [id, pipeline] : instances_) {
      if (pipeline.plan.count() < 2 || pipeline.drains || !pipeline.is_ready) continue;
      Function& one = functions_[pipeline.function];
      if (one.moves[id].state() != MoveToOne::State::kPipeline) continue;
      auto whole =
          (*planner_named("infless"))->one(one.model, {.free = pool_.free(), .objective = one.model.dag().objective});
      if (!whole || whole->rate_per_s < pipeline.plan.rate_per_s || whole->compute > pipeline.plan.compute) continue;
      if (one.moves[id].slice_free(false) != MoveToOne::Step::kStartOne) continue;
      start(pipeline.function, std::move(*whole)).replaces = id;
      return;  // one at a time
    }
  }

  struct Shared {
    SharedSlices rule;
    std::map<SharedSliceId, std::size_t> slices;  // of the pool
    std::map<SharedSliceId, std::pair<Instant, Instant>> runs;
    Instant next{kSharedPeriod};
  };
  struct Ids {
    std::uint64_t event = 0, request = 0, instance = 0, shared = 0;
  };
  struct Counts {
    std::uint64_t starts = 0, evictions = 0, migrations = 0;
  };

  const FleetOptions& options_;
  const Planner& planner_;
  SlicePool pool_;
  Shared shared_;
  Meter meter_;
  const Instant end_;
  std::vector<Function> functions_;
  std::map<InstanceId, Instance> instances_;
  std::priority_queue<Event> events_;
  Rng noise_{7};
  Instant now_;
  Ids last_;
  Counts counts_;
};

}  // namespace

Result<FleetResult> run_fleet(const FleetOptions& options) {
  const auto planner = planner_named(options.planner);
  if (!planner) return fail(planner.error());
  const auto gpus = partition_named(options.partition, options.gpus);
  if (!gpus) return fail(gpus.error());
  return Fleet(options, **planner, *gpus).run();
}

}  // namespace fairlead::sim
