// How an edge runs what may not hold up the thread of requests: changes that wait for a disk, or for the store of all nodes.
#pragma once

#include <functional>
#include <string>

#include "base/result.h"
#include "base/units.h"

namespace fairlead {

// Runs `job` on another thread, and what it returns on this one; as NodeService::run_elsewhere, which does so for what is large.
using RunElsewhere =
    std::function<Status(const std::string& tenant, Bytes bytes, std::function<std::function<void()>()> job)>;

}  // namespace fairlead
