#include "sim/company.h"

#include <algorithm>
#include <map>

namespace fairlead::sim {
namespace {

constexpr std::size_t kMostSamples = 20'000;  // runs learnt from, spread over all
constexpr int kRounds = 3, kSteps = 60;
constexpr double kWorstPerNeighbour = 1.5;  // of k at a time, over k - 1: 1.5 times what sharing out would cost
constexpr double kLeastShare = 0.01;        // of all run time in company of k, for k to be learnt

struct Sample {
  std::size_t function;
  std::array<double, kMostCompany> seconds;
};

std::vector<Sample> samples_of(const std::vector<TimedRun>& runs) {
  std::vector<Sample> samples;
  const std::size_t stride = runs.size() / kMostSamples + 1;
  std::size_t typical = 0;
  for (const TimedRun& run : runs) {
    if (!run.is_typical || typical++ % stride != 0) continue;
    samples.push_back({run.function, {}});
    for (std::size_t k = 0; k < kMostCompany; ++k) samples.back().seconds[k] = to_seconds(run.in_company[k]);
  }
  return samples;
}

double work(const Sample& sample, const std::vector<double>& slowdown) {
  double seconds = 0;
  for (std::size_t k = 0; k < slowdown.size(); ++k) seconds += sample.seconds[k] / slowdown[k];
  return seconds;
}

// Mean over samples of the squared relative deviation from their function's mean.
double variation(const std::vector<Sample>& samples, const std::vector<double>& slowdown) {
  struct Sums {
    double count = 0, sum = 0, squares = 0;
  };
  std::map<std::size_t, Sums> by_function;
  for (const Sample& sample : samples) {
    const double seconds = work(sample, slowdown);
    Sums& sums = by_function[sample.function];
    sums.count += 1;
    sums.sum += seconds;
    sums.squares += seconds * seconds;
  }
  double total = 0;
  for (const auto& [function, sums] : by_function) {
    const double mean = sums.sum / sums.count;
    if (mean > 0) total += sums.squares / (mean * mean) - sums.count;
  }
  return total;
}

// The slowdowns of k and more at the value of k that varies least, those above k kept in proportion.
void improve(const std::vector<Sample>& samples, std::size_t k, std::vector<double>& slowdown) {
  const double least = slowdown[k - 1];
  const double most = least * kWorstPerNeighbour * static_cast<double>(k + 1) / static_cast<double>(k);
  std::vector<double> best = slowdown;
  double best_variation = variation(samples, slowdown);
  for (int step = 0; step <= kSteps; ++step) {
    std::vector<double> tried = slowdown;
    const double value = least + (most - least) * step / kSteps;
    for (std::size_t above = k; above < tried.size(); ++above) tried[above] *= value / slowdown[k];
    const double tried_variation = variation(samples, tried);
    if (tried_variation >= best_variation) continue;
    best = tried;
    best_variation = tried_variation;
  }
  slowdown = best;
}

}  // namespace

// The runs of one device change company whenever one begins or ends; each passage of time is noted for all that run.
void find_company(std::vector<TimedRun>& runs) {
  struct Change {
    std::uint64_t gpu;
    Instant at;
    bool begins;
    std::size_t run;
    auto operator<=>(const Change&) const = default;  // at one moment ends come first
  };
  std::vector<Change> changes;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    runs[i].in_company = {};
    if (runs[i].end <= runs[i].begin) continue;
    changes.push_back({runs[i].gpu, runs[i].begin, true, i});
    changes.push_back({runs[i].gpu, runs[i].end, false, i});
  }
  std::sort(changes.begin(), changes.end());
  std::vector<std::size_t> running;
  Instant before;
  for (const Change& change : changes) {
    if (!running.empty()) {  // of the same device: all that begin on one end before the next device's first
      const std::size_t company = std::min(running.size(), kMostCompany) - 1;
      for (const std::size_t run : running) runs[run].in_company[company] += change.at - before;
    }
    before = change.at;
    if (change.begins) {
      running.push_back(change.run);
    } else {
      std::erase(running, change.run);
    }
  }
}

std::vector<double> learn_slowdown(const std::vector<TimedRun>& runs) {
  const std::vector<Sample> samples = samples_of(runs);
  std::array<double, kMostCompany> seconds{};
  std::size_t most = 1;
  double all = 0;
  for (const Sample& sample : samples) {
    for (std::size_t k = 0; k < kMostCompany; ++k) {
      seconds[k] += sample.seconds[k];
      all += sample.seconds[k];
      if (sample.seconds[k] > 0) most = std::max(most, k + 1);
    }
  }
  std::vector<double> slowdown;
  for (std::size_t k = 1; k <= most; ++k) slowdown.push_back(static_cast<double>(k));
  for (int round = 0; round < kRounds; ++round) {
    for (std::size_t k = 1; k < most; ++k) {
      if (seconds[k] > kLeastShare * all) improve(samples, k, slowdown);
    }
  }
  return slowdown;
}

Duration work_of(const TimedRun& run, const std::vector<double>& slowdown) {
  double nanoseconds = 0;
  for (std::size_t k = 0; k < kMostCompany; ++k) {
    const double factor = slowdown.empty() ? 1 : slowdown[std::min(k, slowdown.size() - 1)];
    nanoseconds += static_cast<double>(run.in_company[k].count()) / factor;
  }
  return Duration(static_cast<Duration::rep>(nanoseconds));
}

}  // namespace fairlead::sim
