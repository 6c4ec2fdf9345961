#include "sim/burst_load.h"

#include <algorithm>
#include <charconv>

namespace fairlead::sim {
namespace {

constexpr double kMostRate = 1e6;

}  // namespace

BurstLoad::BurstLoad(LoadShape shape, double usual, Duration length, std::uint64_t seed) : usual_(usual), rng_(seed) {
  if (shape == LoadShape::kBursts) {
    add_bursts(to_seconds(length));
  } else {
    for (double at = 50; at < to_seconds(length); at += 200) rises_.push_back({at, at + 60, at + 90, at + 150, 4});
  }
}

double BurstLoad::rate(Instant now) const {
  const double t = to_seconds(now.time_since_epoch());
  double factor = 1;
  for (const Rise& one : rises_) {
    if (t < one.begins || t > one.ends) continue;
    const double up = (t - one.begins) / (one.is_up - one.begins), down = (one.ends - t) / (one.ends - one.falls);
    factor = 1 + (one.factor - 1) * std::min({1.0, up, down});
  }
  return usual_ * factor;
}

// By thinning a process of the highest rate.
Instant BurstLoad::next(Instant now) {
  while (true) {
    now += from_seconds(rng_.exponential(1 / (5 * usual_)));
    if (rng_.uniform() * 5 * usual_ < rate(now)) return now;
  }
}

void BurstLoad::add_bursts(double length_s) {
  double at = rng_.exponential(20);
  while (at < length_s) {
    const double factor = 2 + 3 * rng_.uniform(), lasts = 3 + 7 * rng_.uniform();
    rises_.push_back({at, at + 1, at + 1 + lasts, at + 2 + lasts, factor});
    at += lasts + 2 + rng_.exponential(20);
  }
}

BurstSource::BurstSource(const std::vector<double>& usual_rates, Duration length, std::uint64_t seed)
    : length_(length) {
  for (std::size_t i = 0; i < usual_rates.size(); ++i) {
    loads_.emplace_back(LoadShape::kBursts, usual_rates[i], length, seed * 1000 + i);
    next_.push_back(loads_.back().next(Instant()));
  }
}

std::optional<Arrival> BurstSource::next() {
  const auto first = std::min_element(next_.begin(), next_.end());
  if (first == next_.end() || *first >= Instant(length_)) return std::nullopt;
  const auto function = static_cast<std::size_t>(first - next_.begin());
  const Instant at = *first;
  *first = loads_[function].next(at);
  return Arrival{.at = at, .function = function};
}

Result<std::pair<std::string, double>> named_rate(const std::string& text) {
  const std::size_t equals = text.rfind('=');
  double rate = 0;
  if (equals != std::string::npos) {
    const char* const end = text.data() + text.size();
    const auto read = std::from_chars(text.data() + equals + 1, end, rate);
    if (read.ec != std::errc() || read.ptr != end) rate = 0;
  }
  if (equals == std::string::npos || equals == 0 || !(rate > 0 && rate <= kMostRate)) {
    return fail(Errc::kInvalidArgument,
                "--calls is '{}'; it must be NAME=RATE, above 0 and at most {} requests per second", text, kMostRate);
  }
  return std::pair(text.substr(0, equals), rate);
}

}  // namespace fairlead::sim
