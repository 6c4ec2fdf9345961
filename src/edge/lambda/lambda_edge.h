// AWS Lambda's API: Invoke, and the control of functions, their code, tags and concurrency (docs/reference/api.md).
//
// Threads: everything on the io_context's thread.
#pragma once

#include "edge/edge.h"
#include "edge/node_service.h"

namespace fairlead {

struct LambdaOptions {
  // Code.Folder: local clients (a Unix socket, a loopback address) may deploy a folder of this machine.
  bool allow_code_folder = true;
};

// `node` must outlive the handlers.
Edge lambda_edge(NodeService& node, const LambdaOptions& options = {});

}  // namespace fairlead
