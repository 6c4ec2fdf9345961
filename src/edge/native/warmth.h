// GET /fairlead/v1/warmth: how each instance is held and until when it is kept; what else there is to know of one is in
// GET /fairlead/v1/status, by the same id.
#pragma once

#include <functional>
#include <vector>

#include "edge/edge.h"
#include "model/warm_hold.h"

namespace fairlead {

// `holds` outlives the handlers; on the io_context's thread.
Edge warmth_edge(std::function<std::vector<HoldView>()> holds, std::function<Instant()> now);

}  // namespace fairlead
