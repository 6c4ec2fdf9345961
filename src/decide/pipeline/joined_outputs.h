// Outputs of a Dag that join. Entries of Dag::outputs that stand one after another with one name are one output: of its sources the first that
// ran is answered.
//
//   {"out", sr.y} {"out", plain.y} {"mask", cut.y}: two outputs. "out" is sr.y where sr ran, else plain.y
//
// A stage hands on every entry that ran; who answers takes the first of each name.
//
// Pure. Threads: any.
#pragma once

#include <vector>

#include "decide/pipeline/dag.h"

namespace fairlead {

struct JoinedOutput {
  std::string name;
  std::vector<std::size_t> entries;  // of Dag::outputs, in their order; one or more
};
// In the order in which their names first stand.
std::vector<JoinedOutput> joined_outputs(const Dag& dag);

}  // namespace fairlead
