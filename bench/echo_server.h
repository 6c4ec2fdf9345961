// The baseline of throughput: the node's own HTTP server library, answering every request at once.
#pragma once

#include "base/result.h"

namespace fairlead::bench {

// Prints "listening on HOST:PORT", then serves until killed.
Status run_echo_server();

}  // namespace fairlead::bench
