// What edges ask of a node about what tenants used.
//
// Threads: the io_context's. The callback comes later.
#pragma once

#include <functional>
#include <vector>

#include "base/result.h"
#include "model/usage.h"

namespace fairlead {

class UsageService {
 public:
  virtual ~UsageService() = default;
  // Rows in the order of their keys; as many as query.most: there may be more.
  virtual void usage(UsageQuery query, std::function<void(Result<std::vector<UsageRow>>)> done) = 0;
};

}  // namespace fairlead
