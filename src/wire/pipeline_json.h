// A function of several models as JSON: what `fairlead plan` and the node read, and the Python package writes (docs/explanation/pipelines.md).
//
//   {"version": 1, "name": "depth", "objective_ms": 250,
//    "inputs":  [{"name": "image", "type": "f32", "shape": [1, 3, 256, 256]}],
//    "outputs": [{"name": "depth", "from": "depth.y"}],
//    "components": [
//      {"name": "deblur", "task": "deblur", "inputs": {"x": "input.image"}, "outputs": [{"name": "y", "type": "f32", "shape": [1, 3, 256, 256]},
//                                                                                     {"name": "is_low", "type": "u8", "shape": [1]}],
//       "profile": {"memory_mib": {"weights": 900, "peak": 2100}, "ms": {"1g": [80, 2.5, 40], "2g": [44, 0, 0]}}},
//      {"name": "sr", "task": "sr", "inputs": {"x": "deblur.y"}, "outputs": [...], "when": {"value": "deblur.is_low", "is": true, "part": 0.4}},
//      {"name": "depth", "task": "depth", "inputs": {"x": ["sr.y", "deblur.y"]}, "outputs": [...]}]}
//
// Inputs of a component have no order but that of their names: programs get them so. An output comes in every request, from one tensor or, a join,
// from the first that ran of a list of one type and shape; it has no input's name. The Python package has the same rules and bounds (python/fairlead/pipeline/description.py), and a test that feeds documents to both.
//
// A time is mean, standard deviation, and how often it was seen: 0 is a prediction. `part` (default 1) is the part of the requests for which
// the branch runs. A component has a `task` (the folder of a kernel task: it needs a GPU) or a `program` (FILE:FUNCTION, or {"file", "function"}: it needs none,
// its time is "host", and it has no memory of a slice). `needs_gpu` may say so, and nothing else.
//
// Threads: free functions, any thread.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "decide/pipeline/dag.h"

namespace fairlead::wire {

inline constexpr std::size_t kMaxPipelineBytes = std::size_t{1} << 20;

// kTooLarge; kInvalidArgument with the path of the value ("components[1].inputs.x is ..."), or with component and edge of what check_dag()
// refuses. What is returned passes check_dag().
Result<Dag> pipeline_from_json(std::string_view json);
// Reads back as an equal Dag. REQUIRES: check_dag(dag) finds nothing.
std::string pipeline_to_json(const Dag& dag);

}  // namespace fairlead::wire
