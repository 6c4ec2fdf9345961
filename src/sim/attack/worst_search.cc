#include "sim/attack/worst_search.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <thread>

#include "base/check.h"
#include "base/rng.h"

namespace fairlead::sim {
namespace {

constexpr std::size_t kGeneration = 48;  // points whose parents are chosen before any of them is evaluated
constexpr std::size_t kParents = 8;      // of each score
constexpr double kRandomShare = 0.25, kCornerShare = 0.3, kCrossShare = 0.3;

class Search {
 public:
  explicit Search(const SearchOptions& options) : options_(options), rng_(options.seed), best_(options.scores) {}

  std::vector<double> next(std::size_t number) {
    const auto random = static_cast<std::size_t>(kRandomShare * static_cast<double>(options_.evaluations));
    if (number == 0 || number < random || best_.front().empty()) return somewhere();
    return child(best_[number % options_.scores]);
  }

  // `points` grows meanwhile: they are known by their index.
  void learn(const std::vector<ScoredPoint>& points, std::size_t number) {
    for (std::size_t s = 0; s < options_.scores; ++s) {
      std::vector<std::size_t>& best = best_[s];
      const auto better = [&](std::size_t a, std::size_t b) { return points[a].scores[s] > points[b].scores[s]; };
      best.insert(std::upper_bound(best.begin(), best.end(), number, better), number);
      if (best.size() > kParents) best.pop_back();
    }
    points_ = &points;
  }

 private:
  double anywhere() { return options_.least + rng_.uniform() * (options_.most - options_.least); }

  std::vector<double> somewhere() {
    const bool is_corner = rng_.uniform() < kCornerShare;
    std::vector<double> at;
    for (std::size_t i = 0; i < options_.coordinates; ++i) {
      const double middle = (options_.least + options_.most) / 2;
      const double corners[] = {options_.least, middle, options_.most};
      at.push_back(is_corner ? corners[rng_.below(3)] : anywhere());
    }
    return at;
  }

  const std::vector<double>& parent(const std::vector<std::size_t>& best) {
    return (*points_)[best[std::min(rng_.below(best.size()), rng_.below(best.size()))]].at;  // rather the better ones
  }

  std::vector<double> child(const std::vector<std::size_t>& best) {
    std::vector<double> at = parent(best);
    if (rng_.uniform() < kCrossShare) {
      const std::vector<double>& other = parent(best);
      for (std::size_t i = 0; i < at.size(); ++i) at[i] = rng_.below(2) == 0 ? at[i] : other[i];
    }
    const std::size_t certain = rng_.below(at.size());  // at least one coordinate changes
    for (std::size_t i = 0; i < at.size(); ++i) {
      if (i == certain || rng_.below(at.size()) == 0) at[i] = moved(at[i]);
    }
    return at;
  }

  double moved(double from) {
    if (rng_.below(4) == 0) return anywhere();
    static constexpr double kSteps[] = {0.02, 0.1, 0.4};  // of the box
    const double step = kSteps[rng_.below(3)] * (options_.most - options_.least);
    return std::clamp(from + step * (2 * rng_.uniform() - 1), options_.least, options_.most);
  }

  const SearchOptions& options_;
  Rng rng_;
  const std::vector<ScoredPoint>* points_ = nullptr;
  std::vector<std::vector<std::size_t>> best_;  // by score: the points where it is greatest, first the greatest
};

void evaluate(std::vector<ScoredPoint>& points, std::size_t begin, const Score& score, unsigned threads) {
  std::atomic<std::size_t> next = begin;
  const auto run_some = [&] {
    for (std::size_t i = next++; i < points.size(); i = next++) points[i].scores = score(points[i].at);
  };
  std::vector<std::thread> pool;
  for (unsigned t = 1; t < threads; ++t) pool.emplace_back(run_some);
  run_some();
  for (std::thread& thread : pool) thread.join();
}

}  // namespace

std::vector<ScoredPoint> search_worst(const SearchOptions& options, const Score& score,
                                      const std::function<void(double)>& progress) {
  FL_CHECK(options.coordinates > 0 && options.scores > 0 && options.evaluations > 0);
  const unsigned threads = options.threads > 0 ? options.threads : std::max(1u, std::thread::hardware_concurrency());
  Search search(options);
  std::vector<ScoredPoint> points;
  points.reserve(options.evaluations);
  while (points.size() < options.evaluations) {
    const std::size_t begin = points.size(), end = std::min(begin + kGeneration, options.evaluations);
    for (std::size_t i = begin; i < end; ++i) points.push_back({search.next(i), {}});
    evaluate(points, begin, score, threads);
    for (std::size_t i = begin; i < end; ++i) search.learn(points, i);
    if (progress) progress(static_cast<double>(end) / static_cast<double>(options.evaluations));
  }
  return points;
}

}  // namespace fairlead::sim
