// Which one-off tasks a node keeps so that the same request again is warm: a bounded number of them, with a bounded number
// of files and bytes. The least recently used goes first; one that is in use never goes.
//
//   64 are kept, a is the oldest and runs, b is next: a new one takes the place of b
//
// Threads: not thread-safe; owned by the core thread.
#pragma once

#include <functional>
#include <list>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/units.h"
#include "model/kernel_task_request.h"

namespace fairlead {

class KeptTasks {
 public:
  struct Size {
    std::size_t files = 0;  // each costs a descriptor
    Bytes bytes{0};
  };
  struct Limits {
    std::size_t tasks = 64;
    std::size_t files = 4096;
    Bytes bytes = mib(256);
  };

  KeptTasks() : KeptTasks(Limits()) {}
  explicit KeptTasks(Limits limits) : limits_(limits) {}

  // From now on the most recently used. False: it is not kept.
  bool use(const std::string& name);
  // Who must go before one of `size` can be added, in this order. Nothing: so many are in use that there is no room.
  std::optional<std::vector<std::string>> to_drop(Size size,
                                                  const std::function<bool(const std::string&)>& in_use) const;
  // The most recently used. REQUIRES: it is not kept, and nobody need go.
  void add(const std::string& name, Size size);
  void remove(const std::string& name);  // REQUIRES: it is kept

  std::size_t count() const { return by_name_.size(); }
  const Limits& limits() const { return limits_; }

 private:
  struct Kept {
    std::string name;
    Size size;
  };
  bool fits(std::size_t tasks, const Size& size) const;

  const Limits limits_;
  std::list<Kept> by_use_;  // the least recently used first
  std::map<std::string, std::list<Kept>::iterator> by_name_;
  Size total_;
};

KeptTasks::Size size_of(const KernelTaskRequest& request);

// The name under which a tenant's request is kept: "request:" and the SHA-256 of what makes it this task, which is all of
// it but its call. No function can have it, since names of functions have no colon.
std::string requested_name(const std::string& tenant, const KernelTaskRequest& request);

}  // namespace fairlead
