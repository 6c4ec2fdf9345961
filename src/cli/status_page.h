// A node's GPUs as one page of HTML: the rectangles that are promised of each, and who waits for what.
//
// Pure: of what the node said. One file, no script; whatever others wrote is escaped.
#pragma once

#include <string>

#include "cli/node_client.h"

namespace fairlead::cli {

// status: GET /fairlead/v1/status; scaled: the functions of GET /fairlead/v1/scaling.
std::string status_page(const Json& status, const Json& scaled);

}  // namespace fairlead::cli
