// What edges ask about calls that are over, several at a time: the newest of a function, or of all.
//
// Threads: the io_context's.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "edge/request_service.h"

namespace fairlead {

struct RecentQuery {
  std::string tenant = {};    // "": of all
  std::string function = {};  // "": of all
  std::size_t most = 200;
};

class RecentCalls {
 public:
  virtual ~RecentCalls() = default;
  // The one that ended last first; without who was ahead of them.
  virtual std::vector<RequestTrace> recent(const RecentQuery& query) const = 0;
};

}  // namespace fairlead
