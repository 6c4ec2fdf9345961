// What a node says of itself, to every gateway, each gossip period. A value: how it travels is the peers' business.
//
// Its number and its incarnation order it; its time does not. Clocks of nodes differ, so `measured_at` is for people: a gateway counts a
// report's age from when it came.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/units.h"
#include "decide/cluster/node_id.h"

namespace fairlead {

inline constexpr std::uint32_t kLoadReportVersion = 1;  // of this format; a gateway ignores what is newer

// Functions that have an instance on the node, started or starting: keys, ascending.
using WarmFunctions = std::vector<std::uint64_t>;

inline constexpr std::size_t kMostTenantsSaid = 64;  // in one report

struct TenantService {
  std::uint64_t tenant = 0;  // by a key that all nodes share
  double seconds = 0;        // GPU service since the incarnation began; it does not fall
  bool is_waiting = false;   // something of it is queued there, and could run if others did not
  bool operator==(const TenantService&) const = default;
};

struct LoadReport {
  std::uint32_t version = kLoadReportVersion;
  NodeId node;
  std::uint64_t incarnation = 0;  // counts the node's starts, and each time it hears that it is thought dead
  std::uint64_t number = 0;       // counts up within an incarnation
  Instant measured_at;            // by the node's own clock
  double tokens = 0;              // invocations that may run at once; 0: it takes none
  double backlog_s = 0;           // GPU seconds of all it has accepted and not answered
  bool is_draining = false;
  std::shared_ptr<const WarmFunctions> warm;  // null: it does not say
  std::vector<TenantService> tenants;

  bool is_warm(std::uint64_t function) const {
    return warm != nullptr && std::binary_search(warm->begin(), warm->end(), function);
  }
};

}  // namespace fairlead
