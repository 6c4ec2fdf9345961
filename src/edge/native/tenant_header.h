// Whose objects and runs a request is about.
#pragma once

#include <string>

#include "edge/edge.h"
#include "model/tenant.h"

namespace fairlead {

// The key's own; else, with a key for all, as the client says it, not validated; kDefaultTenant where it says nothing.
inline std::string tenant_named_by(const net::HttpRequest& request, const Principal& who) {
  if (who.tenant) return *who.tenant;
  std::string tenant(request.header("X-Fairlead-Tenant"));
  return tenant.empty() ? std::string(kDefaultTenant) : tenant;
}
inline std::string tenant_named_by(RouteCall& call) {
  return tenant_named_by(call.exchange.request(), call.principal);
}

}  // namespace fairlead
