#include "node/program_runner.h"

#include <boost/asio/post.hpp>
#include <utility>

#include "base/log.h"
#include "model/model_consent.h"
#include "model/tenant.h"
#include "model/version.h"
#include "model/volume.h"
#include "node/container_spec.h"
#include "wire/shim_codec.h"

namespace fairlead {
namespace {

MemoryMoved moved(const SwapOutcome& outcome) {
  const auto result = [&] {
    switch (outcome.result) {
      case wire::MoveResult::kDone: return MoveOutcome::kDone;
      case wire::MoveResult::kPartly: return MoveOutcome::kPartly;
      case wire::MoveResult::kBusy: return MoveOutcome::kBusy;
      case wire::MoveResult::kNoRoom: return MoveOutcome::kNoRoom;
      case wire::MoveResult::kNothing: return MoveOutcome::kNothing;
      case wire::MoveResult::kFailed: return MoveOutcome::kFailed;
    }
    return MoveOutcome::kFailed;
  };
  return {.direction = outcome.direction == SwapDirection::kOut ? MoveDirection::kOut : MoveDirection::kIn,
          .outcome = result(),
          .bytes = outcome.bytes,
          .total_time = outcome.total_time,
          .copy_time = outcome.move_time};
}

void log_move(InstanceId instance, const SwapOutcome& outcome) {
  spdlog::debug("instance {} swapped {}: {}, {:.1f} MiB in {:.2f} ms, copying {:.2f} ms", instance.value(),
                outcome.direction == SwapDirection::kOut ? "out" : "in", wire::move_result_name(outcome.result),
                outcome.bytes.mib(), to_ms(outcome.total_time), to_ms(outcome.move_time));
}

constexpr const char* kModelsSocketPath = "/run/fairlead/models.sock";

}  // namespace

std::string model_scope(const FunctionRecord& record) {
  return flow_name(record) + ":" + record.code_sha256;
}

Result<EgressTerms> egress_for(const InstanceHostOptions& options, const std::map<std::string, std::string>& tags) {
  Result<EgressTerms> terms = egress_of(options.egress, tags);
  if (!terms || terms->asked.is_none() || options.egress_obstacle.empty()) return terms;
  return fail(Errc::kUnavailable,
              "tag {} asks for '{}', and this machine gives functions no way out: {}; start the node again then",
              kEgressTag, terms->asked.text(), options.egress_obstacle);
}

Result<std::unique_ptr<ProgramRunner>> ProgramRunner::create(boost::asio::io_context& io, ProgramRunnerOptions options,
                                                             InstanceEvents events, MemoryEvents memory) {
  std::unique_ptr<ProgramRunner> runner(new ProgramRunner(io, std::move(options)));
  events.gone = [runner = runner.get(), gone = std::move(events.gone)](InstanceId instance, ExitInfo exit) {
    if (runner->shims_) runner->shims_->remove(instance);
    if (runner->models_) runner->models_->remove(instance);
    runner->pacers_.gone(instance);
    if (const auto stopped = runner->stopped_.extract(instance)) {
      exit.reason = stopped.mapped().reason;
      exit.is_nodes_fault = exit.is_nodes_fault || stopped.mapped().is_nodes_fault;
    }
    gone(instance, std::move(exit));
  };
  runner->gone_ = events.gone;
  auto host = InstanceHost::create(io, runner->options_.host, std::move(events));
  if (!host) return fail(host.error());
  runner->host_ = *std::move(host);
  if (runner->options_.forked) {
    if (Status done = runner->options_.forked(); !done) return fail(done.error());
  }
  runner->make_shims(std::move(memory));
  return runner;
}

void ProgramRunner::make_shims(MemoryEvents memory) {
  if (options_.models) {
    ModelHostOptions models = *options_.models;
    models.socket_dir = options_.host.state_dir + "/run";
    models_ = std::make_unique<ModelHost>(io_, std::move(models), ModelEvents{.needs_room = memory.needs_room});
  }
  if (!options_.shims) return;
  staging_worker_ = std::make_unique<Worker>(io_);
  ShimHostOptions options = *options_.shims;
  options.socket_dir = options_.host.state_dir + "/run";
  options.background = [this](std::function<bool()> job, std::function<void(bool)> done) {
    staging_worker_->run(std::move(job), std::move(done));
  };
  options.run_move = [this](GpuId gpu, std::function<void()> job, std::function<void()> done) {
    std::unique_ptr<Worker>& mover = movers_[gpu];
    if (!mover) mover = std::make_unique<Worker>(io_);
    auto run = [job = std::move(job)] { return job(), true; };
    mover->run(std::move(run), [done = std::move(done)](bool) { done(); });
  };
  ShimEvents events;
  events.moved = [this, told = std::move(memory.moved)](InstanceId instance, const SwapOutcome& outcome) {
    log_move(instance, outcome);
    stop_if_stranded(instance, outcome);
    told(instance, moved(outcome));
  };
  events.needs_room = std::move(memory.needs_room);
  events.wants_memory = std::move(memory.wants_memory);
  events.usage_changed = std::move(memory.usage_changed);
  events.process_came = [this](InstanceId instance, std::uint64_t process, std::shared_ptr<wire::ShimPage> page) {
    pacers_.process_came(instance, process, std::move(page));
  };
  events.process_left = [this](std::uint64_t process) { pacers_.process_left(process); };
  shims_ = ShimHost::create(io_, std::move(options), std::move(events));
}

// A process that the driver does not restore stands still in its next call of it, for good: it would hold its invocation until
// that one's deadline. By another back end it goes on without the memory that did not come.
void ProgramRunner::stop_if_stranded(InstanceId instance, const SwapOutcome& outcome) {
  const bool is_lost = options_.shims->backend == wire::MemoryBackend::kCheckpoint &&
                       outcome.direction == SwapDirection::kIn && outcome.result == wire::MoveResult::kFailed;
  if (!is_lost) return;
  stopped_[instance] = {"the driver did not restore its checkpoint", true};
  host_->kill(instance);
}

void ProgramRunner::start(const StartOrder& order) {
  auto described = describe(order);
  if (!described) return end_unstarted(order.instance, described.error().message);
  InstanceSpec& spec = *described;
  spec.shim = shim_access(order);
  if (spec.shim) pacers_.started(order.instance, order.gpu, order.share);
  const std::string tenant = tenant_of(order.function.record.config.tags);
  if (Status offered = objects_->offer(tenant, spec); !offered) {
    spdlog::error("function {} runs without objects: {}", spec.function, offered.error().message);
  }
  offer_models(order, spec);
  host_->start(std::move(spec));
}

// The server's environment is what any program of that GPU gets, without the author's part.
void ProgramRunner::offer_models(const StartOrder& order, InstanceSpec& spec) {
  if (!models_) return;
  const FunctionRecord& record = order.function.record;
  InstanceSpec server{.instance = order.instance, .function = record.name};
  server.environment = options_.gpu_access.environment;
  give_share_(server, order.gpu, Share());
  const ModelConsent consent = model_consent(record.config.tags).value_or(ModelConsent());
  Result<std::string> socket = models_->add({.user = {.instance = order.instance,
                                                      .tenant = tenant_of(record.config.tags),
                                                      .scope = model_scope(record),
                                                      .lends_to = consent.lends_to,
                                                      .uses_from = consent.takes_of},
                                             .gpu = order.gpu,
                                             .device_memory = order.device_memory,
                                             .environment = std::move(server.environment)});
  if (!socket) return spdlog::error("function {} runs without models: {}", spec.function, socket.error().message);
  spec.binds.push_back({*std::move(socket), kModelsSocketPath, true});
  spec.environment["FAIRLEAD_MODELS"] = kModelsSocketPath;
}

// As a start that failed: never from inside a call.
void ProgramRunner::end_unstarted(InstanceId instance, std::string reason) {
  boost::asio::post(io_, [this, instance, reason = std::move(reason)] { gone_(instance, ExitInfo{.reason = reason}); });
}

Result<InstanceSpec> ProgramRunner::describe(const StartOrder& order) const {
  // The author's own variables only: what an image brings along could name secrets that were not meant for it.
  FunctionRecord record = order.function.record;
  FunctionConfig& config = record.config;
  auto files = put_secrets(options_.secrets, tenant_of(config.tags), config.environment);
  if (!files) return fail(files.error());
  InstanceSpec spec{.instance = order.instance, .function = record.name};
  spec.secrets = *std::move(files);
  spec.arn = version_arn(spec.function, record.version);
  spec.version = version_name(record.version);
  spec.handler = config.handler;
  spec.code_path = record.code_path;
  if (record.in_place) {
    spec.code_identity = record.in_place;
    if (Status may = check_in_place(record.code_path, tenant_of(config.tags), options_.in_place); !may) {
      return fail(may.error());
    }
  }
  if (record.image) {
    const GpuAccess access = container_gpu_access(options_.gpu_access, order.gpu.value() - 1);
    spec.binds = access.binds;
    describe_container(record, access.environment, spec);
  } else {
    spec.binds = options_.gpu_access.binds;
    spec.environment = options_.gpu_access.environment;
    for (const auto& [name, value] : config.environment) spec.environment[name] = value;
  }
  const auto volumes = volumes_of(options_.volumes, config.tags);
  if (!volumes) return fail(volumes.error());
  // By a name that only a folder has: a file that took its place would stay a mount point of its kind. Nobody looks here whether it is one,
  // since a disk that does not answer would hold up the loop.
  for (const Volume& volume : *volumes) {
    spec.binds.push_back({volume.folder + "/", volume.folder, volume.writable, volume.writable});
  }
  Result<EgressTerms> egress = egress_for(options_.host, config.tags);
  if (!egress) return fail(egress.error());
  spec.egress = *std::move(egress);
  spec.memory_limit = mib(config.memory_mib);
  spec.tmp_limit = mib(config.ephemeral_storage_mib);
  // Of a function that the node scales the order says how wide it is, not the tags.
  Share share = gpu_settings(config).value_or(GpuSettings()).share;
  if (order.share.width_percent < kWholeDevice) share.width_percent = order.share.width_percent;
  give_share_(spec, order.gpu, share);
  return spec;
}

// An instance without a shim runs all the same: it is counted as its function is expected to need, and never moved.
std::optional<ShimAccess> ProgramRunner::shim_access(const StartOrder& order) {
  if (!shims_) return std::nullopt;
  const FunctionRecord& record = order.function.record;
  ShimTerms terms{.instance = order.instance, .gpu = order.gpu, .function = record.name};
  const auto settings = gpu_settings(record.config);
  if (settings) terms.cap = settings->share.memory.value_or(Bytes(0));
  terms.device_memory = order.device_memory;
  Result<ShimAccess> access = shims_->add(std::move(terms));
  if (access) return *std::move(access);
  spdlog::warn("instance {} of {} starts without the shim: {}", order.instance.value(), record.name,
               access.error().message);
  return std::nullopt;
}

void ProgramRunner::deliver(InstanceId instance, DeliverRequest request) {
  host_->deliver(instance, std::move(request));
}

void ProgramRunner::device_worked(InstanceId instance, Duration busy) {
  const std::optional<std::string> evasion = pacers_.device_worked(instance, busy);
  if (!evasion) return;
  stopped_[instance] = {"it computed on the GPU outside of its turns: it " + *evasion};
  host_->kill(instance);
}

std::optional<DeviceUse> ProgramRunner::use(InstanceId instance) {
  const std::optional<ShimUse> use = shims_ ? shims_->measure(instance) : std::nullopt;
  if (!use) return std::nullopt;
  return DeviceUse{.memory = {.held = use->held, .resident = use->resident, .away = use->away, .fixed = use->fixed},
                   .gpu_time = use->gpu_time,
                   .is_busy = use->busy > 0,
                   .launches = {.launches = use->calls.launches,
                                .gate_waits = use->calls.gate_waits,
                                .passed_through = use->calls.passed_through,
                                .unhooked_functions = use->calls.unhooked_functions}};
}

void ProgramRunner::swap_out(InstanceId instance, Bytes bytes, Duration deadline) {
  if (shims_) shims_->swap_out(instance, static_cast<std::uint64_t>(bytes.count()), deadline);
}

void ProgramRunner::swap_in(InstanceId instance) {
  if (shims_) shims_->swap_in(instance);
}

void ProgramRunner::grant_room(InstanceId instance, std::uint64_t request, bool granted) {
  if ((request & ModelHost::kRoomRequest) != 0) return models_->grant_room(request, granted);
  if (shims_) shims_->grant_room(instance, request, granted);
}

}  // namespace fairlead
