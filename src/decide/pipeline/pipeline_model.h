// What every way of cutting a function into stages costs on every type of slice: what planners choose from.
//
// A stage is a consecutive part of the groups (dag.h) on slices of its own, or one branch of a parallel group that is cut off alone: the
// branches then run side by side, at one rank. Components that need no GPU and stand at the beginning or the end of a part are stages
// without a slice; between two that need one they hold the slice while they run.
//
//   memory of a stage   weights of all its components, and the most that one needs beyond its weights: they run one after another
//   time of a stage     the sum of its components' on the slice where it runs, each times the part of requests that it runs for
//   a hop               fixed + bytes read from other stages / link. It delays a request; it holds no slice, as chunks go out while others come in
//   latency             over the ranks: the slowest stage and its hop
//   rate                1 / time of the slowest stage; of replicas the sum
//
// Example: 80, 120, 80 ms on 1g, 44, 66, 52 on 2g, 26, 39, 38 on 4g, hops of 20 ms. [0] on 2g, [1] on 1g, [2] on 4g: 1 / 120 ms = 8.3
// requests per second, 44 + 20 + 120 + 20 + 38 = 242 ms. [0, 1] on 4g, [2] on 2g: 1 / 65 ms = 15.4 per second, 137 ms.
//
// Where there are more than kMaxGroups groups, the two neighbours with the least time together become one until there are as many.
// Source: FluidFaaS (HPDC '25), 5.2.2; the paper has one time per stage and no hop.
// Pure. Threads: any, once made.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "decide/pipeline/dag.h"

namespace fairlead {

inline constexpr std::size_t kMaxGroups = 12;  // 2048 partitions

struct SliceType {
  std::string name;  // "1g"
  int compute = 1;   // of a GPU's compute slices
  Bytes memory{0};
  std::string times;  // whose times it has, where that is another's: a 1g with double memory runs as "1g"
};

struct HopCosts {
  Duration fixed = std::chrono::microseconds(100);
  double bytes_per_s = 12e9;  // 0: without end
  Duration of(Bytes bytes) const;
};
// What the paper's runtime takes: 10 to 40 ms, whatever the size.
HopCosts paper_hop(Duration fixed = std::chrono::milliseconds(20));

struct StageShape {
  std::vector<std::size_t> components;  // in topological order
  std::size_t rank = 0;                 // stages of one rank run side by side
  bool needs_slice = true;
  Bytes memory{0};
  Bytes reads{0};                              // from components of other stages
  Duration host{0};                            // its time, where it needs no slice
  Duration hop{0};                             // before it; 0 at rank 0
  std::vector<std::optional<Duration>> times;  // by type; empty: it does not fit there, or no time is known

  bool fits(std::size_t type) const { return times[type].has_value(); }
};

// Stages in the order of their ranks; together they have each component once.
struct Partition {
  std::vector<StageShape> stages;
  double cv = 0;  // of the stages' times on the smallest type for which all times are known: std / mean
  std::string text(const Dag& dag) const;  // "[deblur, sr] [depth]"; branches side by side are joined by |
};

class PipelineModel {
 public:
  // `types`: those whose slices there may be, smallest first. REQUIRES: check_dag(dag) finds nothing; 1 to kMaxSliceTypes types. The
  // objective is the Dag's.
  PipelineModel(Dag dag, std::vector<SliceType> types, HopCosts hop = {});

  const Dag& dag() const { return dag_; }
  const std::vector<SliceType>& types() const { return types_; }
  const std::vector<DagGroup>& groups() const { return groups_; }
  // By CV, the most balanced first; of equals the fewest stages, then those whose cuts come first. The single stage is the first.
  const std::vector<Partition>& partitions() const { return partitions_; }

  // The whole function on one slice; none where it does not fit there.
  std::optional<Duration> alone(std::size_t type) const;
  // The same on the first type where it fits: what the paper's objectives are a multiple of.
  std::optional<Duration> alone_on_least() const;

 private:
  StageShape shape(std::vector<std::size_t> components) const;
  std::optional<Duration> time_on(const Component& component, const SliceType& type) const;
  void merge_groups();
  double weight_of(const DagGroup& group) const;
  void add_part(std::size_t first, std::size_t last, bool side_by_side, std::vector<StageShape>& stages) const;
  void add_peeled(const std::vector<std::size_t>& components, std::vector<StageShape>& stages) const;
  void cut_everywhere();
  void finish(Partition& partition) const;
  Bytes bytes_from_outside(const std::vector<std::size_t>& components) const;

  Dag dag_;
  std::vector<SliceType> types_;
  HopCosts hop_;
  std::vector<DagGroup> groups_;
  std::vector<Partition> partitions_;
};

}  // namespace fairlead
