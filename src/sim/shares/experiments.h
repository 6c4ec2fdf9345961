// What schedulers of places are compared on, each as one row per scheduler.
//
//   delivered    random sets of one mix, all busy: of what it was promised, the part that the worst instance got in its worst second
//   objectives   the paper's eight instances, Poisson at 70 % of their requests: objectives missed
//   reserved     one instance with 34 % of the device (50 % of the SMs, 68 % of the time), Poisson at 70 % of that, objective 100 ms for
//                20 ms of work, beside four busy best-effort flows of 25, 50, 50 and 50 % of the SMs, whose kernels are given
//   small        eight clients at 12 % of the SMs whose kernels fill 24 %, closed loop, side by side against time sharing, one at a time
//   profile, disturbed, pods, packed   the paper's figures 8 to 11 (paper_figures.h), a row for each seed
//
// Threads: runs share nothing. Determinism: of the options.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "sim/shares/simulation.h"

namespace fairlead::sim {

struct SharesOptions {
  std::vector<std::string> schedulers = {"pacer", "paper", "backfill", "one"};
  std::vector<std::string> mixes = {"grid", "small", "paper", "continuous"};
  Duration most_kernel = std::chrono::microseconds(400);
  Duration best_effort_kernel = std::chrono::microseconds(400);  // the longest of the flows in `reserved`
  double reserve_percent = 3;
  std::size_t sets = 10;
  std::uint64_t seeds = 1;
  bool limit_is_request = false;
  bool bursts = false;  // requests come in bursts of five, at the same rate
  // As a process on a node has it: nobody knows when its requests are due, and it loses time between two kernels.
  bool tells_deadlines = true;
  Duration gap{0};
  PlaceOptions places;
  Duration leash{0};
  Duration warm_up = std::chrono::seconds(5);
  Duration length = std::chrono::seconds(20);
};

// One row of a table: what was run, and named numbers in order.
struct SharesRow {
  std::string experiment, scheduler, workload;
  std::vector<std::pair<std::string, double>> numbers;
  std::uint64_t state_hash = 0;
};

// One run of these clients.
SharesResult run_shares(const SharesOptions& options, const std::string& scheduler, std::vector<ShareClient> clients,
                        std::uint64_t seed);
// The clients of `reserved`.
std::vector<ShareClient> reserved_beside_best_effort(const SharesOptions& options);
std::vector<std::string_view> share_experiments();
// kInvalidArgument names what is not known.
Result<std::vector<SharesRow>> run_experiment(std::string_view experiment, const SharesOptions& options);

}  // namespace fairlead::sim
