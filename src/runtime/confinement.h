// The steps in which a process gives up what it may do, for sandboxes (sandbox_process.cc) and jails (jail/jail_inside.cc).
// Each is of the calling process, which has one thread. The order is the caller's: ids, user namespace, limits, capabilities,
// no_new_privs and seccomp last.
#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <cstdint>
#include <string_view>

#include "base/result.h"
#include "base/unique_fd.h"

namespace fairlead {

// Becomes the owner of a mount namespace in which mounts can be made. An ordinary user first becomes the root of a user
// namespace of his own, which owns everything made from here on. kUnavailable: the machine forbids it.
Status enter_own_namespaces();

// Killed with the parent. The kernel forgets that at every change of credentials, so this is called after each. `control`:
// the end of a socket pair whose other end the parent has; where the parent has gone already, the process ends here.
Status die_with_parent(int control);

// At most what the process has already.
Status limit_resource(__rlimit_resource resource, rlim_t value, const char* name);

// All ids become `uid` and `gid`; no other groups.
Status change_ids(uid_t uid, gid_t gid);

// Maps nothing but the caller's own ids, as `inner`. Comes after the other namespaces, which then belong to the one outside: not
// even a capability regained inside would let the process touch its mounts or network. `uid`, `gid`: its ids in the namespace
// that it leaves.
Status enter_user_namespace(std::uint32_t inner, uid_t uid, gid_t gid);

// Of this process, its bounding set and so of all it starts. `kept`: a bit for each capability that stays; `pass_on`: also to a
// program that it starts as an ordinary user.
Status drop_capabilities(std::uint64_t kept = 0, bool pass_on = false);

// Brings 127.0.0.1 up in the calling process's net namespace.
Status bring_loopback_up();
Result<UniqueFd> listen_on_loopback(std::uint16_t port);  // TCP, non-blocking, close-on-exec

Status write_text(const char* path, std::string_view text);  // to a file of /proc that is there

}  // namespace fairlead
