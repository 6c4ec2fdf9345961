// The tag by which instances of published versions are kept started, as gpu:replicas keeps those of $LATEST:
//
//   gpu:provisioned   "3=2,live=1"   2 of version 3, and 1 of the version that the alias `live` leads to
//
// Example: `live` leads to 3, so that version 3 has 3 instances kept. `live` is moved to 4: version 3 has 2, and version 4 has 1.
//
// Plain values, pure functions.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "base/result.h"
#include "model/warmth_tags.h"

namespace fairlead {

inline constexpr std::string_view kProvisionedTag = "gpu:provisioned";
inline constexpr std::size_t kMaxProvisionedBytes = 256;  // of the tag's value

using Provisioned =
    std::map<std::string, int>;  // instances, by a version's number or an alias' name; each 1 to kMaxReplicas

// Of no tag: empty. kInvalidArgument names the tag, what is wrong in it and the bound; $LATEST is wrong.
Result<Provisioned> provisioned_in(const Tags& tags);

// `tags` with so many of what the qualifier names, 0: none. kInvalidArgument: the tag would be longer than a tag may be, or the number is
// not 0 to kMaxReplicas. REQUIRES: tags of a valid configuration; a valid qualifier that is not $LATEST.
Result<Tags> with_provisioned(Tags tags, const std::string& qualifier, int instances);

}  // namespace fairlead
