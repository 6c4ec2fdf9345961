// The device server of one stage of a pipeline on one slice: a process of its own, with a session for each component that is a kernel task. Calls name what they
// read and write by rings, by objects that stay on the device, or bring it along.
//
//   start ──> ServerReady ──> its rings, a session for each component ──> ready ──> run ──> done ... ──> lost (once; or destroyed)
//
// No decisions here: what runs when is RequestFlow's to say. Nothing of a process is kept when it ends: who owns the stage makes another.
// It is lost once its process has been reaped, and not before: then its slice's memory is free.
//
// Threads: the loop's. Events never come from inside a call of this class.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/lifetime.h"
#include "runtime/device_servers/server_process.h"
#include "runtime/pipeline/host_ring.h"
#include "runtime/pipeline/pipeline_program.h"
#include "runtime/pipeline/stage_worker.h"

namespace fairlead {

class StageProcess final : public StageWorker {
 public:
  struct Options {
    ServerProcess::Options process;
    std::string tenant = "default";
    std::shared_ptr<const PipelineProgram> program;
    std::vector<std::size_t> components;  // of the program
    std::vector<std::shared_ptr<const HostRing>>
        rings;  // that it reads or writes, shared with who hands out their slots
  };
  StageProcess(boost::asio::io_context& io, Options options, Events events);
  ~StageProcess() override;

  // `call` holds component's buffers; its session and what of it is supplied are filled in here.
  void run(std::size_t component, wire::RunCall call) override;
  void drop(std::uint64_t object) override;
  void open_other(std::size_t component, const HostRing& ring) override;
  void keep_others(const std::set<std::uint64_t>& numbers) override;
  void end(std::string why) override;

  bool is_ready() const override { return is_ready_; }
  std::int64_t pid() const override { return process_ ? process_->pid() : 0; }
  const std::string& device() const { return device_; }

 private:
  struct Constant {
    std::uint32_t buffer = 0;
    std::uint64_t object = 0;
    std::uint64_t bytes = 0;
    std::string file;
  };
  void on_frame(wire::FrameToNode& frame);
  void on_done(wire::CallDone& done);
  Status register_session(std::size_t component);
  Status supply(const Constant& constant, std::vector<wire::SuppliedObject>& supplied, std::vector<int>& descriptors,
                std::vector<UniqueFd>& files) const;
  void open(const HostRing& ring);
  void on_gone(const std::string& reason);

  boost::asio::io_context& io_;
  const Options options_;
  const Events events_;
  std::unique_ptr<ServerProcess> process_;
  std::map<std::size_t, std::vector<Constant>> constants_;  // by component
  std::map<std::uint64_t, std::pair<std::size_t, wire::RunCall>> calls_;
  std::set<std::uint64_t> resupplied_, others_;  // calls; rings
  std::size_t sessions_ready_ = 0;
  bool is_ready_ = false, is_ending_ = false;
  std::string device_, fault_;
  Lifetime life_;
};

}  // namespace fairlead
