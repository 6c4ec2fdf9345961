// How this edge says that something is wrong: a line of text with a status, as OpenFaaS's gateway does; faas-cli prints both.
#pragma once

#include "base/result.h"
#include "edge/edge.h"

namespace fairlead::openfaas {

// The status that the error document of other edges has, but for 401, which asks for Basic.
net::HttpResponse refusal(const Error& error);
void refuse(net::HttpExchange exchange, const Error& error);
EdgeErrors errors();

}  // namespace fairlead::openfaas
