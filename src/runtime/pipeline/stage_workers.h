// The processes of one stage: a device server for those of its components that are kernel tasks, and a program for each that needs no
// GPU. To whoever runs the stage they are one: ready when all are, lost when all are gone. They end together, because a request that
// runs there needs all of them.
//
// Between two processes of a stage a tensor passes through a ring as it does between stages; between kernel tasks it stays on the device.
//
// Threads: the loop's. Events never come from inside a call of this class.
#pragma once

#include <boost/asio/io_context.hpp>
#include <memory>
#include <string>
#include <vector>

#include "runtime/pipeline/program_process.h"
#include "runtime/pipeline/stage_process.h"

namespace fairlead {

class StageWorkers final : public StageWorker {
 public:
  using Rings = std::vector<std::shared_ptr<const HostRing>>;
  struct Options {
    StageProcess::Options server;                                            // its components: those of the stage
    std::function<Rings(const std::vector<std::size_t>& components)> rings;  // that processes of these read or write
    std::function<Result<ProgramLaunch>(std::size_t component)> launch;
  };
  StageWorkers(boost::asio::io_context& io, Options options, Events events);

  void run(std::size_t component, wire::RunCall call) override { of(component).run(component, std::move(call)); }
  void drop(std::uint64_t object) override;
  void open_other(std::size_t component, const HostRing& ring) override { of(component).open_other(component, ring); }
  void keep_others(const std::set<std::uint64_t>& numbers) override;
  void end(std::string why) override;
  bool is_ready() const override;
  std::int64_t pid() const override;  // of the device server; else of the first program

 private:
  struct Worker {
    std::vector<std::size_t> components;
    std::unique_ptr<StageWorker> process;
    bool is_lost = false;
  };
  StageWorker& of(std::size_t component);
  Events events_of(std::size_t worker);
  void on_lost(std::size_t worker, const std::string& why);

  boost::asio::io_context& io_;
  const Events events_;
  std::vector<Worker> workers_;
  std::string why_;  // of the first that was lost, or why it was to end
  Lifetime life_;
};

}  // namespace fairlead
