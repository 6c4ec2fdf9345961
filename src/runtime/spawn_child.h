// Starts a program of the node's own that speaks with it over a socket, which is its descriptor 3.
#pragma once

#include <sys/types.h>

#include <map>
#include <string>
#include <vector>

#include "base/result.h"

namespace fairlead {

inline constexpr int kSocketInChild = 3;

// `words`: the program and its arguments. The environment is complete. In a process group of its own, so that Ctrl-C is the
// node's to handle; without blocked signals; its input is empty.
Result<pid_t> spawn_with_socket(std::vector<std::string> words, const std::map<std::string, std::string>& environment,
                                int socket);

}  // namespace fairlead
