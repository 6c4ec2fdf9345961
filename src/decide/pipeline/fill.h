// How a whole node is filled: pipelines of single slices, exactly, and stages with replicas (planner.h). Inside of the planners.
#pragma once

#include "decide/pipeline/planner.h"

namespace fairlead {

// An unbounded knapsack over the columns: for each number of free slices of each type, the most that can be had.
PlanAnswer fill_exactly(const PipelineModel& model, const PlanRequest& request);

// For each partition the highest rate at which all its stages can be covered, by bisection; covering is a table of how many slices of one type
// are needed, for each number used of the others. Beside it some slices of each type with the whole function, and single slices on what is left.
PlanAnswer fill_with_replicas(const PipelineModel& model, const PlanRequest& request);

}  // namespace fairlead
