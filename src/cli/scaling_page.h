// Scaling as one page of HTML: what was measured, chosen, placed, moved and scaled, who waits for what, and at what cost beside the fluid bound.
//
// Pure: of what the node said. One file, nothing else is loaded, no script. Whatever others wrote is escaped; fields that are not there, or are
// of another type, read as nothing.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "cli/gpu_pictures.h"
#include "cli/node_client.h"
#include "model/function_profile.h"

namespace fairlead::cli {

struct ScalingReport {
  Json functions = Json::array();   // GET .../functions/NAME/scaling of each
  Json placements = Json::array();  // of GET /fairlead/v1/scaling
  Json status = Json::object();     // GET /fairlead/v1/status
  std::map<std::string, FunctionProfile> profiles;
  std::int64_t now_ms = 0;  // since 1970
};

std::string scaling_page(const ScalingReport& report);

// The seats that there are now, by GPU; of functions that the node scales, and of those that say their share by hand.
std::map<std::uint64_t, std::vector<SeatGroup>> seats_now(const Json& status, const Json& scaled);
// Who waits, and for what, as a table of HTML; "": nobody.
std::string waiting_table(const Json& status, const Json& scaled);
// What every page begins with.
std::string page_head(const std::string& title);

}  // namespace fairlead::cli
