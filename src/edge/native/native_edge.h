// Fairlead's own API: objects, graphs, one-off kernel tasks, and what operators ask a node (docs/reference/api.md).
//
// Threads: everything on the io_context's thread.
#pragma once

#include <functional>

#include "edge/edge.h"
#include "edge/node_service.h"

namespace fairlead {

// How an outcome is answered: one-off kernel tasks are answered as calls of deployed ones are, by another edge.
using OutcomeResponse = std::function<net::HttpResponse(Outcome)>;

// `node` must outlive the handlers. `io` has the clock of /fairlead/v1/events.
Edge native_edge(boost::asio::io_context& io, NodeService& node, OutcomeResponse outcome_response);

}  // namespace fairlead
