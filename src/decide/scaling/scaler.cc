#include "decide/scaling/scaler.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/check.h"

namespace fairlead {
namespace {

using namespace std::chrono_literals;

double capacity(const ScalerView& view) {
  double sum = 0;
  for (const ScaledInstance& one : view.instances) {
    if (one.stage != InstanceStage::kParked) sum += one.size.rate_per_s;
  }
  return sum;
}

std::string saw(double rate, const ScalerView& view) {
  std::size_t by_stage[4] = {};
  for (const ScaledInstance& one : view.instances) ++by_stage[static_cast<std::size_t>(one.stage)];
  return fmt::format(
      "{:.1f} requests/s expected, {:.1f} can be answered, {} wait; {} ready, {} start, {} return, {} parked", rate,
      capacity(view), view.waiting, by_stage[1], by_stage[0], by_stage[3], by_stage[2]);
}

class Algorithm1 final : public Scaler {
 public:
  Algorithm1(const ScalerSettings& settings, std::unique_ptr<LoadPredictor> predictor)
      : settings_(settings), predictor_(std::move(predictor)) {}
  Duration period() const override { return 1s; }

  ScalingDecision decide(Instant now, const ScalerView& view) override {
    predictor_->observe(now, view.arrived);
    const double rate = predictor_->rate(now, period());
    ScalingDecision made{.steps = {}, .saw = saw(rate, view), .rejected = {}};
    const double gap = rate * settings_.headroom - capacity(view);
    if (gap > 0) {
      SizeChoice choice = filtered_choice(settings_.sizes, gap, settings_.terms);
      for (const SizedCount& one : choice.sizes) {
        for (int i = 0; i < one.instances; ++i) made.steps.push_back({ScalingVerb::kStart, {}, one.size});
      }
      made.rejected = std::move(choice.rejected);
      return made;
    }
    shrink(gap, view, made);
    return made;
  }

 private:
  static void shrink(double gap, const ScalerView& view, ScalingDecision& made) {
    // Of instances that are as efficient, the youngest first: it may not even have started.
    std::vector<ScaledInstance> order(view.instances.rbegin(), view.instances.rend());
    const auto efficiency = [](const ScaledInstance& one) {
      return std::llround(1e3 * one.size.rate_per_s / one.size.area());
    };
    std::stable_sort(order.begin(), order.end(),
                     [&](const auto& a, const auto& b) { return efficiency(a) < efficiency(b); });
    for (const ScaledInstance& one : order) {
      if (gap + one.size.rate_per_s > 0) {  // the paper's loop never ends here
        made.rejected.push_back(fmt::format("instance {} stays: {:.1f} requests/s would be short", one.id.value(),
                                            gap + one.size.rate_per_s));
        return;
      }
      gap += one.size.rate_per_s;
      made.steps.push_back({ScalingVerb::kStop, one.id, {}});
    }
  }

  const ScalerSettings settings_;
  std::unique_ptr<LoadPredictor> predictor_;
};

// HAS-GPU (arXiv 2505.01968): vertical scaling of quotas first, horizontal where they are at their end.
class Has final : public Scaler {
 public:
  Has(const ScalerSettings& settings, std::unique_ptr<LoadPredictor> predictor, InstanceSize size)
      : settings_(settings), predictor_(std::move(predictor)), size_(size) {}
  Duration period() const override { return 1s; }

  ScalingDecision decide(Instant now, const ScalerView& view) override {
    predictor_->observe(now, view.arrived);
    const double rate = predictor_->rate(now, period());
    ScalingDecision made{.steps = {}, .saw = saw(rate, view), .rejected = {}};
    const double can = capacity(view);
    if (rate > kHigh * can) {
      grow(rate / kHigh - can, view, made);
    } else if (rate < kLow * can) {
      if (!low_since_) low_since_ = now;
      if (now - *low_since_ >= kPatience) shrink(can - rate / kHigh, view, made);
      return made;
    }
    low_since_.reset();
    return made;
  }

 private:
  static constexpr double kHigh = 0.9, kLow = 0.3;
  static constexpr Duration kPatience = 10s;

  InstanceSize with_quota(const InstanceSize& size, int quota) const {
    InstanceSize changed = size;
    changed.rate_per_s = size.rate_per_s / size.quota_percent * quota;
    changed.quota_percent = quota;
    return changed;
  }

  void grow(double short_of, const ScalerView& view, ScalingDecision& made) {
    for (const ScaledInstance& one : view.instances) {
      if (short_of <= 0 || one.size.quota_percent >= 100 || one.stage != InstanceStage::kReady) continue;
      const InstanceSize full = with_quota(one.size, 100);
      made.steps.push_back({ScalingVerb::kResize, one.id, full});
      short_of -= full.rate_per_s - one.size.rate_per_s;
    }
    for (; short_of > 0; short_of -= size_.rate_per_s) made.steps.push_back({ScalingVerb::kStart, {}, size_});
  }

  void shrink(double too_much, const ScalerView& view, ScalingDecision& made) {
    for (const ScaledInstance& one : view.instances) {
      if (one.stage != InstanceStage::kReady || one.size.quota_percent <= size_.quota_percent) continue;
      const InstanceSize least = with_quota(one.size, size_.quota_percent);
      if (one.size.rate_per_s - least.rate_per_s > too_much) continue;
      made.steps.push_back({ScalingVerb::kResize, one.id, least});
      too_much -= one.size.rate_per_s - least.rate_per_s;
    }
    for (auto one = view.instances.rbegin(); one != view.instances.rend(); ++one) {
      if (one->size.rate_per_s > too_much) continue;
      made.steps.push_back({ScalingVerb::kStop, one->id, {}});
      too_much -= one->size.rate_per_s;
    }
    low_since_.reset();
  }

  const ScalerSettings settings_;
  std::unique_ptr<LoadPredictor> predictor_;
  const InstanceSize size_;  // at its least quota
  std::optional<Instant> low_since_;
};

class Fleet final : public Scaler {
 public:
  // `ahead`: null where nothing is started ahead of a rise.
  Fleet(const ScalerSettings& settings, std::unique_ptr<LoadPredictor> predictor, std::unique_ptr<LoadPredictor> ahead,
        SizeChoice choice)
      : settings_(settings),
        predictor_(std::move(predictor)),
        ahead_(std::move(ahead)),
        rejected_sizes_(std::move(choice.rejected)),
        size_(choice.sizes.front().size),
        slack_(settings.terms.objective > Duration(0) ? settings.terms.objective - size_.execution : size_.execution) {}
  Duration period() const override { return 100ms; }

  ScalingDecision decide(Instant now, const ScalerView& view) override {
    predictor_->observe(now, view.arrived);
    if (ahead_) ahead_->observe(now, view.arrived);
    if (view.arrived > 0) last_call_ = now;
    const double rate = predictor_->rate(now, settings_.return_time);
    ScalingDecision made{.steps = {}, .saw = saw(rate, view), .rejected = rejected_sizes_};
    const bool forgotten = !last_call_ || now - *last_call_ >= settings_.keep;
    note_usual(now, rate);
    int wanted = instances_for(rate, size_.rate_per_s, slack_, settings_.late_part);
    if (rate < 1 / to_seconds(settings_.keep)) wanted = 0;
    if (settings_.keeps_one && !forgotten) wanted = std::max(wanted, 1);
    wanted = std::clamp(wanted, settings_.least, settings_.most);
    made.needed = std::max(wanted, needed_soon(now, wanted, rate, view));
    if (made.needed > wanted)
      made.saw += fmt::format("; {} are needed by the time that a start has ended", made.needed);
    const std::vector<const ScaledInstance*> parked = of_stage(view, InstanceStage::kParked);
    const int coming = count(view, InstanceStage::kReady) + count(view, InstanceStage::kReturning);
    bring_back(std::max(wanted - coming, extra_for(view)), parked, made);
    if (forgotten) {
      stop_all(view, made);
      return made;
    }
    keep_spares(now, view, made);
    park_idle(now, wanted, view, made);
    return made;
  }

  ScalingDecision waits(Instant now, const ScalerView& view) override {
    last_call_ = now;
    ScalingDecision made{.steps = {}, .saw = saw(predictor_->rate(now, settings_.return_time), view), .rejected = {}};
    bring_back(extra_for(view), of_stage(view, InstanceStage::kParked), made);
    return made;
  }

 private:
  static constexpr Duration kUsual = 60s;  // what the usual rate is an average of
  static constexpr double kMostRise = 2;   // times the rate of now, that is believed to come within a start

  static int count(const ScalerView& view, InstanceStage stage) {
    return static_cast<int>(std::count_if(view.instances.begin(), view.instances.end(),
                                          [stage](const auto& one) { return one.stage == stage; }));
  }
  static std::vector<const ScaledInstance*> of_stage(const ScalerView& view, InstanceStage stage) {
    std::vector<const ScaledInstance*> found;
    for (const ScaledInstance& one : view.instances) {
      if (one.stage == stage) found.push_back(&one);
    }
    return found;
  }

  // How many more have to come for those that wait: none, as long as the ready ones answer them in half of the time that is left to wait.
  int extra_for(const ScalerView& view) const {
    if (view.waiting == 0) return 0;
    const double each = std::max(0.5, to_seconds(slack_) * size_.rate_per_s / 2);
    const double can_wait = each * count(view, InstanceStage::kReady);
    const double too_many = static_cast<double>(view.waiting) - can_wait;
    if (too_many <= 0 && count(view, InstanceStage::kReady) > 0) return 0;
    return static_cast<int>(std::ceil(std::max(too_many, 1.0) / std::max(1.0, each))) -
           count(view, InstanceStage::kReturning);
  }

  void bring_back(int number, const std::vector<const ScaledInstance*>& parked, ScalingDecision& made) const {
    for (const ScaledInstance* one : parked) {
      if (number-- <= 0) return;
      made.steps.push_back({ScalingVerb::kReturn, one->id, {}});
    }
    if (number > 0) made.rejected.push_back(fmt::format("{} more would be brought back, none is parked", number));
  }

  Duration start_time(const ScalerView& view) const {
    return view.cold_start > Duration(0) ? view.cold_start : settings_.cold_start;
  }

  // By the time that what starts now is ready. A rate that is expected to rise more than kMostRise times is noise: a first call, too, is a rise.
  int needed_soon(Instant now, int wanted, double rate, const ScalerView& view) const {
    if (!ahead_ || wanted == 0) return 0;
    const double soon = std::min(ahead_->rate(now, start_time(view)), kMostRise * rate);
    return std::min(instances_for(soon, size_.rate_per_s, slack_, settings_.late_part), settings_.most);
  }

  // The first minute is averaged evenly, from the first call on.
  void note_usual(Instant now, double rate) {
    if (rate <= 0 && !noted_) return;
    const Duration passed = noted_ ? now - *noted_ : period();
    noted_for_ += passed;
    const double part =
        std::max(1 - std::exp(-to_seconds(passed) / to_seconds(kUsual)), to_seconds(passed) / to_seconds(noted_for_));
    usual_ += part * (rate - usual_);
    noted_ = now;
  }

  // Parked ones are started ahead, one cold start for each that is short; too many are stopped, the longest idle first.
  void keep_spares(Instant now, const ScalerView& view, ScalingDecision& made) const {
    const int all = static_cast<int>(view.instances.size());
    const int burst = instances_for(settings_.burst * usual_, size_.rate_per_s, slack_, settings_.late_part);
    const int peak = std::clamp(std::max(burst, made.needed), std::max(1, settings_.least), settings_.most);
    for (int i = all; i < peak; ++i) {
      const bool is_first = all == 0 && i == 0;
      made.steps.push_back({is_first ? ScalingVerb::kStart : ScalingVerb::kStartParked, {}, size_});
    }
    int too_many = all - peak - peak / 4;  // a quarter more is no reason to stop one
    const auto hold =
        Duration(static_cast<Duration::rep>(settings_.hold_starts * static_cast<double>(start_time(view).count())));
    std::vector<const ScaledInstance*> parked = of_stage(view, InstanceStage::kParked);
    if (hold > Duration(0)) {
      std::erase_if(parked, [&](const auto* one) { return one->is_busy || now - one->idle_since < hold; });
      std::stable_sort(parked.begin(), parked.end(),
                       [](const auto* a, const auto* b) { return a->idle_since < b->idle_since; });
    }
    for (const ScaledInstance* one : parked) {
      if (too_many-- <= 0) break;
      if (!returns(made, one->id)) made.steps.push_back({ScalingVerb::kStop, one->id, {}});
    }
  }

  static bool returns(const ScalingDecision& made, InstanceId id) {
    return std::any_of(made.steps.begin(), made.steps.end(), [id](const auto& step) { return step.instance == id; });
  }

  void park_idle(Instant now, int wanted, const ScalerView& view, ScalingDecision& made) const {
    const auto hold = Duration(
        static_cast<Duration::rep>(settings_.hold_returns * static_cast<double>(settings_.return_time.count())));
    std::vector<const ScaledInstance*> idle = of_stage(view, InstanceStage::kReady);
    int ready = static_cast<int>(idle.size());
    std::erase_if(idle, [](const ScaledInstance* one) { return one->is_busy; });
    std::stable_sort(idle.begin(), idle.end(),
                     [](const auto* a, const auto* b) { return a->idle_since < b->idle_since; });
    for (const ScaledInstance* one : idle) {
      if (ready <= wanted || view.waiting > 0) return;
      if (now - one->idle_since < hold) {
        made.rejected.push_back(fmt::format("{} more than the {} wanted stay: idle for less than {:.0f} ms",
                                            ready - wanted, wanted, to_ms(hold)));
        return;
      }
      made.steps.push_back({ScalingVerb::kPark, one->id, {}});
      --ready;
    }
  }

  static void stop_all(const ScalerView& view, ScalingDecision& made) {
    for (const ScaledInstance& one : view.instances) {
      if (!one.is_busy && one.stage != InstanceStage::kStarting) made.steps.push_back({ScalingVerb::kStop, one.id, {}});
    }
  }

  const ScalerSettings settings_;
  std::unique_ptr<LoadPredictor> predictor_, ahead_;
  const std::vector<std::string> rejected_sizes_;
  const InstanceSize size_;
  const Duration slack_;  // how long a request may wait before it runs
  std::optional<Instant> last_call_, noted_;
  Duration noted_for_{0};
  double usual_ = 0;
};

// Of usable sizes, that with the most throughput for what it costs; ties to the larger quota.
SizeChoice best_size(const ScalerSettings& settings) {
  SizeChoice choice;
  const InstanceSize* best = nullptr;
  const auto worth = [&](const InstanceSize& size) { return size.rate_per_s / settings.terms.cost(size); };
  for (const InstanceSize& size : settings.sizes) {
    if (std::string why = why_unusable(size, settings.terms); !why.empty()) {
      if (choice.rejected.size() < 4) choice.rejected.push_back(std::move(why));
      continue;
    }
    if (best == nullptr || worth(size) > worth(*best) * (1 + 1e-9) ||
        (worth(size) > worth(*best) * (1 - 1e-9) && size.quota_percent > best->quota_percent)) {
      best = &size;
    }
  }
  if (best != nullptr) choice.sizes.push_back({*best, 1});
  return choice;
}

}  // namespace

int instances_for(double rate_per_s, double rate_per_instance, Duration slack, double late_part) {
  if (rate_per_s <= 0) return 0;
  const double load = rate_per_s / rate_per_instance;
  double blocked = 1;  // Erlang's B, by its recursion
  int n = 0;
  while (true) {
    ++n;
    blocked = load * blocked / (n + load * blocked);
    if (n <= load) continue;
    const double waits = blocked / (1 - load / n * (1 - blocked));
    const double tail = std::exp(-2 * (n - load) * rate_per_instance * to_seconds(slack));
    if (waits * tail <= late_part) return n;
  }
}

std::vector<std::string_view> scalers() {
  return {"algorithm1", "has", "fleet"};
}

Result<std::unique_ptr<Scaler>> make_scaler(std::string_view name, const ScalerSettings& settings) {
  auto predictor = make_load_predictor(name == "fleet" ? std::string_view(settings.predictor) : "last-window");
  if (!predictor) return fail(predictor.error());
  SizeChoice choice = best_size(settings);
  if (choice.sizes.empty()) {
    return fail(Errc::kInvalidArgument, "objective is {:.0f} ms and no size of the function meets it: {}",
                to_ms(settings.terms.objective), choice.rejected.empty() ? "there are none" : choice.rejected.front());
  }
  if (name == "algorithm1") return std::make_unique<Algorithm1>(settings, std::move(*predictor));
  if (name == "has") {
    // The least quota at which the same width is still usable.
    InstanceSize least = choice.sizes.front().size;
    for (const InstanceSize& size : settings.sizes) {
      if (size.width_percent == least.width_percent && size.quota_percent < least.quota_percent &&
          why_unusable(size, settings.terms).empty())
        least = size;
    }
    return std::make_unique<Has>(settings, std::move(*predictor), least);
  }
  if (name == "fleet") {
    std::unique_ptr<LoadPredictor> ahead;
    if (!settings.ahead_predictor.empty()) {
      auto made = make_load_predictor(settings.ahead_predictor);
      if (!made) return fail(made.error());
      ahead = std::move(*made);
    }
    return std::make_unique<Fleet>(settings, std::move(*predictor), std::move(ahead), std::move(choice));
  }
  return fail(Errc::kInvalidArgument, "scaler is \"{}\", it must be one of {}", name, fmt::join(scalers(), ", "));
}

}  // namespace fairlead
