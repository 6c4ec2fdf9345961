// Tags by which instances of a function are kept started, or let go: gpu:replicas, "MIN:MAX", and gpu:unloaded-at, milliseconds since 1970 at
// which somebody wanted them gone. The second has no meaning but that it changes: a change of tags replaces a function's instances.
//
//   keep 2 of {"gpu:replicas": "0:5"}   ->   {"gpu:replicas": "2:5"}
//   keep 0 of that                      ->   {"gpu:replicas": "0:5"}
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "base/result.h"

namespace fairlead {

inline constexpr std::string_view kUnloadedAtTag = "gpu:unloaded-at";

using Tags = std::map<std::string, std::string>;

// `tags` with `least` instances kept. MAX stays where somebody set one and `least` fits; a larger `least` raises it. kInvalidArgument:
// `least` is not 0 to kMaxReplicas. REQUIRES: tags of a valid configuration.
Result<Tags> with_instances_kept(Tags tags, int least);

int instances_kept(const Tags& tags);  // MIN; 0: none, or no tag

}  // namespace fairlead
