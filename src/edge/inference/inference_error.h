// How this edge says that something is wrong: {"error": TEXT}.
#pragma once

#include "base/result.h"
#include "edge/edge.h"

namespace fairlead::inference {

void refuse(net::HttpExchange exchange, const Error& error);
EdgeErrors errors();

}  // namespace fairlead::inference
