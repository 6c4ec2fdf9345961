// The system calls that the platform's own programs may make which run in jails: device servers, module trials, skopeo, umoci, and
// the proxy that leads out of a jail. Known programs, known calls: what is not named here fails with EPERM, and what is newer than the
// list with ENOSYS, which makes libraries use the older call.
//
// Functions have a list of what is forbidden instead (seccomp_filter.h): they bring any language's runtime, and a call of theirs
// that nobody thought of would be our bug.
#pragma once

#include <span>

namespace fairlead {

// Numbers of this machine's system calls. clone and socket are not among them: the filter looks at their arguments.
std::span<const int> platform_calls();

}  // namespace fairlead
