#include "runtime/pipeline/stage_workers.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <utility>

#include "base/check.h"

namespace fairlead {

StageWorkers::StageWorkers(boost::asio::io_context& io, Options options, Events events)
    : io_(io), events_(std::move(events)) {
  const std::shared_ptr<const PipelineProgram> program = options.server.program;
  std::vector<std::size_t> kernels, programs;
  for (const std::size_t one : options.server.components) {
    (program->dag.components[one].needs_gpu ? kernels : programs).push_back(one);
  }
  if (!kernels.empty()) workers_.push_back({.components = kernels, .process = {}});
  for (const std::size_t one : programs) workers_.push_back({.components = {one}, .process = {}});
  for (std::size_t w = 0; w < workers_.size(); ++w) {
    const std::vector<std::size_t>& components = workers_[w].components;
    const std::size_t first = components.front();
    if (program->dag.components[first].needs_gpu) {
      StageProcess::Options server = options.server;
      server.components = components;
      server.rings = options.rings(components);
      workers_[w].process = std::make_unique<StageProcess>(io_, std::move(server), events_of(w));
      continue;
    }
    const std::string& name = program->dag.components[first].name;
    auto launch = options.launch ? options.launch(first)
                                 : fail(Errc::kUnavailable, "component {}: programs are not started here", name);
    if (!launch) {
      boost::asio::post(io_, life_.guarded([this, w, why = launch.error().message] { on_lost(w, why); }));
      continue;
    }
    workers_[w].process =
        std::make_unique<ProgramProcess>(io_,
                                         ProgramProcess::Options{.launch = *std::move(launch),
                                                                 .name = name,
                                                                 .inputs = program->tasks[first].inputs.size(),
                                                                 .rings = options.rings(components)},
                                         events_of(w));
  }
}

StageWorker::Events StageWorkers::events_of(std::size_t worker) {
  return {.ready =
              [this] {
                if (is_ready()) events_.ready();
              },
          .lost = [this, worker](const std::string& why) { on_lost(worker, why); },
          .done = [this](wire::CallDone done) { events_.done(std::move(done)); }};
}

void StageWorkers::on_lost(std::size_t worker, const std::string& why) {
  workers_[worker].is_lost = true;
  if (why_.empty()) why_ = why;
  bool are_all = true;
  for (Worker& other : workers_) {
    are_all = are_all && other.is_lost;
    if (!other.is_lost && other.process) other.process->end("another process of its stage has ended");
  }
  // Posted: whoever hears of it may destroy this, and with it the process that says it.
  if (are_all) boost::asio::post(io_, life_.guarded([this, said = why_] { events_.lost(said); }));
}

StageWorker& StageWorkers::of(std::size_t component) {
  const auto found = std::find_if(workers_.begin(), workers_.end(), [component](const Worker& worker) {
    return std::find(worker.components.begin(), worker.components.end(), component) != worker.components.end();
  });
  FL_CHECK(found != workers_.end() && found->process, "component {} is not of this stage", component);
  return *found->process;
}

void StageWorkers::drop(std::uint64_t object) {
  for (Worker& worker : workers_) {
    if (worker.process) worker.process->drop(object);
  }
}

void StageWorkers::keep_others(const std::set<std::uint64_t>& numbers) {
  for (Worker& worker : workers_) {
    if (worker.process) worker.process->keep_others(numbers);
  }
}

void StageWorkers::end(std::string why) {
  if (why_.empty()) why_ = why;
  for (Worker& worker : workers_) {
    if (worker.process && !worker.is_lost) worker.process->end(why);
  }
}

bool StageWorkers::is_ready() const {
  return std::all_of(workers_.begin(), workers_.end(),
                     [](const Worker& worker) { return worker.process && worker.process->is_ready(); });
}

std::int64_t StageWorkers::pid() const {
  for (const Worker& worker : workers_) {
    if (worker.process && worker.process->pid() > 0) return worker.process->pid();
  }
  return 0;
}

}  // namespace fairlead
