// POST /fairlead/v1/functions/{function}/stream: a call whose answer is sent on as the function makes it, byte for byte and under the function's
// own Content-Type. What reads HTTP reads it: curl -N, a browser's EventSource by fetch(), httpx.
//
//   curl -N -H "Authorization: Bearer $FAIRLEAD_TOKEN" -d '"hello"' localhost:9001/fairlead/v1/functions/chat/stream
//
// An answer that is not streamed is what an Invoke's is. One that fails after its first byte is cut.
#pragma once

#include "edge/edge.h"
#include "edge/native/kernel_tasks.h"
#include "edge/node_service.h"

namespace fairlead {

void add_function_stream_routes(Routes& routes, NodeService& node, OutcomeResponse outcome_response);

}  // namespace fairlead
