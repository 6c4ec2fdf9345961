// A folder as the code of a function.
#pragma once

#include <string>

#include "base/result.h"
#include "cli/node_client.h"

namespace fairlead::cli {

// The folder as the `Code` of a function: where it is, for a node on this machine, unless `upload`; else as an archive.
Result<Json> folder_as_code(NodeClient& node, const std::string& folder, bool upload);

// The folder itself, for a node that runs it where it lies. kInvalidArgument: the node is not on this machine, as far as is known here.
Result<Json> folder_in_place_as_code(const NodeClient& node, const std::string& folder);

// Whether `folder` can be deployed: it exists and has an executable `bootstrap`, or a `task.json`. The message explains what that is.
Status check_function_folder(const std::string& folder);

}  // namespace fairlead::cli
