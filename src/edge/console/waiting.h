// Why a function's calls wait, in words: the first of the reasons that the scheduler would name.
//
// Pure.
#pragma once

#include <optional>
#include <string>

#include "edge/node_service.h"

namespace fairlead {

struct WaitingReason {
  std::string text;     // "": nothing waits
  bool is_own = false;  // of the function or its tenant alone: says nothing of what others do
};

// `reserved`: the function's reserved concurrency.
WaitingReason why_it_waits(const NodeStatus& node, const FunctionStatus& function, std::optional<int> reserved);

}  // namespace fairlead
