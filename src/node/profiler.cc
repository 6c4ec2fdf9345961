#include "node/profiler.h"

#include <boost/asio/post.hpp>
#include <utility>

#include "base/clock.h"
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

Result<std::vector<std::string>> payloads_of(const ProfileRequest& request, const RegisteredFunction& function) {
  if (function.is_pipeline()) {
    return fail(Errc::kInvalidArgument,
                "{} is a pipeline; its stages have slices of their own, so that no share of a GPU can be measured",
                request.function);
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
                   Invocations& invocations, Instances& instances, DeviceOf device_of, Measured measured)
    : io_(io),
      control_(control),
      functions_(functions),
      invocations_(invocations),
      instances_(instances),
      device_of_(std::move(device_of)),
      measured_(std::move(measured)),
      timer_(io) {}

FunctionRecord Profiler::trial_record(const FunctionRecord& record, bool is_kernel_task, const ProfilePoint& at) {
  FunctionRecord trial = record;
  trial.name = trial_name(record.name);
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
  if (request.trial_seconds > 0) settings.least = settings.most = from_seconds(request.trial_seconds);
  Status admitted;
  for (const int quota : kQuotas) {
    FunctionRecord record =
        trial_record(function.record, is_kernel_task, {.width_percent = 100, .quota_percent = quota});
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
                           .device = ""});
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
  const auto at = running_->experiment.next_trial(monotonic_now());
  if (!at) return finish();
  if (Status begun = begin_trial(*at); !begun) {
    running_->experiment.fail(begun.error().message);
    return finish();
  }
  send();
}

Status Profiler::begin_trial(const ProfilePoint& at) {
  const RegisteredFunction* const now = functions_.find(running_->record.name);
  if (now == nullptr || now->record.revision_id != running_->record.revision_id) {
    return fail(Errc::kConflict, "function {} was changed or deleted meanwhile", running_->record.name);
  }
  const FunctionRecord record = trial_record(running_->record, running_->kernel_task != nullptr, at);
  if (Status added = control_.add_trial(record, running_->kernel_task); !added) return added;
  running_->has_trial = true;
  running_->trial = ++trials_;
  const auto share = control_.shares().entry(record.name);
  const auto device = share && !share->seats.empty() ? device_of_(share->seats.front()) : std::nullopt;
  if (device) running_->device = device->name;
  return {};
}

void Profiler::end_trial() {
  if (!std::exchange(running_->has_trial, false)) return;
  running_->trial = 0;
  control_.remove_trial(trial_name(running_->record.name));
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

void Profiler::send() {
  const RegisteredFunction* const trial = functions_.find(trial_name(running_->record.name));
  if (trial == nullptr) return;
  running_->sent = monotonic_now();
  InvokeRequest request;
  request.invocation.function = trial->record.name;
  request.invocation.payload = running_->payloads[running_->next_payload++ % running_->payloads.size()];
  // Never from inside the call that it answers: what follows may remove the function.
  invocations_.invoke(*trial, std::move(request), [this, number = running_->trial](Result<Outcome> outcome) {
    if (outcome) outcome->payload.resize(std::min(outcome->payload.size(), outcome->failed() ? kMaxQuoted : 0));
    boost::asio::post(io_, [this, number, outcome = std::move(outcome)] { on_answer(number, outcome); });
  });
}

void Profiler::on_answer(std::uint64_t trial, const Result<Outcome>& outcome) {
  if (!is_running() || running_->trial != trial) return;
  const Instant now = monotonic_now();
  note_use();
  if (!outcome || outcome->failed()) {
    running_->experiment.fail("a call of a trial failed: " + why_failed(outcome));
  } else {
    running_->experiment.answered(now, now - running_->sent);
    running_->experiment.look(now);
  }
  if (running_->experiment.state() > ProfileExperiment::State::kIdle &&
      running_->experiment.state() < ProfileExperiment::State::kEnded) {
    return send();
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
    running_->experiment.look(monotonic_now());
    go_on();
    look();
  });
}

void Profiler::note_use() {
  const RegisteredFunction* const trial = functions_.find(trial_name(running_->record.name));
  if (trial == nullptr) return;
  for (const auto& [id, live] : instances_.all()) {
    if (live.flow != trial->flow) continue;
    if (const auto use = live.runner->use(id)) running_->experiment.used(use->memory.held, use->gpu_time);
  }
}

}  // namespace fairlead
