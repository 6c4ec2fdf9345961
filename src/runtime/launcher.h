// How a program of the node's own is started where it is not started bare: in a jail (jail/jail_spec.h).
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace fairlead {

struct Launch {
  std::vector<std::string> words;  // before the program
  std::shared_ptr<void> held;      // as long as the process: what it runs as, for example
};

// Of a process with this environment. Empty: it runs by itself.
using Launcher = std::function<Launch(const std::map<std::string, std::string>& environment)>;

}  // namespace fairlead
