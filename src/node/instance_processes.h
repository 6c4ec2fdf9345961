// Which instance a process belongs to: the one whose init is its ancestor. All processes of a sandbox have one, because
// orphans become the init's children. Read from /proc, and remembered for as long as the process lives.
//
// Threads: one thread.
#pragma once

#include <map>
#include <optional>
#include <unordered_map>

#include "base/ids.h"

namespace fairlead {

class InstanceProcesses {
 public:
  using Inits = std::map<int, InstanceId>;  // by the pid of the init

  // Of the process `pid`; empty: of none of these instances, or it has ended.
  std::optional<InstanceId> find(int pid, const Inits& inits);

 private:
  struct Known {
    unsigned long long started = 0;  // tells the process from a later one of the same number
    InstanceId instance;
  };
  std::unordered_map<int, Known> known_;
};

}  // namespace fairlead
