// How a node holds idle instances (decide/core/hold_desk.h), for those who make the node and its front door.
//
// Threads: the io_context's.
#pragma once

#include <vector>

#include "decide/core/hold_desk.h"
#include "node/node.h"

namespace fairlead {

class NodeWarmth {
 public:
  explicit NodeWarmth(Node& node) : desk_(node.driver_.core()) {}
  std::vector<HoldView> views() const { return desk_.views(); }
  void set_bounds(const PinBounds& bounds) { desk_.set_bounds(bounds); }

 private:
  HoldDesk desk_;
};

}  // namespace fairlead
