// The FluidFaaS paper's four applications in three variants, and random chains, with profiles that agree with its Table 5.
//
// The paper prints which slices a variant needs, no times and no memory. So these are assumed: a component takes t1 x (f + (1 - f) / c) on c
// compute slices, with a fixed part f that is larger for small batches; it holds its peak all the time, as an allocator that caches does.
//
//   large    on 1g: 60 to 120 ms, f 0.10 to 0.35, 7 to 14 GiB: alone on 3g or 4g, cut on 2g or more, classification and three others on 1g, too
//   medium   half the time, f + 0.10, 3 to 6 GiB; small: a quarter, f + 0.25, 1.2 to 2.8 GiB
//
// Table 5 says that application 3, medium, needs 4g alone; its 22 GiB fit a 3g. We take the table's slice for the objective.
// Source: FluidFaaS (HPDC '25), Tables 4 and 5. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "decide/pipeline/dag.h"

namespace fairlead::sim {

struct Application {
  std::string name;   // "app0-large"
  Dag dag;            // its objective is 1.5 x the time alone on `least`
  std::string least;  // the paper's minimum slice of the whole function; "" where there is none (application 3, large)
};

inline constexpr double kObjectiveScale = 1.5;
inline constexpr Duration kColdStart = std::chrono::seconds(5);

// `variant`: small, medium, large.
std::vector<Application> applications(std::string_view variant);
// kNotFound names the twelve.
Result<Application> application_named(std::string_view name);
// A chain of 2 to 5 components of random times, fixed parts and memory, as large as the variant's; alone it fits 4g.
Application random_chain(std::string_view variant, std::uint64_t seed);

}  // namespace fairlead::sim
