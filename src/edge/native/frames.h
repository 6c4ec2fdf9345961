// GET /fairlead/v1/frames: of each device on which somebody has a quota, who put kernels on it when, lately.
#pragma once

#include <functional>
#include <vector>

#include "edge/edge.h"
#include "edge/paced_device.h"

namespace fairlead {

// `devices` outlives the handlers; on the io_context's thread.
Edge frames_edge(std::function<std::vector<PacedDevice>()> devices);

}  // namespace fairlead
