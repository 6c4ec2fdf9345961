// Which pipelines to start on the slices that are free: the interface, and those that decide.
//
//   cv        the paper's: partitions by the coefficient of variation of their stages, the first whose stages fit the smallest free slices
//   need      most of the rate still wanted per compute slice, subject to memory and objective with the real hop
//   exact     over multisets of slices, one slice for each stage: goodput, then compute slices, then slices, then latency
//   replicas  stages on several slices each, pipelines of single slices on what is left: what `exact` finds, or better
//   esg       the whole function on the cheapest slice that meets the objective: no pipeline
//   infless   the whole function on the fastest slice: no pipeline
//
// one() plans an instance, fill() as many as the rate wanted needs, or the slices hold. fill() of `cv`, `need`, `esg` and `infless` is one() again and
// again. Slices of a type are alike, so that a plan says types; the caller picks which (slice_choice.h).
//
// Anytime. fill() of `exact` and `replicas` takes at most about `steps` steps of its inner loops. Where these do not suffice for the whole node it
// solves a half, a quarter ... of it exactly, does the same with each, and fills the rest. The bound is that of the fluid problem, in which a slice
// may be shared by any stages at any parts: its dual is a price for each type, and any prices bound what can be reached:
//   rate <= sum(price x slices) / min over partitions(sum over stages(min over types(price x time)))
//
// Example: pipeline_model.h's three components, free 4g + 2g + 1g, hop 20 ms. cv takes [a] [b] [c] on 2g, 1g, 4g: 8.3 requests/s. exact takes [a, b]
// on 4g and [c] on 2g: 15.4/s, and leaves the 1g.
//
// Source: FluidFaaS (HPDC '25), 5.2.2 for cv; the others are ours. Pure. Threads: any. Determinism: of the calls; ties go to what comes first.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "decide/pipeline/pipeline_model.h"

namespace fairlead {

struct PlanRequest {
  std::vector<int> free;    // slices of each of the model's types
  double wanted_per_s = 0;  // 0: all that can be had
  Duration objective{0};    // 0: none
  std::uint64_t steps = 4'000'000;
};

struct PipelinePlan {
  std::size_t partition = 0;  // of the model's
  std::vector<std::vector<std::size_t>>
      slices;  // for each stage, the types of its replicas, fastest first; empty: needs none
  double rate_per_s = 0;
  Duration latency{0};    // of a request alone that meets the slowest replica of each stage
  std::vector<int> uses;  // by type
  int compute = 0;
  int count() const;  // slices
};

// REQUIRES: each stage that needs a slice has one at least, of types where it fits.
PipelinePlan evaluate(const PipelineModel& model, std::size_t partition, std::vector<std::vector<std::size_t>> slices);

// What was looked at, and why it was passed over: "" for what was taken.
struct PlanConsidered {
  std::string partition, why;
  double cv = 0;
};

struct PlanAnswer {
  std::vector<PipelinePlan> plans;
  double rate_per_s = 0;
  double bound_per_s = 0;  // no planner passes it; 0: not computed
  bool is_exact = false;
};

class Planner {
 public:
  virtual ~Planner() = default;
  // Nothing: no pipeline fits and meets the objective.
  virtual std::optional<PipelinePlan> one(const PipelineModel& model, const PlanRequest& request) const = 0;
  virtual PlanAnswer fill(const PipelineModel& model, const PlanRequest& request) const;
};

std::vector<std::string_view> planners();
inline constexpr std::string_view kDefaultPlanner =
    "replicas";  // by measurement: docs/explanation/reproduction-fluid.md
// kInvalidArgument names what is not known. The planner lives as long as the program.
Result<const Planner*> planner_named(std::string_view name);

// The partitions in the order of their CV, each with what keeps it from `plan`'s place; for people.
std::vector<PlanConsidered> explain(const PipelineModel& model, const PlanRequest& request,
                                    const std::optional<PipelinePlan>& plan);

// The dual bound above, for these slices.
double fluid_bound(const PipelineModel& model, const std::vector<int>& free);

// One slice for each stage, of each multiset of slices the best: what `exact` fills a node with. Nothing is in it that another has for less.
std::vector<PipelinePlan> columns(const PipelineModel& model, const PlanRequest& request);

}  // namespace fairlead
