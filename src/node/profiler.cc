#include "node/profiler.h"

#include <boost/asio/post.hpp>
#include <utility>

#include "base/log.h"
#include "model/autoscale_tag.h"
#include "model/samples_tag.h"
#include "node/generated_call.h"

namespace fairlead {
namespace {

constexpr Duration kLook = std::chrono::milliseconds(20);
constexpr int kQuotas[] = {97, 90, 80, 70, 60, 50, 40, 30, 20};  // per cent of the time: what is tried for a trial
constexpr std::size_t kMaxQuoted = 200;

std::string trial_name(const std::string& function) {
  return function + kTrialMark + "trial";
}
std::string beside_name(const std::string& function) {
  return function + kTrialMark + "beside";
}
std::string filler_name(const std::string& function, std::size_t number) {
  return fmt::format("{}{}filler{}", function, kTrialMark, number);
}

std::string why_alone(const ProfileRequest& request, bool is_kernel_task, bool has_widths) {
  if (request.is_alone) return "its caller wants it alone";
  if (is_kernel_task) return "a kernel task is as wide as its kernels";
  return has_widths ? "" : "the node does not run MPS (--sharing mps)";
}

Result<std::vector<std::string>> payloads_of(const ProfileRequest& request, const RegisteredFunction& function) {
  if (function.is_pipeline()) {
    return fail(Errc::kInvalidArgument, "{} is a pipeline, which has no rectangles to measure", request.function);
  }
  if (request.is_generated && !function.kernel_task) {
    return fail(
        Errc::kInvalidArgument,
        "{} is a program, and only its author knows what it takes: --sample is missing, a file with the payload "
        "that trials send",
        request.function);
  }
  if (request.is_generated) {
    auto call = generated_call(function.kernel_task->spec->task);
    if (!call) return fail(call.error());
    return std::vector<std::string>{*std::move(call)};
  }
  std::vector<std::string> payloads{request.payload};
  payloads.insert(payloads.end(), request.more_payloads.begin(), request.more_payloads.end());
  return payloads;
}

std::string why_failed(const Result<Outcome>& outcome) {
  if (!outcome) return outcome.error().message;
  const std::string said = outcome->payload.empty() ? outcome->failure.text : outcome->payload;
  return said.substr(0, kMaxQuoted);
}

}  // namespace

Profiler::Profiler(boost::asio::io_context& io, FunctionControl& control, Functions& functions,
                   Invocations& invocations, Instances& instances, DeviceOf device_of, Measured measured, Clock clock)
    : io_(io),
      control_(control),
      functions_(functions),
      invocations_(invocations),
      instances_(instances),
      device_of_(std::move(device_of)),
      measured_(std::move(measured)),
      clock_(std::move(clock)),
      timer_(io) {}

FunctionRecord Profiler::trial_record(const FunctionRecord& record, std::string name, bool is_kernel_task,
                                      const ProfilePoint& at) {
  FunctionRecord trial = record;
  trial.name = std::move(name);
  trial.seats.clear();
  trial.reserved_concurrency.reset();
  std::map<std::string, std::string>& tags = trial.config.tags;
  tags.erase(std::string(kAutoscaleTag));
  tags.erase("gpu:objective-ms");
  tags.erase(std::string(kSamplesTag));
  tags["gpu:quota-request"] = tags["gpu:quota-limit"] = std::to_string(at.quota_percent);
  if (!is_kernel_task) tags["gpu:compute-percent"] = std::to_string(at.width_percent);  // it is as wide as it is
  tags["gpu:replicas"] = "1:1";
  return trial;
}

// How much of the time a trial may have: as much as there is.
Result<ExperimentSettings> Profiler::settings_for(const ProfileRequest& request, const RegisteredFunction& function,
                                                  bool has_widths) {
  const GpuSettings gpu = gpu_settings(function.record.config).value_or(GpuSettings());
  const bool is_kernel_task = function.kernel_task != nullptr;
  ExperimentSettings settings{.is_grid = request.is_grid, .has_widths = has_widths && !is_kernel_task};
  if (gpu.objective_ms) settings.terms.objective = std::chrono::milliseconds(*gpu.objective_ms);
  settings.said_memory = settings.terms.memory = gpu.share.memory.value_or(Bytes(0));
  settings.why_alone = why_alone(request, is_kernel_task, has_widths);
  if (request.trial_seconds > 0) settings.least = settings.most = from_seconds(request.trial_seconds);
  Status admitted;
  for (const int quota : kQuotas) {
    FunctionRecord record = trial_record(function.record, trial_name(function.record.name), is_kernel_task,
                                         {.width_percent = 100, .quota_percent = quota});
    admitted = control_.shares().admit(record, is_kernel_task);
    control_.shares().release(record.name);
    if (!admitted) continue;
    settings.most_quota = quota;
    return settings;
  }
  return fail(Errc::kInvalidArgument, "no GPU has room for a trial of {}: {}", function.record.name,
              admitted.error().message);
}

Status Profiler::start(const ProfileRequest& request, bool has_widths) {
  const auto function = functions_.get(request.function);
  if (!function) return fail(function.error());
  if (is_running()) {
    // Whose it is, is nobody else's business.
    if (running_->record.name != request.function) {
      return fail(
          Errc::kConflict,
          "an experiment on another function goes on, and there is one at a time on a node; it ends within {:.0f} "
          "minutes: try again then",
          to_seconds(ExperimentSettings().longest) / 60);
    }
    return fail(
        Errc::kConflict,
        "an experiment on {} goes on, and there is one at a time: {}; try again when it has ended, or fairlead profile "
        "stop {}",
        request.function, running_->experiment.doing(), request.function);
  }
  auto payloads = payloads_of(request, **function);
  if (!payloads) return fail(payloads.error());
  auto settings = settings_for(request, **function, has_widths);
  if (!settings) return fail(settings.error());
  running_.emplace(Running{.record = (*function)->record,
                           .kernel_task = (*function)->kernel_task,
                           .payloads = *std::move(payloads),
                           .experiment = ProfileExperiment(*settings),
                           .device = "",
                           .trial = {.name = trial_name(request.function)},
                           .beside = {.name = beside_name(request.function)}});
  spdlog::info("experiment on function {}: up to {} trials, at most {} % of a GPU's time", request.function,
               running_->experiment.most_trials(), settings->most_quota);
  next_trial();
  look();
  return {};
}

void Profiler::stop(const std::string& why) {
  if (!is_running()) return;
  running_->experiment.fail(why);
  finish();
}

std::optional<ExperimentStatus> Profiler::status(const std::string& function) const {
  if (!running_ || running_->record.name != function) return std::nullopt;
  const ProfileExperiment& experiment = running_->experiment;
  return ExperimentStatus{.function = function,
                          .is_running = !running_->is_over,
                          .state = std::string(name_of(experiment.state())),
                          .doing = experiment.doing(),
                          .failed = experiment.failed(),
                          .trials = experiment.trials(),
                          .calls = experiment.calls()};
}

void Profiler::next_trial() {
  ProfileExperiment& experiment = running_->experiment;
  while (const auto at = experiment.next_trial(clock_())) {
    if (is_changed()) {
      experiment.fail(fmt::format("function {} was changed or deleted meanwhile", running_->record.name));
      break;
    }
    if (Status begun = begin_trial(*at); !begun) {
      end_trial();
      for (const Copy* copy : {&running_->trial, &running_->beside})
        control_.shares().release(copy->name);  // a seat that was held first
      experiment.give_trial_up(begun.error().message);
      continue;
    }
    send(running_->trial);
    if (running_->beside.number > 0) send(running_->beside);
    return;
  }
  finish();
}

bool Profiler::is_changed() const {
  const RegisteredFunction* const now = functions_.find(running_->record.name);
  return now == nullptr || now->record.revision_id != running_->record.revision_id;
}

Status Profiler::begin_trial(const ProfilePoint& at) {
  const bool has_neighbour = running_->experiment.has_neighbour();
  if (has_neighbour) {
    if (Status held = hold_two_seats(at); !held) return held;
  }
  if (Status added = add_copy(running_->trial, at); !added) return added;
  if (has_neighbour) return add_copy(running_->beside, at);
  const auto share = control_.shares().entry(running_->trial.name);
  const auto device = share && !share->seats.empty() ? device_of_(share->seats.front()) : std::nullopt;
  if (device) running_->device = device->name;
  return {};
}

// And on the model of device that trials alone were on.
bool Profiler::are_beside_each_other() const {
  const ShareBook::Seats seats = control_.shares().entry(running_->trial.name)->seats;
  if (seats != control_.shares().entry(running_->beside.name)->seats) return false;
  const auto device = device_of_(seats.front());
  return device && device->name == running_->device;
}

// Seats go to the first device with room. So a device with room for one alone is filled meanwhile: the next pair is tried behind that device.
Status Profiler::hold_two_seats(const ProfilePoint& at) {
  Shares& shares = control_.shares();
  const auto hold = [&](const std::string& name) {
    FunctionRecord record = trial_record(running_->record, name, false, at);
    return shares.admit(record, false);
  };
  std::vector<std::string> fillers;
  Status held;
  while (true) {
    for (const Copy* const copy : {&running_->trial, &running_->beside}) {
      if (held) held = hold(copy->name);
    }
    if (!held) break;
    if (are_beside_each_other()) break;
    shares.release(running_->trial.name);
    shares.release(running_->beside.name);
    fillers.push_back(filler_name(running_->record.name, fillers.size()));
    if (held = hold(fillers.back()); !held) break;
  }
  for (const std::string& filler : fillers) shares.release(filler);
  if (held) return {};
  shares.release(running_->trial.name);
  shares.release(running_->beside.name);
  return fail(held.error().code, "no GPU has room for two of {} % of the SMs x {} % of the time: {}", at.width_percent,
              at.quota_percent, held.error().message);
}

Status Profiler::add_copy(Copy& copy, const ProfilePoint& at) {
  const bool is_kernel_task = running_->kernel_task != nullptr;
  const FunctionRecord record = trial_record(running_->record, copy.name, is_kernel_task, at);
  if (Status added = control_.add_trial(record, running_->kernel_task); !added) return added;
  copy.number = ++copies_;
  copy.next_payload = 0;  // a trial beside a copy sends what the trial alone sent
  return {};
}

void Profiler::remove_copy(Copy& copy) {
  if (std::exchange(copy.number, 0) > 0) control_.remove_trial(copy.name);
}

void Profiler::end_trial() {
  remove_copy(running_->beside);
  remove_copy(running_->trial);
}

void Profiler::finish() {
  end_trial();
  if (std::exchange(running_->is_over, true)) return;
  timer_.cancel();
  running_->payloads.clear();
  running_->kernel_task.reset();
  const ProfileExperiment& experiment = running_->experiment;
  if (!experiment.failed().empty()) {
    spdlog::warn("experiment on function {} ended after {} trials: {}", running_->record.name,
                 experiment.trials().size(), experiment.failed());
    return;
  }
  FunctionProfile profile = experiment.profile();
  profile.function = running_->record.name;
  profile.code_sha256 = running_->record.code_sha256;
  profile.device = running_->device;
  profile.measured_ms = wall_clock_ms();
  spdlog::info("function {} is profiled by {} trials: {}", profile.function, profile.trials.size(), profile.ended);
  measured_(std::move(profile));
}

void Profiler::send(Copy& copy) {
  const RegisteredFunction* const function = functions_.find(copy.name);
  if (function == nullptr) return;
  copy.sent = clock_();
  InvokeRequest request;
  request.invocation.function = function->record.name;
  request.invocation.payload = running_->payloads[copy.next_payload++ % running_->payloads.size()];
  // Never from inside the call that it answers: what follows may remove the function.
  invocations_.invoke(*function, std::move(request), [this, number = copy.number](Result<Outcome> outcome) {
    if (outcome) outcome->payload.resize(std::min(outcome->payload.size(), outcome->failed() ? kMaxQuoted : 0));
    boost::asio::post(io_, [this, number, outcome = std::move(outcome)] { on_answer(number, outcome); });
  });
}

void Profiler::on_answer(std::uint64_t number, const Result<Outcome>& outcome) {
  if (!is_running()) return;
  const bool is_beside = number == running_->beside.number;
  if (!is_beside && number != running_->trial.number) return;
  Copy& copy = is_beside ? running_->beside : running_->trial;
  ProfileExperiment& experiment = running_->experiment;
  const Instant now = clock_();
  note_use();
  if (!outcome || outcome->failed()) {
    const char* const whose = is_beside ? "a call of the copy beside it failed: " : "a call of a trial failed: ";
    experiment.give_trial_up(whose + why_failed(outcome));
  } else {
    is_beside ? experiment.neighbour_answered(now) : experiment.answered(now, now - copy.sent);
    experiment.look(now);
  }
  if (experiment.state() > ProfileExperiment::State::kIdle && experiment.state() < ProfileExperiment::State::kEnded) {
    return send(copy);
  }
  go_on();
}

// A trial is over, or all.
void Profiler::go_on() {
  if (running_->experiment.state() == ProfileExperiment::State::kEnded) return finish();
  if (running_->experiment.state() != ProfileExperiment::State::kIdle) return;
  end_trial();
  next_trial();
}

// Of what answers nothing.
void Profiler::look() {
  if (!is_running()) return;
  timer_.expires_after(kLook);
  timer_.async_wait([this](const boost::system::error_code& error) {
    if (error || !is_running()) return;
    note_use();
    running_->experiment.look(clock_());
    go_on();
    look();
  });
}

void Profiler::note_use() {
  const RegisteredFunction* const trial = functions_.find(running_->trial.name);
  if (trial == nullptr) return;
  for (const auto& [id, live] : instances_.all()) {
    if (live.flow != trial->flow) continue;
    if (const auto use = live.runner->use(id)) running_->experiment.used(use->memory.held, use->gpu_time);
  }
}

}  // namespace fairlead
