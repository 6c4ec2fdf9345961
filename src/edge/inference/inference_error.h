// How this edge says that something is wrong: {"error": TEXT}.
#pragma once

#include "base/result.h"
#include "edge/edge.h"
#include "model/invocation.h"

namespace fairlead::inference {

Error error_of(const Outcome& outcome);  // of a call that failed
void refuse(net::HttpExchange exchange, const Error& error);
EdgeErrors errors();

}  // namespace fairlead::inference
