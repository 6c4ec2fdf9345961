// Carries experiments out (decide/scaling/profile_experiment.h): for each trial a function of its own, which no client can call and no disk
// knows, with a seat of the trial's rectangle; one request of it after the other, whose answers are thrown away.
//
//   profile f ──> f#trial, 100 % x 97 % ──admitted as any share──> seat ──> calls ──> removed ──> f#trial, 24 % x 97 % ...
//                        └── no room, an error, f changes, the node drains: removed, and the experiment says why
//
// At the end, where the node runs MPS and has room for two on one device, a trial has a copy beside it: a function f#beside, with a seat of the same
// rectangle there and calls of its own. Where either of the two fails, or there is no room, the experiment ends well without that comparison.
//
// What is beside it on the device is not disturbed beyond what the trial was admitted with, and a trial with less than the whole time is what
// a busy device has room for. One experiment at a time. The node's end leaves nothing: nothing of a trial is on disk.
//
// Threads: everything on the io_context's thread.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "decide/scaling/profile_experiment.h"
#include "edge/scaling_service.h"
#include "node/function_control.h"
#include "node/functions.h"
#include "node/instances.h"
#include "node/invocations.h"

namespace fairlead {

inline constexpr char kTrialMark = '#';  // in names of trials; no function's name has it
inline bool is_trial(const std::string& function) {
  return function.find(kTrialMark) != std::string::npos;
}

class Profiler {
 public:
  using DeviceOf = std::function<std::optional<Device>(GpuId)>;
  // A profile that was measured: everything in it is set.
  using Measured = std::function<void(FunctionProfile)>;
  using Clock = std::function<Instant()>;

  Profiler(boost::asio::io_context& io, FunctionControl& control, Functions& functions, Invocations& invocations,
           Instances& instances, DeviceOf device_of, Measured measured, Clock clock = monotonic_now);

  // As ScalingService has it. `has_widths`: the node runs MPS.
  Status start(const ProfileRequest& request, bool has_widths);
  void stop(const std::string& why);  // no effect where none goes on
  bool is_running() const { return running_.has_value() && !running_->is_over; }
  // The one that goes on, or went on last. Empty: there was none of it.
  std::optional<ExperimentStatus> status(const std::string& function) const;

 private:
  // A function of a trial, and the request of it that goes on.
  struct Copy {
    std::string name;
    std::uint64_t number = 0;  // counts, so that an answer of an earlier one is known; 0: it is not there
    std::size_t next_payload = 0;
    Instant sent{};
  };
  struct Running {
    FunctionRecord record;  // of the function, when it began
    std::shared_ptr<const BundledTask> kernel_task;
    std::vector<std::string> payloads;  // at least one; each copy sends them in turn
    ProfileExperiment experiment;
    std::string device;  // model, once a trial has a seat
    bool is_over = false;
    Copy trial, beside;
  };

  Result<ExperimentSettings> settings_for(const ProfileRequest& request, const RegisteredFunction& function,
                                          bool has_widths);
  static FunctionRecord trial_record(const FunctionRecord& record, std::string name, bool is_kernel_task,
                                     const ProfilePoint& at);
  void next_trial();
  bool is_changed() const;
  Status begin_trial(const ProfilePoint& at);
  bool are_beside_each_other() const;
  Status hold_two_seats(const ProfilePoint& at);
  Status add_copy(Copy& copy, const ProfilePoint& at);
  void remove_copy(Copy& copy);
  void end_trial();
  void finish();
  void send(Copy& copy);
  void on_answer(std::uint64_t number, const Result<Outcome>& outcome);
  void look();
  void go_on();
  void note_use();

  boost::asio::io_context& io_;
  FunctionControl& control_;
  Functions& functions_;
  Invocations& invocations_;
  Instances& instances_;
  const DeviceOf device_of_;
  const Measured measured_;
  const Clock clock_;
  boost::asio::steady_timer timer_;
  std::optional<Running> running_;
  std::uint64_t copies_ = 0;  // so far
};

}  // namespace fairlead
