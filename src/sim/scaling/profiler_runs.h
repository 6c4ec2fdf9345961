// The profiler with noise: how many trials until the chosen rectangle is known, and how well, against the paper's grid.
//
// The truth here is not of the model's form: a function saturates gradually (the fourth power mean of SMs and saturation). Each trial errs by
// a log-normal factor of `trial_error`. The chosen rectangle is the usable one with the most throughput for its cost, by what is known.
//
// Pure. Determinism: of the options.
#pragma once

#include <cstdint>

#include "sim/shares/function_shapes.h"

namespace fairlead::sim {

struct ProfilerResult {
  double trials = 0;          // mean
  double error_percent = 0;   // of the chosen rectangle's throughput against the truth: mean
  double within_percent = 0;  // of runs in which that is at most 5 %
};

ProfilerResult fitted_profiles(const FunctionShape& shape, double trial_error, int runs, std::uint64_t seed);
// 35 trials, and of the grid's points the best.
ProfilerResult grid_profiles(const FunctionShape& shape, double trial_error, int runs, std::uint64_t seed);

}  // namespace fairlead::sim
