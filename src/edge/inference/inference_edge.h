// The Open Inference Protocol, version 2, over HTTP, so that clients of KServe and Triton call functions as they are. A function is
// a model where it says what tensors it takes and gives: a kernel task by its buffers. Nothing else is listed.
//
//   GET  /v2/health/live  /v2/health/ready    GET /v2    POST /v2/repository/index
//   GET  /v2/models/M[/versions/1][/ready | /config | /stats]      GET /v2/models/stats
//   POST /v2/models/M[/versions/1]/infer      tensors as numbers or as bytes behind the JSON (infer_request.h)
//
// Errors are {"error": TEXT} with a status. A request's `timeout` and X-Fairlead-Deadline-Ms bound its time in the queue and its run.
// Large bodies are read on another thread.
#pragma once

#include "edge/edge.h"
#include "edge/inference/batches.h"
#include "edge/node_service.h"

namespace fairlead {

// Both must outlive the edge's handlers.
Edge inference_edge(NodeService& node, inference::Batches& batches);

}  // namespace fairlead
