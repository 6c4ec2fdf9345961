// One `fairlead model-server` as the node sees it: its process, its reports, its end.
//
// Threads: the loop's. Callbacks run on it, never from inside a call of this class.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/lifetime.h"
#include "base/result.h"
#include "base/unique_fd.h"
#include "runtime/child_process.h"
#include "runtime/launcher.h"
#include "runtime/model_server/frames.h"

namespace fairlead {

class ModelServerLink {
 public:
  struct Options {
    std::vector<std::string> words;  // the program and its arguments
    std::map<std::string, std::string> environment;
    Launcher launcher = {};
  };
  struct Events {
    std::function<void(const model_server::Report&, std::vector<UniqueFd>)> report;
    std::function<void(std::string reason)> gone;  // once; nothing follows
  };
  static Result<std::unique_ptr<ModelServerLink>> start(boost::asio::io_context& io, const Options& options,
                                                        Events events);
  // Destroyed, its process ends with it; nobody waits.
  ModelServerLink(const ModelServerLink&) = delete;
  ModelServerLink& operator=(const ModelServerLink&) = delete;

  void send(const model_server::Order& order);
  pid_t pid() const { return process_->pid(); }

 private:
  ModelServerLink(boost::asio::io_context& io, UniqueFd socket, Events events);
  void wait_read();
  void on_end(const std::string& reason);
  void wait_write();
  void on_readable();

  boost::asio::posix::stream_descriptor socket_;
  const Events events_;
  std::shared_ptr<void> held_;  // what its process runs as
  std::unique_ptr<ChildProcess> process_;
  std::deque<model_server::Order> unsent_;
  Lifetime life_;
};

}  // namespace fairlead
