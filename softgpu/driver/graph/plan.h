// How a graph's steps are cut into pieces that streams execute: the schedule of an executable graph.
//
// A *lane* is a queue that executes pieces one after the other: lane 0 is the stream of the launch, the others belong to
// the executable graph. A *segment* is a piece: steps of one lane that nothing outside needs to see between, submitted
// as one operation. A segment waits for segments of other lanes.
//
// Example: A -> {B, C} -> D. Segments: 0 = A (lane 0, ends because two steps wait for it), 1 = B (lane 0), 2 = C (lane 1,
// waits for 0), 3 = D (lane 0, waits for 2). A chain of 100 steps is one segment: its launch costs one submission.
//
// A step with several dependents ends its segment, so nobody waits longer than for what it depends on. Where the graph is
// wider than kMaxLanes, independent steps queue behind each other, which changes the time and not the result.
#pragma once

#include <cstddef>
#include <vector>

namespace softgpu::graph {

// One step as the plan sees it. Steps are numbered in an order in which dependencies come first.
struct PlanStep {
  std::vector<std::size_t> after;  // earlier steps
  bool ends_segment = false;       // someone outside the graph waits for this step
  bool begins_segment = false;     // the step waits for someone outside the graph
};

struct Segment {
  std::size_t lane = 0;
  std::vector<std::size_t> steps;
  std::vector<std::size_t> after;  // segments of other lanes
};

struct Plan {
  std::vector<Segment> segments;        // every segment after those it waits for
  std::size_t lanes = 1;                // lane 0 always exists
  std::vector<std::size_t> segment_of;  // by step
};

constexpr std::size_t kMaxLanes = 4;

Plan make_plan(const std::vector<PlanStep>& steps);

}  // namespace softgpu::graph
