// A process of the node's own that speaks with it over a socket (spawn_child.h), and its end, for which nobody blocks.
//
//   start ──> runs ──by itself, or killed──> ended ──reaped──> ended(reason), once
//
// Whoever destroys one ends the process: it is told to end, killed kPatience later if it has not heard, and reaped on the loop whenever that
// is. Only a loop that is destroyed first waits for what is left, and no longer than kPatience for each.
//
// A process that is stopped (SIGSTOP) hears SIGTERM only once it goes on, so that is sent, too.
//
// Threads: the loop's. The event never comes from inside a call of this class.
#pragma once

#include <sys/types.h>

#include <boost/asio/io_context.hpp>
#include <csignal>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/units.h"

namespace fairlead {

class ChildProcess {
 public:
  static constexpr Duration kPatience = std::chrono::seconds(5);  // from the signal that asks to the one that does not

  struct Options {
    std::vector<std::string> words;  // the program and its arguments
    std::map<std::string, std::string> environment;
    int end_signal = SIGKILL;  // SIGTERM where that makes a jail kill what is in it and clean up
  };
  // `reason` says how it ended: "exit status 1", "signal: Killed". It has been reaped: what it held is free.
  using Ended = std::function<void(std::string reason)>;

  // `socket` becomes its descriptor 3. Errors of the system, with what was to be started.
  static Result<std::unique_ptr<ChildProcess>> start(boost::asio::io_context& io, Options options, int socket,
                                                     Ended ended);
  ~ChildProcess();  // as kill(); nothing is told
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  void kill();  // ended() follows
  pid_t pid() const;

 private:
  class Watch;
  explicit ChildProcess(std::shared_ptr<Watch> watch) : watch_(std::move(watch)) {}

  const std::shared_ptr<Watch> watch_;  // shared with the loop, which has it until the process is reaped
};

}  // namespace fairlead
