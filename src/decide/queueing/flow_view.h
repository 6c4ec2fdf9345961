// What a queue says of a flow, and what flows and tenants are entitled to. Values only.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

#include "base/ids.h"
#include "base/units.h"
#include "model/arrival_pace.h"

namespace fairlead {

// Memory follows the queues (the paper's section 4, states of a flow): active means keep near, throttled and inactive mean may leave.
enum class FlowState { kActive, kThrottled, kInactive };
std::string_view flow_state_name(FlowState state);

// What people see of a flow (`top`, metrics, reports).
struct FlowView {
  FlowId flow;
  FlowState state = FlowState::kInactive;
  std::size_t queued = 0;
  std::size_t in_flight = 0;
  Duration virtual_time{0};
  Duration service_estimate{0};  // tau
  bool contends =
      false;  // waits for others, in their turn: neither for a start of its own, nor ahead by more than the window
  Duration passed{0};  // virtual time that it gained without service, in all: others used slots that it could not use
  ArrivalPace pace = {};
};

// What a flow is entitled to.
struct FlowShare {
  double weight = 1.0;                // > 0
  TenantId tenant;                    // policies without tenants do not look at it
  std::optional<Duration> objective;  // wanted from arrival to answer; policies without deadlines do not look at it
  int width_percent = 100;            // of the SMs that it takes while it runs: GPU time is charged times this
  // Flows of one family, such as the versions of a function, have one virtual time and one reserved concurrency together. The id of the
  // first of them, which is there already; 0: alone.
  FlowId family = {};
};

// What a tenant is entitled to, over all its flows.
struct TenantShare {
  double weight = 1.0;                         // > 0
  std::optional<std::size_t> max_concurrency;  // in flight at most; empty: no limit

  bool operator==(const TenantShare&) const = default;
};

// What a tenant was given by the node, for those who compare nodes.
struct TenantUse {
  Duration served{0};  // charged to it, in GPU time and not divided by its weight; does not fall
  // Something of it is queued that others hold back: not its limit, its functions' reserved concurrency, seats, or a start.
  bool is_waiting = false;
};

}  // namespace fairlead
