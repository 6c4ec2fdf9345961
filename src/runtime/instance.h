// One live instance as the node sees it: its Runtime API server, its log, its process. Joins the pure state machine
// (runtime_api.h) to sockets; the sandbox itself is the spawner's.
//
// Threads: everything on the io_context's thread.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/lifetime.h"
#include "base/result.h"
#include "base/unique_fd.h"
#include "net/http_server.h"
#include "runtime/instance_host.h"
#include "runtime/instance_log.h"
#include "runtime/runtime_api.h"
#include "runtime/seccomp_filter.h"
#include "runtime/spawn_protocol.h"

namespace fairlead {

// What an instance needs of its host. Outlives it.
struct InstanceContext {
  boost::asio::io_context& io;
  const InstanceHostOptions& options;
  const InstanceEvents& events;
  std::function<void()> log_written;  // the function's log has bytes to flush
  const SeccompPrograms& seccomp;     // for containers; the spawner has its own
};

class Instance {
 public:
  // log_file is shared by the function's instances and lives as long as the last of them.
  Instance(const InstanceContext& context, InstanceSpec spec, std::shared_ptr<FunctionLog> log_file);
  ~Instance();
  Instance(const Instance&) = delete;
  Instance& operator=(const Instance&) = delete;

  // Makes the unix socket and the log pipe. The order's only descriptor is the pipe's other end.
  Result<UniqueFd> open();
  StartOrder order() const;
  void started(std::int64_t pid, UniqueFd pidfd, UniqueFd listener, UniqueFd memory_peak);

  void deliver(DeliverRequest request);  // REQUIRES: it waits in `next`
  void kill();
  InstanceStats stats() const;

  // The spawner has ended, so the sandbox ends: ended() once it has, or after 5 s.
  void lost(ExitNote note, std::function<void(ExitInfo)> done);

  // The sandbox has ended. Takes in what it had still sent, then calls `done`, once, never from inside this call.
  void ended(ExitNote note, std::function<void(ExitInfo)> done);

 private:
  void on_call(net::HttpExchange exchange);
  void on_poll(net::HttpExchange exchange, bool announce);
  std::shared_ptr<net::BodySink> sink_for(net::HttpRequest& head);
  void on_stream_end(net::HttpExchange& exchange);
  void on_stream_cut(std::string_view why);
  void finish(Answer answer);
  void on_answer(net::HttpExchange& exchange, const RuntimeDecision& decision);
  void on_init_error(std::string payload);
  void send_delivery(net::HttpExchange& exchange);
  void end_invocation(std::string_view failure);
  Bytes memory_peak() const;

  void wait_for_log();
  bool drain_log(std::size_t limit);
  void finish_when_drained(int tries);
  ExitInfo exit_info() const;

  const InstanceContext& context_;
  const InstanceSpec spec_;
  std::shared_ptr<FunctionLog> log_file_;
  InstanceLog log_;
  RuntimeApi api_;
  net::HttpServer server_;
  net::HttpExchange poll_;  // the `next` call that waits
  DeliverRequest current_;
  Instant started_at_;
  // Of the running one, or the last.
  struct Delivered {
    Instant at{};
    std::optional<Duration> first_byte;  // of its answer, since then; none: it has none yet, or is not streamed
  } delivered_;
  Duration init_duration_{0};  // until the first REPORT has shown it
  std::string socket_path_;
  boost::asio::posix::stream_descriptor log_pipe_;
  boost::asio::steady_timer timer_;       // the log's pause, later the drain at the end
  boost::asio::steady_timer kill_timer_;  // after an init error
  UniqueFd pidfd_;
  UniqueFd memory_peak_;
  struct Init {
    std::int64_t pid = 0;
    std::optional<std::uint32_t> uid;  // of the host, until it has ended; empty: it shares one
  } init_;
  std::int64_t function_pid_ = 0;
  bool kill_wanted_ = false;
  std::string init_error_;
  ExitNote exit_note_;
  std::function<void(ExitInfo)> done_;
  Lifetime life_;
};

}  // namespace fairlead
