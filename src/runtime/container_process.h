// Inside a sandbox: makes the container's root and lets crun start it.
//
// The root is an overlay: below the unpacked image, which all its instances share and none can write to, above a small
// tmpfs that holds nothing but the mount points crun adds; the container sees it read-only. crun makes the container's
// own user, pid, mount and ipc namespaces; net, uts and the control group are the sandbox's. crun itself ends once the
// container runs: its first process then is a child of the sandbox's init, and dies with it.
#pragma once

#include <sys/types.h>

#include <string>

#include "base/result.h"

namespace fairlead {

// The pid of the container's first process. Its output goes where the caller's goes. kInvalidArgument: what crun said
// was wrong, for example that the program is not in the image; kUnavailable: crun is not installed.
// REQUIRES: mount_order() was called with the image bound at kImageDir; the right to mount; SIGCHLD is blocked.
Result<pid_t> start_container(const std::string& config_json);

}  // namespace fairlead
