// OpenFaaS's gateway, so that faas-cli and what else speaks to one deploys to a node and calls it as they are (docs/how-to/openfaas.md).
//
//   /system/...            functions, secrets, logs, scale; with a key of the node, as Basic or as other edges take it
//   /function/NAME/...     calls; with a key, but where the operator opens them
//   /async-function/...    the same, later, with a callback
//
// Source: reference fronts.md, section 3. Errors are lines of text. Threads: everything on the io_context's thread.
#pragma once

#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <functional>

#include "edge/edge.h"
#include "edge/node_service.h"
#include "edge/openfaas/function_call.h"
#include "edge/run_elsewhere.h"
#include "identity/secret_vault.h"

namespace fairlead {

struct OpenfaasOptions {
  openfaas::CallOptions calls = {};
  std::function<std::int64_t()> wall_clock_ms;  // of secrets
  RunElsewhere elsewhere;                       // changes of secrets
};

// What is named here must outlive the handlers.
Edge openfaas_edge(boost::asio::io_context& io, NodeService& node, identity::SecretVault& secrets,
                   OpenfaasOptions options);

}  // namespace fairlead
