// Parameters that several policies have: how far one may be ahead of others, and how long work waits for its data.
#pragma once

#include "model/policy_options.h"

namespace fairlead {

inline constexpr Parameter<Duration> kOverRun{"over_run_s", "T of MQFQ, seconds", 0, 1e9, 10};
inline constexpr Parameter<double> kPatienceReloads{
    "patience_reloads", "what an invocation waits for the GPU that has its data, in loads of it", 0, 1e6, 4};

}  // namespace fairlead
