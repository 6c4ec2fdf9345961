#include "node/function_scaling.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "model/samples_tag.h"
#include "node/trial_samples.h"
#include "wire/pipeline_json.h"

namespace fairlead {
namespace {

constexpr const char* kBegun = "it began";
constexpr Duration kMeasureAgain = std::chrono::seconds(30);

}  // namespace

FunctionScaling::FunctionScaling(boost::asio::io_context& io, Store& store, FunctionControl& control,
                                 Functions& functions, Invocations& invocations, Instances& instances,
                                 CoreDriver& driver, Devices devices, std::shared_ptr<ComponentTimes> times)
    : functions_(functions),
      devices_(std::move(devices)),
      times_(std::move(times)),
      profiles_(store, functions,
                [this](const FunctionProfile& profile) {
                  learn_from(profile);
                  autoscaler_.profiled(profile.function);
                }),
      profiler_(
          io, control, functions, invocations, instances,
          [this](GpuId gpu) -> std::optional<Device> {
            for (const Device& device : devices_()) {
              if (device.id == gpu) return device;
            }
            return std::nullopt;
          },
          [this](FunctionProfile profile) { profiles_.keep(std::move(profile), {}); }),
      pipelines_(io, functions, invocations, *times_,
                 [this](FunctionProfile profile, std::function<void(Status)> kept) {
                   profile.device = model_of(devices_());
                   profiles_.keep(std::move(profile), [kept = std::move(kept)](Result<FunctionProfile> written) {
                     kept(written ? Status() : Status(fail(written.error())));
                   });
                 }),
      autoscaler_(
          io, driver, control, functions,
          [this](const FunctionRecord& record) { return profiles_.of(record, devices_()); },
          [this] {
            Bytes least(0);
            for (const Device& device : devices_()) {
              if (least == Bytes(0) || device.memory < least) least = device.memory;
            }
            return least;
          }) {
  autoscaler_.set_measure([this](const FunctionRecord& record) { return measure(record); });
}

// Its author gave samples (tag gpu:samples), or it is a kernel task, which needs none: it is measured once, as soon as no other is. What
// failed is not tried again until its code or its samples are others; where there was no room it is tried again.
std::string FunctionScaling::measure(const FunctionRecord& record) {
  const auto samples = samples_of(record.config).value_or(std::nullopt);
  const RegisteredFunction* const function = functions_.find(record.name);
  if (function != nullptr && function->is_pipeline()) return "";  // it has no rectangle
  const bool is_generated = !samples && function != nullptr && function->kernel_task;
  if (!samples && !is_generated) return "";
  if (const auto status = profiler_.status(record.name); status && status->is_running) {
    return "it is being measured: " + status->doing;
  }
  auto& known = unmeasured_[record.name];
  const auto tag = record.config.tags.find(std::string(kSamplesTag));
  const std::string code = record.code_sha256 + (tag == record.config.tags.end() ? "" : tag->second);
  if (known.code != code) known = {.code = code, .why = "", .again = {}};
  if (const auto begun = profiler_.status(record.name); begun && known.why == kBegun) {
    known.why = begun->failed.empty() ? "its profile is not on disk" : begun->failed;
  }
  const bool is_due = known.why.empty() || (known.again && monotonic_now() >= *known.again);
  if (!is_due) return "measuring it failed: " + known.why + "; fairlead profile " + record.name + " measures it again";
  if (profiler_.is_running()) return "it is measured once the experiment that goes on has ended";
  known.again.reset();
  ProfileRequest request{.function = record.name, .payload = "", .is_generated = is_generated};
  if (!is_generated) {
    const auto payloads = trial_samples(record, *samples);
    if (!payloads) return known.why = payloads.error().message;
    request.payload = payloads->front();
    request.more_payloads.assign(payloads->begin() + 1, payloads->end());
  }
  if (Status started = profiler_.start(request, has_widths_); !started) {
    known.again = monotonic_now() + kMeasureAgain;
    return known.why = started.error().message;
  }
  spdlog::info("function {} is called again and again to measure it, with {}", record.name,
               is_generated ? "inputs that the node makes up"
                            : fmt::format("its {} samples (tag {})", 1 + request.more_payloads.size(), kSamplesTag));
  known.why = kBegun;
  return "it is being measured";
}

void FunctionScaling::start(Autoscaler::Options options) {
  has_widths_ = options.has_widths;
  profiles_.each([this](const FunctionProfile& profile) { learn_from(profile); });
  autoscaler_.start(options);
}

NodeService::Callback<Outcome> FunctionScaling::counted(const std::string& function,
                                                        NodeService::Callback<Outcome> done) {
  const std::int64_t now_ms = wall_clock_ms();
  if (!autoscaler_.arrived(function, now_ms)) return done;
  return [this, life = life_.watch(), function, now_ms, began = monotonic_now(),
          done = std::move(done)](Result<Outcome> outcome) {
    const bool failed = !outcome || outcome->kind != OutcomeKind::kSuccess;
    if (!life.ended()) autoscaler_.answered(function, now_ms, monotonic_now() - began, failed);
    done(std::move(outcome));
  };
}

// Of the code that is there now.
void FunctionScaling::learn_from(const FunctionProfile& profile) {
  const RegisteredFunction* const function = functions_.find(profile.function);
  const bool is_its =
      function != nullptr && function->is_pipeline() && function->record.code_sha256 == profile.code_sha256;
  if (is_its) learn(*times_, profile, *function->kernel_task->pipeline, devices_());
}

void FunctionScaling::function_removed(const std::string& function) {
  profiles_.forget(function);
  unmeasured_.erase(function);
  pipelines_.forget(function);
  autoscaler_.forget(function);
}

Status FunctionScaling::start_profile(ProfileRequest request) {
  const auto function = functions_.get(request.function);
  if (function && (*function)->is_pipeline()) return pipelines_.start(request, **function);
  return profiler_.start(request, has_widths_);
}

Status FunctionScaling::stop_profile(const std::string& function) {
  constexpr const char* kWhy = "it was stopped by its caller";
  if (const auto of_pipeline = pipelines_.status(function); of_pipeline && of_pipeline->is_running) {
    pipelines_.stop(kWhy);
    return {};
  }
  const auto status = profiler_.status(function);
  if (!status || !status->is_running) return fail(Errc::kNotFound, "no experiment on {} goes on", function);
  profiler_.stop(kWhy);
  return {};
}

Result<ProfileStatus> FunctionScaling::profile(const std::string& function) {
  const auto known = functions_.get(function);
  if (!known) return fail(known.error());
  ProfileStatus status{.profiles = profiles_.all(function), .experiment = profiler_.status(function)};
  if ((*known)->is_pipeline()) {
    status.experiment = pipelines_.status(function);
    status.components = times_of(*times_, *(*known)->kernel_task->pipeline);
  }
  return status;
}

Result<std::string> FunctionScaling::pipeline(const std::string& function) {
  const auto known = functions_.get(function);
  if (!known) return fail(known.error());
  if (!(*known)->is_pipeline()) return fail(Errc::kInvalidArgument, "{} is no pipeline", function);
  const PipelineProgram& program = *(*known)->kernel_task->pipeline;
  return wire::pipeline_to_json(times_->applied(program.dag, program.kinds()));
}

void FunctionScaling::import_profile(std::string function, FunctionProfile profile, Callback<FunctionProfile> done) {
  const auto known = functions_.get(function);
  if (!known) return done(fail(known.error()));
  if (profile.code_sha256 != (*known)->record.code_sha256) {
    return done(fail(Errc::kInvalidArgument,
                     "code_sha256 is '{}', and the code of {} is '{}': a profile is of one version of the code",
                     profile.code_sha256, function, (*known)->record.code_sha256));
  }
  if ((*known)->is_pipeline() == profile.components.empty()) {
    return done(fail(Errc::kInvalidArgument, "components has {} times, and {} is {}: profiles of pipelines have some",
                     profile.components.size(), function, (*known)->is_pipeline() ? "a pipeline" : "no pipeline"));
  }
  profile.function = std::move(function);
  profile.is_imported = true;
  profiles_.keep(std::move(profile), std::move(done));
}

Result<ScalingStatus> FunctionScaling::scaling(const std::string& function) {
  if (const auto known = functions_.get(function); !known) return fail(known.error());
  return autoscaler_.status(function);
}

}  // namespace fairlead
