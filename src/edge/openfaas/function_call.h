// Calls: /function/NAME[.NAMESPACE][/PATH][?QUERY], any method, and /async-function/... .
//
//   GET /function/shop.acme/items/7?full=1    ->  the function shop is asked GET /items/7?full=1, and its status, headers and body are
//   Accept: text/html                             the answer
//
// What the function sees: the method, path, query and headers that were sent, but for those of the connection and Authorization, which is
// the node's; X-Call-Id, X-Start-Time, X-Forwarded-For and -Host are added. Functions that know no HTTP, such as those that ask the
// Runtime API, get the body and answer with theirs: 200, or 500 where they failed.
//
// Threads: the io_context's.
#pragma once

#include <memory>
#include <optional>

#include "edge/edge.h"
#include "edge/node_service.h"
#include "edge/openfaas/callbacks.h"
#include "model/registry_rules.h"

namespace fairlead::openfaas {

inline constexpr std::size_t kMostBodyBytes = 64 << 20;  // of a call that is waited for; kMaxAsyncPayloadBytes else

struct CallOptions {
  bool is_open = false;     // functions may be called without a key
  RegistryRules callbacks;  // where callbacks may go
};

// What became of an asynchronous call, as it is posted to its X-Callback-Url; nothing where it has none, or the rules say no. For tests.
std::optional<Callback> callback_of(const Invocation& invocation, const Outcome& outcome, const RegistryRules& rules);

// Takes EventService::when_over.
void add_call_routes(Routes& routes, NodeService& node, std::shared_ptr<Callbacks> callbacks, CallOptions options);

}  // namespace fairlead::openfaas
