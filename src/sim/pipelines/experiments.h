// What planners, orders of the queue and starts are compared on, each as one row per contestant.
//
//   goodput    every slice busy with one function (goodput.h): means over the paper's applications, and over random chains
//   anytime    what is reached within so many steps of the planners' inner loops, over what they reach with time
//   bursts     six functions on 8 GPUs under bursts (fleet.h)
//   workloads  the paper's three workloads on 2 nodes of 8 GPUs: light, medium, heavy; P1, P2, hybrid
//   counterexample  the spec's three components on one GPU
//
// Threads: runs share nothing. Determinism: of the options.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/units.h"

namespace fairlead::sim {

struct PipelineOptions {
  std::vector<std::string> variants = {"small", "medium", "large"};
  std::vector<std::string> partitions = {"p1", "p2", "hybrid"};
  std::uint64_t seeds = 3;
  std::uint64_t chains = 40;                    // of goodput
  Duration length = std::chrono::seconds(200);  // of bursts and workloads
  double burstiness = 1;
  double hop_ms = 20;  // of the paper's runtime
};

struct PipelineRow {
  std::string experiment, contestant, workload;
  std::vector<std::pair<std::string, double>> numbers;
  std::uint64_t state_hash = 0;
};

std::vector<std::string_view> pipeline_experiments();
// kInvalidArgument names what is not known.
Result<std::vector<PipelineRow>> run_pipelines(std::string_view experiment, const PipelineOptions& options);

}  // namespace fairlead::sim
