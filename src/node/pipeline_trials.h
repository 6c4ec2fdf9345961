// Measures a pipeline: it is called again and again, one call after the other, where it runs anyhow, and its answers are thrown away. What
// its components took there is its profile, and what plans count on from then on (decide/pipeline/component_times.h); so does every other call.
// There is no rectangle to choose: a pipeline's stages have their slices alone.
//
//   profile p ──> call ──answered──> call ... ──kCalls, or the time is over──> profile
//                   └── an error, p changes, the node drains: no profile, and the experiment says why
//
// One at a time. Threads: everything on the io_context's thread.
#pragma once

#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/lifetime.h"
#include "decide/pipeline/component_times.h"
#include "edge/scaling_service.h"
#include "model/device.h"
#include "node/functions.h"
#include "node/invocations.h"
#include "runtime/pipeline/pipeline_program.h"

namespace fairlead {

// What is seen of each component, or predicted, on each type of slice.
std::vector<ComponentTime> times_of(const ComponentTimes& times, const PipelineProgram& program);
// What was seen here before, or elsewhere on a model of GPU that is among the devices. Only of components that the program has.
void learn(ComponentTimes& times, const FunctionProfile& profile, const PipelineProgram& program,
           const std::vector<Device>& devices);
// Of the first: times of components are by types of slices, whatever the layout. "no GPU": there are no devices.
std::string model_of(const std::vector<Device>& devices);

class PipelineTrials {
 public:
  static constexpr std::uint64_t kCalls = 30;
  static constexpr Duration kLongest = std::chrono::minutes(10);
  // A profile that was measured: everything in it is set, but the model of device. `kept`: it is on disk, or why not.
  using Measured = std::function<void(FunctionProfile, std::function<void(Status)> kept)>;
  using Clock = std::function<Instant()>;

  PipelineTrials(boost::asio::io_context& io, Functions& functions, Invocations& invocations, ComponentTimes& times,
                 Measured measured, Clock clock = monotonic_now);

  // REQUIRES: the function is a pipeline. As ScalingService has it.
  Status start(const ProfileRequest& request, const RegisteredFunction& function);
  void stop(const std::string& why);         // no effect where none goes on
  void forget(const std::string& function);  // it is deleted; another one may get its name
  // The one that goes on, or went on last. Empty: there was none of it.
  std::optional<ExperimentStatus> status(const std::string& function) const;

 private:
  struct Running {
    FunctionRecord record;              // of the function, when it began
    std::vector<std::string> payloads;  // at least one
    Duration longest{0};
    std::uint64_t number = 0;  // of the experiment
    Instant began, sent;
    std::vector<Duration> latencies;
    std::string failed;
    bool is_measured = false, is_over = false;  // it is being kept; it is kept, or failed
    NodeService::CancelHandle cancel = {};      // of the call that goes on
  };
  bool is_running() const { return running_ && !running_->is_over; }
  const RegisteredFunction* unchanged();
  void send();
  void on_answer(std::uint64_t number, const Result<Outcome>& outcome);
  void finish(const PipelineProgram& program);

  boost::asio::io_context& io_;
  Functions& functions_;
  Invocations& invocations_;
  ComponentTimes& times_;
  const Measured measured_;
  const Clock clock_;
  std::optional<Running> running_;
  std::uint64_t experiments_ = 0;
  Lifetime life_;
};

}  // namespace fairlead
