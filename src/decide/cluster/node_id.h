// A node of the cluster, as one gateway numbers those it knows: 1, 2, 3, ... in the order in which it met them. A number is never used
// again. Between gateways a node is known by its name; node_key() makes of a name what all of them hash alike.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/ids.h"

namespace fairlead {

using NodeId = Id<struct NodeTag>;

// Of names, alike on every machine (FNV-1a, then mixed).
std::uint64_t node_key(std::string_view name);
std::uint64_t tenant_key(std::string_view tenant);
std::uint64_t function_key(std::string_view tenant, std::string_view function);

}  // namespace fairlead
