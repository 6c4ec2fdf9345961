// A tenant as an operator names it.
#pragma once

#include <string>

#include "base/result.h"
#include "decide/queueing/flow_view.h"

namespace fairlead {

struct TenantEntry {
  std::string name;
  TenantShare share;
};

// "NAME:WEIGHT" or "NAME:WEIGHT:MAX": its share of the GPU against other tenants, 0.01 to 100, and how many of its
// invocations may be in flight, 1 to 1024. kInvalidArgument names what is wrong, its value and the bound.
Result<TenantEntry> tenant_from(const std::string& text);

}  // namespace fairlead
