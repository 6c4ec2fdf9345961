// Functions that run where their folder lies, without a copy (Code.InPlace): which folders may be one's code.
//
// Example: of tenant shop, on a node whose state is in /var/lib/fairlead, where /srv/weights is a volume for vision
//   /home/ana/classify   may                       /srv/weights/v2   may not: it is vision's alone
//   /etc/cron.d          may not, nor what is in or above what a sandbox has of its own
//   /var/lib             may not: the node's state lies in it
//
// Pure; thread-safe.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "model/volume.h"

namespace fairlead {

struct InPlaceTerms {
  std::string obstacle;   // why this node runs no function in place; "": it does
  std::string state_dir;  // absolute, by its own name
  std::vector<Volume> volumes;
};

// Asked when the function is deployed, and at each start, since settings change. kInvalidArgument says what is wrong with the folder.
Status check_in_place(const std::string& folder, const std::string& tenant, const InPlaceTerms& terms);

}  // namespace fairlead
