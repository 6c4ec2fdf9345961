#include "decide/pipeline/joined_outputs.h"

namespace fairlead {

std::vector<JoinedOutput> joined_outputs(const Dag& dag) {
  std::vector<JoinedOutput> joined;
  for (std::size_t entry = 0; entry < dag.outputs.size(); ++entry) {
    const std::string& name = dag.outputs[entry].name;
    if (joined.empty() || joined.back().name != name) joined.push_back({.name = name, .entries = {}});
    joined.back().entries.push_back(entry);
  }
  return joined;
}

}  // namespace fairlead
