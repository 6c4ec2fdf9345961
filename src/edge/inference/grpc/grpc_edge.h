// The Open Inference Protocol, version 2, over gRPC: the services inference.GRPCInferenceService and grpc.health.v1.Health. It stands
// behind a net::GrpcServer, which makes exchanges of calls; its paths are no paths of the HTTP server.
//
//   ServerLive  ServerReady  ServerMetadata       ModelReady  ModelMetadata  ModelInfer
//   ModelConfig  ModelStatistics  RepositoryIndex, which clients of Triton ask for       Health: Check
//
// What is answered is what the edge over HTTP answers (edge/inference/inference_edge.h). A call's own deadline (grpc-timeout), the
// request's `timeout` and X-Fairlead-Deadline-Ms bound its time in the queue and its run, the soonest of them.
#pragma once

#include "edge/edge.h"
#include "edge/inference/batches.h"
#include "edge/node_service.h"

namespace fairlead {

// Both must outlive the edge's handlers.
Edge grpc_edge(NodeService& node, inference::Batches& batches);

}  // namespace fairlead
