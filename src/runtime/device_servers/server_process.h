// One `fairlead device-server` as the node sees it: its process, its frames, its end. Destroyed, its process ends with it; nobody waits.
//
// Threads: the loop's. Callbacks run on it, never from inside a call of this class.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/lifetime.h"
#include "base/result.h"
#include "runtime/child_process.h"
#include "runtime/device_server/channel.h"
#include "runtime/launcher.h"
#include "wire/device_frames.h"

namespace fairlead {

class ServerProcess {
 public:
  struct Options {
    std::string program;                 // `fairlead`
    std::vector<std::string> arguments;  // of its subcommand device-server
    std::map<std::string, std::string> environment;
    Launcher launcher = {};
  };
  struct Events {
    std::function<void(wire::FrameToNode)> frame;
    std::function<void(std::string reason)> gone;  // once; nothing follows
  };
  static Result<std::unique_ptr<ServerProcess>> start(boost::asio::io_context& io, const Options& options,
                                                      Events events);

  void send(const wire::FrameToServer& frame, std::span<const int> descriptors = {});
  void kill() { process_->kill(); }              // -9 to the server; gone() follows
  pid_t pid() const { return process_->pid(); }  // in a jail the one outside, which ends as the server ended

 private:
  ServerProcess(boost::asio::io_context& io, UniqueFd socket, Events events);
  void wait_for_frames();
  void on_end(const std::string& reason);
  void take_frames(int most);
  void flush();

  DeviceChannel channel_;
  boost::asio::posix::stream_descriptor socket_;  // a duplicate, to wait on
  const Events events_;
  std::shared_ptr<void> held_;  // before the process, which ends first
  std::unique_ptr<ChildProcess> process_;
  bool flushing_ = false;
  Lifetime life_;
};

}  // namespace fairlead
