#include "sim/attack/attack.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "sim/attack/workload_family.h"
#include "sim/attack/worst_search.h"

namespace fairlead::sim {
namespace {

constexpr std::size_t index_of(Measure measure, Rival rival) {
  return static_cast<std::size_t>(measure) * kRivals.size() + static_cast<std::size_t>(rival);
}

std::vector<double> scores_of(const Comparison& comparison) {
  std::vector<double> scores(kRatios);
  for (const Measure measure : kMeasures) {
    for (const Rival rival : kRivals) scores[index_of(measure, rival)] = comparison.ratio(measure, rival);
  }
  scores.push_back(static_cast<double>(comparison.late.size()));  // reported; the last is no score of the search
  return scores;
}

Attack attack_of(const std::string& family, const ScoredPoint& point) {
  Attack attack{.family = family, .powers = point.at};
  std::copy_n(point.scores.begin(), kRatios, attack.ratios.begin());
  attack.late_flows = static_cast<std::size_t>(point.scores[kRatios]);
  return attack;
}

}  // namespace

double Attack::ratio(Measure measure, Rival rival) const {
  return ratios[index_of(measure, rival)];
}

double Attack::worst_ratio(Measure measure) const {
  return std::max(ratio(measure, Rival::kFcfs), ratio(measure, Rival::kPaper));
}

double Attack::severity() const {
  return std::max(worst_ratio(Measure::kMean) / kBounds.mean, worst_ratio(Measure::kP99) / kBounds.p99);
}

Result<std::vector<Attack>> attack(const AttackOptions& options, const std::function<void(double)>& progress) {
  const auto scaled = scaled_by(options.family);
  if (!scaled) return fail(scaled.error());
  const SearchOptions search{.coordinates = scaled->size(),
                             .scores = kRatios,
                             .least = kLeastPower,
                             .most = kMostPower,
                             .evaluations = options.evaluations,
                             .seed = options.seed,
                             .threads = options.threads};
  const auto points = search_worst(
      search,
      [&](const std::vector<double>& powers) { return scores_of(compare(workload_of(options.family, powers))); },
      progress);
  std::vector<Attack> tried;
  for (const ScoredPoint& point : points) tried.push_back(attack_of(options.family, point));
  return tried;
}

const Attack& worst_of(const std::vector<Attack>& tried, Measure measure, Rival rival) {
  FL_CHECK(!tried.empty());
  return *std::max_element(tried.begin(), tried.end(), [&](const Attack& a, const Attack& b) {
    return a.ratio(measure, rival) < b.ratio(measure, rival);
  });
}

std::vector<Attack> most_severe(std::vector<Attack> tried, std::size_t count) {
  std::stable_sort(tried.begin(), tried.end(),
                   [](const Attack& a, const Attack& b) { return a.severity() > b.severity(); });
  tried.resize(std::min(count, tried.size()));
  return tried;
}

std::string attack_toml(const Attack& attack) {
  std::string head =
      fmt::format("# Found by `fairlead sim attack --family {}`: the default's latency over\n", attack.family);
  for (const Measure measure : kMeasures) {
    head += fmt::format("#   {}: FCFS's {:.2f} x, the paper's {:.2f} x\n", name_of(measure),
                        attack.ratio(measure, Rival::kFcfs), attack.ratio(measure, Rival::kPaper));
  }
  return workload_toml(attack.family, attack.powers, head);
}

}  // namespace fairlead::sim
