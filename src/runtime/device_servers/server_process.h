// One `fairlead device-server` as the node sees it: its process, its frames, its end.
//
// Threads: the loop's. Callbacks run on it, never from inside a call of this class.
#pragma once

#include <sys/types.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "runtime/device_server/channel.h"
#include "wire/device_frames.h"

namespace fairlead {

class ServerProcess {
 public:
  struct Options {
    std::string program;                 // `fairlead`
    std::vector<std::string> arguments;  // of its subcommand device-server
    std::map<std::string, std::string> environment;
  };
  struct Events {
    std::function<void(wire::FrameToNode)> frame;
    std::function<void(std::string reason)> gone;  // once; nothing follows
  };
  static Result<std::unique_ptr<ServerProcess>> start(boost::asio::io_context& io, const Options& options,
                                                      Events events);
  ~ServerProcess();  // kill -9

  void send(const wire::FrameToServer& frame, std::span<const int> descriptors = {});
  void kill();  // -9; gone() follows
  pid_t pid() const { return pid_; }

 private:
  ServerProcess(boost::asio::io_context& io, pid_t pid, UniqueFd pid_descriptor, UniqueFd socket, Events events);
  void wait_for_frames();
  void wait_for_end();
  void on_readable();
  void flush();

  DeviceChannel channel_;
  boost::asio::posix::stream_descriptor socket_;  // a duplicate, to wait on
  boost::asio::posix::stream_descriptor end_;     // pidfd
  const Events events_;
  pid_t pid_;
  bool flushing_ = false;
  bool reaped_ = false;
  std::shared_ptr<int> alive_ = std::make_shared<int>(0);
};

}  // namespace fairlead
