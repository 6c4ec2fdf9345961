// The console: a page of the node's own at /console, what it shows live, and how its viewers sign in. Everything else that the page asks for is
// the API that others use, with the same permissions.
#pragma once

#include <cstdint>
#include <functional>

#include "edge/edge.h"
#include "edge/node_service.h"
#include "edge/recent_calls.h"
#include "identity/keyring.h"

namespace fairlead {

// All outlive the edge's handlers.
struct ConsolePorts {
  const identity::Keyring& keyring;
  const RecentCalls& calls;
  std::function<std::int64_t()> wall_clock_ms;
};

Edge console_edge(boost::asio::io_context& io, NodeService& node, ConsolePorts ports);

}  // namespace fairlead
