#include "sim/scaling/profiler_runs.h"

#include <cmath>

#include "base/rng.h"
#include "decide/profiling/profile_fit.h"

namespace fairlead::sim {
namespace {

constexpr double kTarget = 0.05;

double true_rate(const FunctionShape& shape, int width, int quota) {
  const double knee = std::pow(std::pow(width, -4.0) + std::pow(shape.model.saturation_percent, -4.0), 0.25);
  return quota / 100.0 * 1000 / (shape.model.fixed_ms + shape.model.work_ms * knee);
}

double gauss(Rng& rng) {
  double sum = -6;
  for (int i = 0; i < 12; ++i) sum += rng.uniform();
  return sum;
}

// Of usable sizes, that with the most throughput for its cost. The fastest where none is usable.
InstanceSize best_of(const std::vector<InstanceSize>& sizes, const FunctionTerms& terms) {
  const InstanceSize* best = nullptr;
  const InstanceSize* fastest = &sizes.front();
  for (const InstanceSize& one : sizes) {
    if (one.rate_per_s > fastest->rate_per_s) fastest = &one;
    if (!why_unusable(one, terms).empty()) continue;
    if (best == nullptr || one.rate_per_s / terms.cost(one) > best->rate_per_s / terms.cost(*best)) best = &one;
  }
  return best == nullptr ? *fastest : *best;
}

void note(ProfilerResult& result, double estimated, double truth, std::size_t trials, int runs) {
  const double off = std::abs(estimated / truth - 1);
  result.trials += static_cast<double>(trials) / runs;
  result.error_percent += 100 * off / runs;
  result.within_percent += off <= kTarget ? 100.0 / runs : 0;
}

}  // namespace

ProfilerResult fitted_profiles(const FunctionShape& shape, double trial_error, int runs, std::uint64_t seed) {
  Rng rng(seed);
  ProfilerResult result;
  for (int run = 0; run < runs; ++run) {
    ProfileFit fit(kTarget, trial_error, 35);
    ProfilePoint chosen;
    while (const auto next = fit.next({chosen}).at) {
      const double measured =
          true_rate(shape, next->width_percent, next->quota_percent) * std::exp(trial_error * gauss(rng));
      fit.add({.at = *next, .rate_per_s = measured, .error = trial_error});
      const InstanceSize best = best_of(fine_grid(fit.model()), terms_of(shape));
      chosen = {best.width_percent, best.quota_percent};
    }
    note(result, fit.estimate(chosen).rate_per_s, true_rate(shape, chosen.width_percent, chosen.quota_percent),
         fit.trials(), runs);
  }
  return result;
}

ProfilerResult grid_profiles(const FunctionShape& shape, double trial_error, int runs, std::uint64_t seed) {
  Rng rng(seed);
  ProfilerResult result;
  for (int run = 0; run < runs; ++run) {
    std::vector<InstanceSize> measured = coarse_grid(shape.model);
    for (InstanceSize& one : measured) {
      one.rate_per_s = true_rate(shape, one.width_percent, one.quota_percent) * std::exp(trial_error * gauss(rng));
      one.execution = from_seconds(one.quota_percent / 100.0 / one.rate_per_s);
    }
    const InstanceSize best = best_of(measured, terms_of(shape));
    note(result, best.rate_per_s, true_rate(shape, best.width_percent, best.quota_percent), measured.size(), runs);
  }
  return result;
}

}  // namespace fairlead::sim
