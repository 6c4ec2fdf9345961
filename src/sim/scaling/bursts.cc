#include "sim/scaling/bursts.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <map>
#include <optional>

#include "base/check.h"
#include "base/rng.h"
#include "decide/scaling/scaler.h"
#include "sim/burst_load.h"

namespace fairlead::sim {
namespace {

using namespace std::chrono_literals;

constexpr Duration kTick = 100ms;
constexpr Duration kWindow = 1s;
constexpr Duration kWarmUp = 120s;
constexpr double kNearlyNothing = 1e-9;  // seconds of work

struct Instance {
  InstanceId id;
  std::size_t function = 0;
  InstanceSize size;
  InstanceStage stage = InstanceStage::kStarting;
  Instant changes;               // when it has started, or has returned
  bool parks_then = false;       // as soon as it has started
  bool stops_then = false;       // as soon as it is not busy
  std::optional<Instant> asked;  // the arrival of the request that it runs
  double left_s = 0, used_s = 0, speed = 0;
  Instant idle_since;
  GpuId gpu;
  std::optional<Instant> leaves;  // its memory is on its way to the host until then
};

struct Function {
  BurstFunction what;
  BurstLoad load;
  std::unique_ptr<Scaler> scaler;
  double least_area_s;  // of a request
  Instant next_arrival{}, next_decision{};
  std::deque<Instant> queue{};
  std::uint64_t arrived = 0, answered = 0, missed = 0;
  bool has_come = false;  // a request, in this event
};

// What is counted after the warm-up.
struct Sums {
  std::uint64_t cold_starts = 0, returns = 0;
  double area_s = 0, devices_s = 0, bound_s = 0, parked_s = 0;
};

class BurstRun {
 public:
  explicit BurstRun(const BurstOptions& options)
      : options_(options),
        packer_({.rule = options.packing, .most_moves = 0}),
        end_(Instant(kWarmUp + options.length)) {
    for (std::size_t i = 0; i < options.functions.size(); ++i) {
      const BurstFunction& one = options.functions[i];
      ScalerSettings settings{.terms = terms_of(one.shape),
                              .sizes = {},
                              .cold_start = kColdStart,
                              .return_time = one.shape.return_time(),
                              .predictor = options.predictor,
                              .headroom = options.headroom};
      for (const InstanceSize& size : fine_grid(one.shape.model)) {
        if (size.quota_percent <= 100 - options.reserve_percent) settings.sizes.push_back(size);
      }
      auto scaler = make_scaler(options.scaler, settings);
      FL_CHECK(scaler, "{}", scaler.error().message);
      BurstLoad load(options.shape, one.usual_rate_per_s, kWarmUp + options.length, options.seed * 1000 + i);
      functions_.push_back(
          {.what = one, .load = load, .scaler = std::move(*scaler), .least_area_s = least_area_per_request(one.shape)});
      functions_.back().next_arrival = functions_.back().load.next(Instant());
    }
  }

  BurstResult run() {
    while (now_ < end_) {
      set_speeds();
      advance(next_event());
      complete();
      change_stages();
      if (now_ == next_window_) begin_window();
      arrive();
      if (now_ == next_tick_) tick();
      hand_out();
    }
    return result();
  }

 private:
  // ---- time

  Instant next_event() const {
    Instant next = std::min({next_tick_, next_window_, end_});
    for (const Function& one : functions_) next = std::min(next, one.next_arrival);
    for (const auto& [id, one] : instances_) {
      if (one.stage == InstanceStage::kStarting || one.stage == InstanceStage::kReturning)
        next = std::min(next, one.changes);
      if (one.leaves) next = std::min(next, *one.leaves);
      if (!one.asked || one.speed <= 0) continue;
      double until = one.left_s;
      const double quota_left = one.size.quota_percent / 100.0 * to_seconds(kWindow) - one.used_s;
      if (quota_left > kNearlyNothing) until = std::min(until, quota_left);
      next = std::min(next, now_ + std::max(Duration(1), from_seconds(until / one.speed) + Duration(1)));
    }
    return next;
  }

  void advance(Instant to) {
    const double passed = to_seconds(to - now_);
    for (auto& [id, one] : instances_) {
      if (!one.asked) continue;
      one.left_s -= passed * one.speed;
      one.used_s += passed * one.speed;
    }
    if (now_ >= Instant(kWarmUp)) {
      for (const auto& [id, one] : instances_) {
        if (one.gpu) sums_.area_s += passed * one.size.area();
        sums_.parked_s += one.stage == InstanceStage::kParked ? passed : 0;
      }
      sums_.devices_s += passed * static_cast<double>(packer_.devices_in_use());
      for (const Function& one : functions_) {
        sums_.bound_s += passed * one.load.rate(now_) * one.least_area_s;
      }
    }
    now_ = to;
  }

  void begin_window() {
    for (auto& [id, one] : instances_) one.used_s = 0;
    next_window_ += kWindow;
  }

  // ---- devices

  void set_speeds() {
    for (std::vector<Instance*>& all : busy_) all.clear();
    for (auto& [id, one] : instances_) {
      if (!one.asked) continue;
      if (busy_.size() <= one.gpu.value()) busy_.resize(one.gpu.value() + 1);
      busy_[one.gpu.value()].push_back(&one);
    }
    for (const std::vector<Instance*>& all : busy_) {
      if (!all.empty()) set_speeds_of(all);
    }
  }

  void set_speeds_of(const std::vector<Instance*>& all) const {
    double entitled = 0, least = 0, beyond = 0;
    for (const Instance* one : all) {
      const double width = one->size.width_percent / 100.0, quota = one->size.quota_percent / 100.0;
      if (has_quota(*one)) {
        entitled += width;
        least += width * quota;
      } else {
        beyond += width;
      }
    }
    const double part = entitled <= 1 ? 1 : std::max(0.0, (1 - least) / (entitled - least));
    const double room = options_.borrows ? std::max(0.0, 1 - entitled) : 0;
    for (Instance* one : all) {
      const double quota = one->size.quota_percent / 100.0;
      one->speed = has_quota(*one) ? quota + part * (1 - quota) : std::min(1.0, room / beyond);
    }
  }

  static bool has_quota(const Instance& one) {
    return one.used_s < one.size.quota_percent / 100.0 * to_seconds(kWindow) - kNearlyNothing;
  }

  PackedInstance packed(const Instance& one) const {
    return {.id = one.id,
            .share = {.flow = {},
                      .width_percent = one.size.width_percent,
                      .request_percent = one.size.quota_percent,
                      .memory = functions_[one.function].what.shape.memory}};
  }

  void place(Instance& one) {
    if (packer_.devices().size() == packer_.devices_in_use()) {
      packer_.add_device(GpuId(packer_.devices().size() + 1),
                         {.memory = kDeviceMemory, .reserve_percent = options_.reserve_percent});
    }
    one.gpu = packer_.place(packed(one)).gpu;
    FL_CHECK(one.gpu, "an empty device does not hold {} x {}", one.size.width_percent, one.size.quota_percent);
  }

  void leave_device(Instance& one) {
    packer_.remove(one.id);
    one.gpu = {};
  }

  // ---- requests

  void arrive() {
    for (Function& one : functions_) {
      while (one.next_arrival <= now_) {
        one.queue.push_back(one.next_arrival);
        one.has_come = true;
        ++one.arrived;
        one.next_arrival = one.load.next(one.next_arrival);
      }
    }
  }

  void complete() {
    std::vector<InstanceId> gone;
    for (auto& [id, one] : instances_) {
      if (!one.asked || one.left_s > kNearlyNothing) continue;
      count(functions_[one.function], *one.asked, now_);
      hash_ = hash_ * 31 + static_cast<std::uint64_t>((now_ - *one.asked).count());
      one.asked.reset();
      one.idle_since = now_;
      if (one.stops_then) gone.push_back(id);
    }
    for (const InstanceId id : gone) erase(id);
  }

  void count(Function& function, Instant asked, Instant answered) const {
    if (asked < Instant(kWarmUp)) return;
    ++function.answered;
    if (answered - asked > function.what.shape.objective) ++function.missed;
  }

  void hand_out() {
    for (std::size_t f = 0; f < functions_.size(); ++f) {
      Function& function = functions_[f];
      while (!function.queue.empty()) {
        Instance* best = free_instance(f);
        if (best == nullptr) break;
        best->asked = function.queue.front();
        best->left_s = to_seconds(best->size.execution);
        function.queue.pop_front();
      }
      const bool has_come = std::exchange(function.has_come, false);
      if (has_come && !function.queue.empty() && options_.least_period == Duration(0)) {
        apply(f, function.scaler->waits(now_, view(f, false)));
      }
    }
  }

  // The oldest with quota for all of the request, so that those who are too many stay idle; else the one with the most left.
  Instance* free_instance(std::size_t function) {
    Instance* best = nullptr;
    double most = 0;
    for (auto& [id, one] : instances_) {
      if (one.function != function || one.stage != InstanceStage::kReady || one.asked || one.stops_then) continue;
      const double left = one.size.quota_percent / 100.0 * to_seconds(kWindow) - one.used_s;
      if (left >= to_seconds(one.size.execution)) return &one;
      if (best == nullptr || left > most + kNearlyNothing) {
        best = &one;
        most = left;
      }
    }
    return best;
  }

  // ---- the scaler

  ScalerView view(std::size_t function, bool with_arrived) {
    ScalerView seen;
    for (const auto& [id, one] : instances_) {
      if (one.function != function || one.stops_then) continue;
      seen.instances.push_back({.id = id,
                                .size = one.size,
                                .stage = one.stage,
                                .is_busy = one.asked.has_value(),
                                .idle_since = one.idle_since});
    }
    seen.waiting = functions_[function].queue.size();
    if (with_arrived) seen.arrived = std::exchange(functions_[function].arrived, 0);
    return seen;
  }

  void tick() {
    for (std::size_t f = 0; f < functions_.size(); ++f) {
      if (now_ < functions_[f].next_decision) continue;
      functions_[f].next_decision = now_ + std::max(functions_[f].scaler->period(), options_.least_period);
      apply(f, functions_[f].scaler->decide(now_, view(f, true)));
    }
    next_tick_ += kTick;
  }

  void apply(std::size_t function, const ScalingDecision& decision) {
    for (const ScalingStep& step : decision.steps) {
      if (step.verb == ScalingVerb::kStart || step.verb == ScalingVerb::kStartParked) {
        start(function, step);
      } else {
        change(instances_.at(step.instance), step);
      }
    }
  }

  void start(std::size_t function, const ScalingStep& step) {
    const InstanceId id(++last_id_);
    Instance& made = instances_[id];
    made.id = id;
    made.function = function;
    made.size = step.size;
    made.changes = now_ + kColdStart;
    made.parks_then = step.verb == ScalingVerb::kStartParked;
    place(made);
    if (now_ >= Instant(kWarmUp)) ++sums_.cold_starts;
  }

  void change(Instance& one, const ScalingStep& step) {
    const Duration moves = functions_[one.function].what.shape.return_time();
    switch (step.verb) {
      case ScalingVerb::kReturn:
        if (one.stage != InstanceStage::kParked) return;
        one.stage = InstanceStage::kReturning;
        one.changes = (one.leaves ? *one.leaves : now_) + moves;
        one.leaves.reset();
        if (!one.gpu) place(one);
        if (now_ >= Instant(kWarmUp)) ++sums_.returns;
        return;
      case ScalingVerb::kPark:
        if (one.stage == InstanceStage::kReady && !one.asked) park(one);
        return;
      case ScalingVerb::kStop:
        one.stops_then = true;
        if (!one.asked) erase(InstanceId(one.id));
        return;
      case ScalingVerb::kResize: {
        Instance changed = one;
        changed.size = step.size;
        if (one.gpu && packer_.resize(one.id, packed(changed).share)) one.size = step.size;
        return;
      }
      default: return;
    }
  }

  void park(Instance& one) {
    one.stage = InstanceStage::kParked;
    one.leaves = now_ + functions_[one.function].what.shape.return_time();
  }

  void change_stages() {
    for (auto& [id, one] : instances_) {
      if (one.leaves && *one.leaves <= now_) {
        one.leaves.reset();
        leave_device(one);
      }
      const bool comes = one.stage == InstanceStage::kStarting || one.stage == InstanceStage::kReturning;
      if (!comes || one.changes > now_) continue;
      one.stage = InstanceStage::kReady;
      one.idle_since = now_;
      if (std::exchange(one.parks_then, false)) park(one);
    }
  }

  void erase(InstanceId id) {
    packer_.remove(id);
    instances_.erase(id);
  }

  BurstResult result() {
    BurstResult made;
    for (Function& one : functions_) {
      for (const Instant asked : one.queue) count(one, asked, end_);
      made.missed_percent.push_back(
          one.answered == 0 ? 100 : 100 * static_cast<double>(one.missed) / static_cast<double>(one.answered));
      made.requests += one.answered;
    }
    const double minutes = to_seconds(options_.length) / 60;
    made.area_of_bound = sums_.area_s / sums_.bound_s;
    made.devices_of_bound = sums_.devices_s / sums_.bound_s;
    made.parked = sums_.parked_s / to_seconds(options_.length);
    made.cold_starts_per_minute = static_cast<double>(sums_.cold_starts) / minutes;
    made.returns_per_minute = static_cast<double>(sums_.returns) / minutes;
    made.state_hash = hash_;
    return made;
  }

  const BurstOptions& options_;
  Packer packer_;
  const Instant end_;
  std::vector<Function> functions_;
  std::map<InstanceId, Instance> instances_;
  std::vector<std::vector<Instance*>> busy_;  // by device; kept for its memory
  Instant now_, next_tick_ = Instant(kTick), next_window_ = Instant(kWindow);
  std::uint64_t last_id_ = 0, hash_ = 0;
  Sums sums_;
};

}  // namespace

double least_area_per_request(const FunctionShape& shape) {
  double least = std::numeric_limits<double>::infinity();
  for (const InstanceSize& size : fine_grid(shape.model)) {
    if (why_unusable(size, terms_of(shape)).empty()) least = std::min(least, size.area() / size.rate_per_s);
  }
  return least;
}

BurstResult run_bursts(const BurstOptions& options) {
  return BurstRun(options).run();
}

}  // namespace fairlead::sim
