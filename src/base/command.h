// Runs a program of the machine to its end, with what it prints and a limit on its time.
#pragma once

#include <signal.h>

#include <atomic>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/units.h"

namespace fairlead {

// The first executable of that name in $PATH; "" when there is none.
std::string find_program(const std::string& name);

struct Command {
  std::vector<std::string> arguments;  // the first is the program: a path, or a name that is looked up in $PATH
  std::map<std::string, std::string> environment = {};  // added to this process's, or in place of what is there
  bool inherits_environment = true;                     // false: `environment` is all
  std::string input = {};                               // its standard input
  Duration timeout = std::chrono::seconds(10);
  int kill_signal = SIGKILL;                // what ends it too early; one that it may handle, when it ends soon after
  const std::atomic<bool>* stop = nullptr;  // set by another thread: the program is killed, kUnavailable
};

struct CommandResult {
  int exit_status = 0;  // 128 + n: ended by signal n
  std::string output;   // the first mebibyte of stdout
  std::string errors;   // the last 16 KiB of stderr
};

// Blocks; any thread. kNotFound: there is no such program; kUnavailable: `stop`; kDeadlineExceeded names the program and
// the limit, it was killed. The program inherits no descriptor but its three streams and dies with the calling thread; a
// daemon that it leaves behind holds nothing of ours, and what the daemon keeps open is not waited for.
Result<CommandResult> run_command(const Command& command);

}  // namespace fairlead
