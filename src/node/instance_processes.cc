#include "node/instance_processes.h"

#include <fmt/format.h>

#include <fstream>
#include <sstream>
#include <string>

namespace fairlead {
namespace {

constexpr int kMostAncestors = 64;
constexpr std::size_t kMostKnown = 4096;

struct Stat {
  int parent = 0;
  unsigned long long started = 0;
};

// /proc/PID/stat: "pid (name) state ppid ... starttime ...", where a name may contain anything.
std::optional<Stat> read_stat(int pid) {
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  std::string text;
  if (!std::getline(file, text)) return std::nullopt;
  const std::size_t name_end = text.rfind(')');
  if (name_end == std::string::npos) return std::nullopt;
  std::istringstream fields(text.substr(name_end + 1));
  Stat stat;
  std::string skipped;
  fields >> skipped >> stat.parent;
  for (int field = 5; field < 22; ++field) fields >> skipped;
  if (!(fields >> stat.started)) return std::nullopt;
  return stat;
}

}  // namespace

std::optional<InstanceId> InstanceProcesses::find(int pid, const Inits& inits) {
  const std::optional<Stat> self = read_stat(pid);
  if (!self) return std::nullopt;
  const auto known = known_.find(pid);
  if (known != known_.end() && known->second.started == self->started) return known->second.instance;
  std::optional<Stat> stat = self;
  for (int ancestor = pid, i = 0; i < kMostAncestors && ancestor > 1 && stat; ++i) {
    if (const auto init = inits.find(ancestor); init != inits.end()) {
      if (known_.size() >= kMostKnown) known_.clear();
      known_[pid] = {self->started, init->second};
      return init->second;
    }
    ancestor = stat->parent;
    stat = read_stat(ancestor);
  }
  return std::nullopt;
}

}  // namespace fairlead
