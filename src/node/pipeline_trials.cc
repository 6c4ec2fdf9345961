#include "node/pipeline_trials.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <cmath>
#include <map>
#include <utility>

#include "base/log.h"
#include "node/generated_call.h"

namespace fairlead {
namespace {

constexpr std::size_t kMaxQuoted = 200;

// One call after the other.
MeasuredTrial trial_of(std::vector<Duration> latencies) {
  if (latencies.size() > 1) latencies.erase(latencies.begin());  // with the wait for slices, and for the start there
  std::sort(latencies.begin(), latencies.end());
  const auto count = static_cast<double>(latencies.size());
  double sum = 0, squares = 0;
  for (const Duration latency : latencies) sum += to_seconds(latency);
  const double mean = std::max(sum / count, 1e-9);
  for (const Duration latency : latencies) squares += std::pow(to_seconds(latency) - mean, 2);
  const auto at = [&](double part) { return latencies[static_cast<std::size_t>(part * (count - 1))]; };
  return {.rate_per_s = 1 / mean,
          .error = std::clamp(std::sqrt(squares) / count / mean, 1e-6, 10.0),
          .p50_ms = to_ms(at(0.5)),
          .p99_ms = to_ms(at(0.99)),
          .utilisation = 0,
          .memory = Bytes(0),
          .requests = latencies.size(),
          .why = "a pipeline is measured on the slices that it has"};
}

// "NVIDIA A100-SXM4-80GB MIG 2g.20gb" is a slice of one.
std::string model_named(const Device& device) {
  return device.name.substr(0, device.name.find(" MIG "));
}

}  // namespace

std::vector<ComponentTime> times_of(const ComponentTimes& times, const PipelineProgram& program) {
  std::vector<ComponentTime> all;
  const Dag dag = times.applied(program.dag, program.kinds());
  for (std::size_t c = 0; c < dag.components.size(); ++c) {
    const Component& component = dag.components[c];
    const std::string& content = program.tasks[c].kind.content;
    if (!component.needs_gpu || content.empty()) continue;
    for (const SliceTime& time : component.times) {
      if (all.size() >= kMaxComponentTimes) return all;
      all.push_back({.component = component.name,
                     .slice = time.slice,
                     .ms = to_ms(time.mean),
                     .deviation_ms = to_ms(time.deviation),
                     .runs = times.seen(content, time.slice) ? time.seen : 0});
    }
  }
  return all;
}

std::string model_of(const std::vector<Device>& devices) {
  return devices.empty() ? "no GPU" : model_named(devices.front());
}

void learn(ComponentTimes& times, const FunctionProfile& profile, const PipelineProgram& program,
           const std::vector<Device>& devices) {
  const bool is_here = std::any_of(devices.begin(), devices.end(),
                                   [&](const Device& device) { return model_named(device) == profile.device; });
  std::map<std::pair<std::string, std::string>, const ComponentTime*> told;
  for (const ComponentTime& one : profile.components) {
    if (is_here && one.runs >= ComponentTimes::kEnough) told[{one.component, one.slice}] = &one;
  }
  for (std::size_t c = 0; c < program.tasks.size(); ++c) {
    const Component& component = program.dag.components[c];
    for (const SliceTime& time : component.times) {
      const auto known = told.find({component.name, time.slice});
      if (known == told.end() || program.tasks[c].kind.content.empty()) continue;
      const ComponentTime& one = *known->second;
      times.learn(
          program.tasks[c].kind.content, one.slice,
          {.mean = from_seconds(one.ms / 1e3), .deviation = from_seconds(one.deviation_ms / 1e3), .runs = one.runs});
    }
  }
}

PipelineTrials::PipelineTrials(boost::asio::io_context& io, Functions& functions, Invocations& invocations,
                               ComponentTimes& times, Measured measured, Clock clock)
    : io_(io),
      functions_(functions),
      invocations_(invocations),
      times_(times),
      measured_(std::move(measured)),
      clock_(std::move(clock)) {}

Status PipelineTrials::start(const ProfileRequest& request, const RegisteredFunction& function) {
  if (is_running()) {
    return fail(Errc::kConflict,
                "an experiment on a pipeline goes on, and there is one at a time; it ends within {:.0f} minutes: try "
                "again then",
                to_seconds(kLongest) / 60);
  }
  if (request.is_alone || request.is_grid) {
    return fail(
        Errc::kInvalidArgument,
        "grid, alone: {} is a pipeline; its stages have slices of their own, so there are no rectangles to measure",
        request.function);
  }
  std::vector<std::string> payloads = request.more_payloads;
  if (request.is_generated) {
    auto call = generated_call(function.kernel_task->pipeline->interface);
    if (!call) return fail(call.error());
    payloads = {*std::move(call)};
  } else {
    payloads.insert(payloads.begin(), request.payload);
  }
  running_.emplace(Running{.record = function.record,
                           .payloads = std::move(payloads),
                           .longest = request.trial_seconds > 0 ? from_seconds(request.trial_seconds) : kLongest,
                           .number = ++experiments_,
                           .began = clock_(),
                           .sent = {},
                           .latencies = {},
                           .failed = {}});
  spdlog::info("experiment on pipeline {}: up to {} calls", request.function, kCalls);
  send();
  return {};
}

void PipelineTrials::stop(const std::string& why) {
  if (!is_running()) return;
  if (running_->is_measured) return;
  running_->failed = why;
  running_->is_over = true;
  if (running_->cancel) std::exchange(running_->cancel, nullptr)();  // it waits for slices no longer
  running_->payloads.clear();
  spdlog::warn("experiment on pipeline {} ended after {} calls: {}", running_->record.name, running_->latencies.size(),
               why);
}

std::optional<ExperimentStatus> PipelineTrials::status(const std::string& function) const {
  if (!running_ || running_->record.name != function) return std::nullopt;
  const std::size_t calls = running_->latencies.size();
  return ExperimentStatus{
      .function = function,
      .is_running = !running_->is_over,
      .state = running_->is_over ? "ended" : "measures",
      .doing = running_->is_over ? "on the slices that it has"
                                 : fmt::format("call {} of {}", std::min<std::uint64_t>(calls + 1, kCalls), kCalls),
      .failed = running_->failed,
      .trials = {},
      .calls = calls};
}

// Null: it is not there any more as it was, and the experiment is over.
const RegisteredFunction* PipelineTrials::unchanged() {
  const RegisteredFunction* const function = functions_.find(running_->record.name);
  const bool is_it =
      function != nullptr && function->is_pipeline() && function->record.revision_id == running_->record.revision_id;
  if (!is_it) stop(fmt::format("function {} was changed or deleted meanwhile", running_->record.name));
  return is_it ? function : nullptr;
}

void PipelineTrials::send() {
  const RegisteredFunction* const function = unchanged();
  if (function == nullptr) return;
  running_->sent = clock_();
  InvokeRequest request;
  request.invocation.function = function->record.name;
  const auto left =
      std::chrono::duration_cast<std::chrono::milliseconds>(running_->longest - (clock_() - running_->began));
  request.invocation.deadline_ms = wall_clock_ms() + std::max<std::int64_t>(1, left.count());
  request.invocation.payload = running_->payloads[running_->latencies.size() % running_->payloads.size()];
  // Never from inside the call that it answers.
  running_->cancel = invocations_.invoke(
      *function, std::move(request), [this, number = running_->number, life = life_.watch()](Result<Outcome> outcome) {
        if (life.ended()) return;
        if (outcome) outcome->payload.resize(std::min(outcome->payload.size(), outcome->failed() ? kMaxQuoted : 0));
        boost::asio::post(io_,
                          life_.guarded([this, number, outcome = std::move(outcome)] { on_answer(number, outcome); }));
      });
}

void PipelineTrials::on_answer(std::uint64_t number, const Result<Outcome>& outcome) {
  if (!is_running() || running_->number != number) return;
  if (!outcome) return stop("a call failed: " + outcome.error().message);
  if (outcome->failed()) {
    const std::string& said = outcome->payload.empty() ? outcome->failure.text : outcome->payload;
    return stop("a call failed: " + said.substr(0, kMaxQuoted));
  }
  running_->cancel = nullptr;
  running_->latencies.push_back(clock_() - running_->sent);
  const bool is_late = clock_() - running_->began >= running_->longest;
  if (running_->latencies.size() < kCalls && !is_late) return send();
  if (const RegisteredFunction* const function = unchanged()) finish(*function->kernel_task->pipeline);
}

void PipelineTrials::finish(const PipelineProgram& program) {
  running_->is_measured = true;
  running_->payloads.clear();
  FunctionProfile profile{.function = running_->record.name,
                          .code_sha256 = running_->record.code_sha256,
                          .device = {},
                          .trials = {trial_of(running_->latencies)},
                          .ended = fmt::format("it was called {} times", running_->latencies.size()),
                          .measured_ms = wall_clock_ms()};
  profile.components = times_of(times_, program);
  measured_(std::move(profile), life_.guarded([this, number = running_->number](const Status& kept) {
    if (!running_ || running_->number != number) return;
    running_->is_over = true;
    if (!kept) running_->failed = "the profile is not on disk: " + kept.error().message;
  }));
}

void PipelineTrials::forget(const std::string& function) {
  if (running_ && running_->record.name == function) stop("the function was deleted");
  if (running_ && running_->record.name == function && running_->is_over) running_.reset();
}

}  // namespace fairlead
