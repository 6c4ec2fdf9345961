// The first process of a jail, from its clone to its end. What it says to the one outside, on `control`:
//   "ids"              map this process's ids; an empty answer follows
//   "way out", fds     sockets that listen inside: the proxy's, then the registry's if it has one
//   "X" wait status    the program has ended
//   anything else      why there is no jail, or why the program was ended
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "runtime/cgroup.h"
#include "runtime/jail/jail_spec.h"
#include "runtime/seccomp_filter.h"

namespace fairlead {

inline constexpr std::uint16_t kProxyPort = 3128;
inline constexpr const char* kMapIds = "ids";
inline constexpr const char* kWayOut = "way out";

struct JailInside {
  const JailSpec& spec;
  const std::vector<std::string>& program;
  const SeccompPrograms& seccomp;
  const Cgroup* cgroup;  // null: none
  bool is_root;          // the one outside is the host's
  bool has_passed;       // descriptor 3 is for the program; else it is to be closed
};
[[noreturn]] void run_jail_inside(const JailInside& jail, UniqueFd control);

}  // namespace fairlead
