// /system/functions, /system/function/NAME, /system/scale-function/NAME, /system/namespaces, /system/info, /system/alert.
//
// Threads: the io_context's.
#pragma once

#include <memory>

#include "edge/edge.h"
#include "edge/node_service.h"
#include "edge/openfaas/rollouts.h"

namespace fairlead::openfaas {

inline constexpr std::size_t kMostDocumentBytes = 1 << 20;  // of what is said about a function, a secret or a scale

void add_function_routes(Routes& routes, NodeService& node, std::shared_ptr<Rollouts> rollouts);

}  // namespace fairlead::openfaas
