// A component that needs no GPU, as a process that maps the stage's rings: a Python function, or a program that Python starts for it.
// It says what wire/program_frames.h has, and nothing that it says is trusted: packets are bounded, one that was not asked for ends it.
//
//   start ──> its rings ──> 'R' ──> ready ──> run ──> done ... ──> lost (once; or destroyed)
//
// A request's own inputs come in memory files, one for each call; what it writes it writes into rings. The node raises a slot's word when
// the program says that it is done: a program has no device whose stream could.
//
// Threads: the loop's. Events never come from inside a call of this class.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/lifetime.h"
#include "runtime/child_process.h"
#include "runtime/device_server/channel.h"
#include "runtime/pipeline/pipeline_program.h"
#include "runtime/pipeline/stage_worker.h"

namespace fairlead {

// How a component's program is started: in a jail, with the bundle and what the function says of memory and environment.
struct ProgramLaunch {
  std::vector<std::string> words;
  std::map<std::string, std::string> environment;
  std::shared_ptr<void> held;  // as long as the process: what it runs as, for example
  int end_signal = SIGTERM;    // ChildProcess::Options
};

class ProgramProcess final : public StageWorker {
 public:
  struct Options {
    ProgramLaunch launch;
    std::string name;        // of the component, for people
    std::size_t inputs = 0;  // buffers below are inputs, in their order; others outputs
    std::vector<std::shared_ptr<const HostRing>>
        rings;  // that it reads or writes, shared with who hands out their slots
  };
  ProgramProcess(boost::asio::io_context& io, Options options, Events events);

  void run(std::size_t component, wire::RunCall call) override;
  void drop(std::uint64_t) override {}
  void open_other(std::size_t component, const HostRing& ring) override;
  void keep_others(const std::set<std::uint64_t>& numbers) override;
  void end(std::string why) override;
  bool is_ready() const override { return is_ready_; }
  std::int64_t pid() const override { return process_ ? process_->pid() : 0; }

 private:
  Status start();
  void open(const HostRing& ring);
  void wait_for_packets();
  void on_readable();
  void on_said(std::string_view packet);
  void send(const std::string& packet, std::span<const int> descriptors = {});
  void flush();
  void finish(std::uint64_t call, wire::CallDone::Outcome outcome, std::string error);
  void on_gone(const std::string& reason);

  boost::asio::io_context& io_;
  const Options options_;
  const Events events_;
  std::optional<DeviceChannel> channel_;                         // to send on; what a stranger sends is not read by it
  std::optional<boost::asio::posix::stream_descriptor> socket_;  // a duplicate, to wait on
  std::unique_ptr<ChildProcess> process_;
  std::set<std::uint64_t> others_;
  std::optional<std::uint64_t> call_;  // that it runs
  bool is_ready_ = false, is_ending_ = false, is_flushing_ = false;
  std::string fault_;
  Lifetime life_;
};

}  // namespace fairlead
