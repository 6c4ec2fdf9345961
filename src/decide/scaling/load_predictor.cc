#include "decide/scaling/load_predictor.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <utility>

namespace fairlead {
namespace {

using namespace std::chrono_literals;

constexpr Duration kWindow = 1s;

class LastWindow final : public LoadPredictor {
 public:
  void observe(Instant now, std::uint64_t arrived) override {
    if (!begin_) begin_ = now;
    count_ += static_cast<double>(arrived);
    const Duration passed = now - *begin_;
    if (passed < kWindow) return;
    rate_ = count_ / to_seconds(passed);
    begin_ = now;
    count_ = 0;
  }
  double rate(Instant, Duration) const override { return rate_; }

 private:
  std::optional<Instant> begin_;
  double count_ = 0, rate_ = 0;
};

// The part that a sample over `passed` has in an average over `time`.
double weight(Duration passed, Duration time) {
  return 1 - std::exp(-to_seconds(passed) / to_seconds(time));
}

// Arrivals of one instant belong to the time that passes until the next.
class Sampling {
 public:
  struct Sample {
    double rate;  // of arrivals in `passed`
    Duration passed;
    Duration seen;  // with all before it
    // Its part in an average over `time`. At first it is averaged evenly: there is nothing yet that a moving average could start from.
    double part(Duration time) const { return std::max(weight(passed, time), to_seconds(passed) / to_seconds(seen)); }
  };
  std::optional<Sample> add(Instant now, std::uint64_t arrived) {
    if (!last_) last_ = now;
    held_ += arrived;
    const Duration passed = now - *last_;
    if (passed <= Duration(0)) return std::nullopt;
    seen_ += passed;
    last_ = now;
    return Sample{static_cast<double>(std::exchange(held_, 0)) / to_seconds(passed), passed, seen_};
  }
  std::optional<Instant> last() const { return last_; }  // when it was added to; empty: never

 private:
  std::optional<Instant> last_;
  std::uint64_t held_ = 0;
  Duration seen_{0};
};

class Ewma final : public LoadPredictor {
 public:
  void observe(Instant now, std::uint64_t arrived) override {
    if (const auto sample = sampling_.add(now, arrived)) rate_ += sample->part(kWindow) * (sample->rate - rate_);
  }
  double rate(Instant, Duration) const override { return rate_; }

 private:
  Sampling sampling_;
  double rate_ = 0;
};

class Holt final : public LoadPredictor {
 public:
  void observe(Instant now, std::uint64_t arrived) override {
    const auto sample = sampling_.add(now, arrived);
    if (!sample) return;
    const double passed = to_seconds(sample->passed);
    const double expected = level_ + trend_ * passed;
    const double level = expected + sample->part(kLevel) * (sample->rate - expected);
    if (sample->seen > kWindow) trend_ += weight(sample->passed, kTrend) * ((level - level_) / passed - trend_);
    level_ = level;
  }
  double rate(Instant now, Duration ahead) const override {
    const auto last = sampling_.last();
    return last ? std::max(0.0, level_ + trend_ * to_seconds(now - *last + ahead)) : 0;
  }

 private:
  static constexpr Duration kLevel = 500ms;  // a level follows in half a second,
  static constexpr Duration kTrend = 1s;     // and a trend in a second: bursts rise within seconds
  Sampling sampling_;
  double level_ = 0, trend_ = 0;  // requests per second, the same per second
};

// Gaps in buckets that double, from a millisecond to some days; a gap counts less, the longer ago.
class GapHistogram final : public LoadPredictor {
 public:
  void observe(Instant now, std::uint64_t arrived) override {
    if (arrived == 0) return;
    if (last_) {
      const Duration gap = (now - *last_) / static_cast<Duration::rep>(arrived);  // as if they came evenly
      for (double& bucket : buckets_) bucket *= std::pow(kForget, static_cast<double>(arrived));
      buckets_[bucket_of(gap)] += static_cast<double>(arrived);
    }
    last_ = now;
  }
  // Of the gaps that are as long as the present silence, the part that ends within `ahead`.
  double rate(Instant now, Duration ahead) const override {
    if (!last_ || ahead <= Duration(0)) return 0;
    const Duration silent = now - *last_;
    double longer = 0, ends = 0;
    for (std::size_t i = 0; i < buckets_.size(); ++i) {
      const double low = to_seconds(start_of(i)), high = 2 * low;
      longer += buckets_[i] * part_above(low, high, to_seconds(silent));
      ends +=
          buckets_[i] * (part_above(low, high, to_seconds(silent)) - part_above(low, high, to_seconds(silent + ahead)));
    }
    if (longer < kFew) return 0;  // it has never been silent for as long
    const double within = ends / longer;
    return std::min(within / to_seconds(ahead) / std::max(1 - within, to_seconds(1ms) / to_seconds(ahead)), 1000.0);
  }

 private:
  static constexpr double kForget = 0.98;  // about 50 gaps are remembered
  static constexpr double kFew = 0.01;
  static Duration start_of(std::size_t bucket) { return Duration(1ms) * (1ll << bucket); }
  static std::size_t bucket_of(Duration gap) {
    std::size_t bucket = 0;
    while (bucket + 1 < kBuckets && gap >= 2 * start_of(bucket)) ++bucket;
    return bucket;
  }
  static double part_above(double low, double high, double value) {
    return std::clamp((high - value) / (high - low), 0.0, 1.0);
  }
  static constexpr std::size_t kBuckets = 28;
  std::array<double, kBuckets> buckets_{};
  std::optional<Instant> last_;
};

}  // namespace

std::vector<std::string_view> load_predictors() {
  return {"last-window", "ewma", "holt", "histogram"};
}

Result<std::unique_ptr<LoadPredictor>> make_load_predictor(std::string_view name) {
  if (name == "last-window") return std::make_unique<LastWindow>();
  if (name == "ewma") return std::make_unique<Ewma>();
  if (name == "holt") return std::make_unique<Holt>();
  if (name == "histogram") return std::make_unique<GapHistogram>();
  return fail(Errc::kInvalidArgument, "load predictor is \"{}\", it must be one of {}", name,
              fmt::join(load_predictors(), ", "));
}

}  // namespace fairlead
