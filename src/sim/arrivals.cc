#include "sim/arrivals.h"

#include <algorithm>
#include <cmath>

namespace fairlead::sim {
namespace {

// A gap of mean 1. Above cv 1: an exponential of one of two means, chosen so that both phases carry the same weight. Below:
// an exponential of mean cv after a fixed rest.
double unit_gap(Rng& rng, double cv) {
  if (cv <= 0) return 1.0;
  if (cv <= 1) return 1 - cv + rng.exponential(cv);
  const double square = cv * cv;
  const double p = 0.5 * (1.0 + std::sqrt((square - 1.0) / (square + 1.0)));
  return rng.uniform() < p ? rng.exponential(0.5 / p) : rng.exponential(0.5 / (1.0 - p));
}

// From a moment at random until the next: a long gap is more likely to be met than a short one, so that arrivals have their
// rate from the beginning. (Balanced means: either phase is met as often.)
double unit_rest(Rng& rng, double cv) {
  if (cv <= 0) return rng.uniform();
  if (cv < 1) return rng.uniform() < cv ? 1 - cv + rng.exponential(cv) : (1 - cv) * rng.uniform();
  if (cv <= 1) return rng.exponential(1.0);
  const double square = cv * cv;
  const double p = 0.5 * (1.0 + std::sqrt((square - 1.0) / (square + 1.0)));
  return rng.uniform() < 0.5 ? rng.exponential(0.5 / p) : rng.exponential(0.5 / (1.0 - p));
}

}  // namespace

OpenLoop::OpenLoop(std::vector<Stream> streams, std::vector<LoadPoint> load, std::uint64_t seed)
    : streams_(std::move(streams)), load_(std::move(load)), progress_(streams_.size()) {
  for (std::uint32_t i = 0; i < streams_.size(); ++i) {
    rngs_.emplace_back(Rng(seed * 1'000'003 + i).next());
    const Stream& stream = streams_[i];
    if (stream.rate <= 0) continue;
    const double first = unit_rest(rngs_[i], stream.cv) / stream.rate * static_cast<double>(stream.together);
    progress_[i].together = stream.together;
    heap_.set(i, {load_at(to_seconds(stream.begin)) + first, i});
  }
}

std::optional<Arrival> OpenLoop::next() {
  while (!heap_.empty()) {
    const Next first = heap_.top_key();
    const Stream& stream = streams_[first.stream];
    Progress& progress = progress_[first.stream];
    const Duration at = from_seconds(time_of_load(first.at));
    if (at >= stream.end || progress.sent >= stream.most) {
      heap_.erase(first.stream);
      continue;
    }
    ++progress.sent;
    if (--progress.together == 0) {
      progress.together = stream.together;
      heap_.set(first.stream, {first.at + gap(first.stream), first.stream});
    }
    return Arrival{Instant(at), stream.function};
  }
  return std::nullopt;
}

double OpenLoop::gap(std::size_t stream) {
  const Stream& of = streams_[stream];
  return unit_gap(rngs_[stream], of.cv) / of.rate * static_cast<double>(of.together);
}

double OpenLoop::load_at(double seconds) const {
  double sum = 0, from = 0, factor = load_.empty() ? 1.0 : load_.front().factor;
  for (const LoadPoint& point : load_) {
    const double to = to_seconds(point.at);
    if (to >= seconds) {
      const double end_factor = to > from ? factor + (point.factor - factor) * (seconds - from) / (to - from) : factor;
      return sum + (factor + end_factor) / 2 * (seconds - from);
    }
    sum += (factor + point.factor) / 2 * (to - from);
    from = to;
    factor = point.factor;
  }
  return sum + factor * (seconds - from);
}

double OpenLoop::time_of_load(double load) const {
  if (load_.empty()) return load;
  double low = 0, high = 1;
  while (load_at(high) < load && high < 1e12) high *= 2;
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    (load_at(middle) < load ? low : high) = middle;
  }
  return high;
}

ClosedLoop::ClosedLoop(std::size_t functions, std::size_t clients, Duration think, std::uint64_t seed)
    : functions_(functions), clients_(clients), think_(think), rng_(seed) {}

std::optional<Arrival> ClosedLoop::next() {
  if (started_ == functions_ * clients_) return std::nullopt;
  return Arrival{Instant{}, started_++ % functions_};
}

std::optional<Instant> ClosedLoop::after_answer(Instant now, std::size_t) {
  return now + Duration(static_cast<Duration::rep>(rng_.exponential(static_cast<double>(think_.count()))));
}

}  // namespace fairlead::sim
