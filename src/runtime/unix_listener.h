// A listening unix socket at a path of any length.
#pragma once

#include <string>

#include "base/result.h"
#include "base/unique_fd.h"

namespace fairlead {

// Replaces what is at `path`. Non-blocking, close-on-exec, 0666: functions have another uid, and only the sandbox that the
// socket is bound into has it in its file tree. `type`: SOCK_STREAM or SOCK_SEQPACKET.
Result<UniqueFd> listen_on_unix(const std::string& path, int type, int backlog);

}  // namespace fairlead
