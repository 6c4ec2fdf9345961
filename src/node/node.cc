#include "node/node.h"

#include <unistd.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <filesystem>
#include <utility>

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "decide/queueing/window.h"
#include "model/model_consent.h"
#include "model/model_tags.h"
#include "model/tenant.h"
#include "node/log_tail.h"
#include "node/node_status.h"
#include "runtime/sandbox_process.h"

namespace fairlead {
namespace {

// Consent that was given or taken back counts at once, though nothing of the function starts anew.
void tell_consent(ModelHost* models, const FunctionRecord& record) {
  if (models == nullptr) return;
  const ModelConsent consent = model_consent(record.config.tags).value_or(ModelConsent());
  models->consent_changed(model_scope(record), consent.lends_to, consent.takes_of);
}

// Of the machine's devices.
std::vector<GpuView> device_views(const Core& core) {
  std::vector<GpuView> views = core.gpus();
  std::erase_if(views, [](const GpuView& view) { return is_pipeline_device(view.gpu); });
  return views;
}

std::map<std::string, double> weights_of(const Tenants& tenants) {
  std::map<std::string, double> weights;
  for (const auto& [name, known] : tenants.all()) weights[name] = known.share.weight;
  return weights;
}

// Since the sample before. Instances that do not report, and the servers of kernel tasks, hold nothing here.
void count_memory(const Core& core, Functions& functions, UsageMeter& usage) {
  const Duration elapsed = usage.sample_begins(monotonic_now());
  for (const InstanceView& instance : core.instances()) {
    const RegisteredFunction* const function = instance.memory ? functions.find(instance.flow) : nullptr;
    if (function == nullptr || function->requested) continue;
    const FunctionRecord& record = function->record;
    usage.held(tenant_of(record.config.tags), record.name, instance.memory->resident, elapsed);
  }
}

// What a function asks for, and the operator or its tenant has to have given. Who asks for the same secrets as `before` (null: it is new) may
// change all else, also when they are gone: its next start fails.
Status check_given(const NodeOptions& options, const FunctionConfig& config, const FunctionConfig* before) {
  const auto volumes = volumes_of(options.volumes, config.tags);
  if (!volumes) return fail(volumes.error());
  const auto is_written = [](const Volume& volume) { return volume.writable; };
  if (config.package_type == PackageType::kImage && std::any_of(volumes->begin(), volumes->end(), is_written)) {
    return fail(
        Errc::kInvalidArgument,
        "tag {} asks for a volume to write to, and PackageType is Image: an image has users of its own, and reads "
        "volumes",
        kVolumesTag);
  }
  if (const auto egress = egress_for(options.host, config.tags); !egress) return fail(egress.error());
  const bool is_as_before = before != nullptr && before->environment == config.environment &&
                            tenant_of(before->tags) == tenant_of(config.tags);
  return is_as_before ? Status() : check_secrets(options.secrets, config);
}

InPlaceTerms in_place_terms(const NodeOptions& options) {
  std::error_code ignored;
  const std::filesystem::path state = std::filesystem::weakly_canonical(options.state_dir, ignored);
  return {.obstacle = options.in_place_obstacle, .state_dir = state, .volumes = options.volumes};
}

ProgramRunnerOptions program_options(const NodeOptions& options) {
  return {.host = options.host,
          .gpu_access = options.gpu_access,
          .shims = options.shims,
          .models = options.models,
          .secrets = options.secrets,
          .volumes = options.volumes,
          .in_place = in_place_terms(options),
          .forked = options.give_up_rights};
}

PipelinesOptions pipelines_options(const NodeOptions& options, std::shared_ptr<ComponentTimes> times,
                                   std::function<std::map<std::string, double>()> weights) {
  return {.servers = {.program = options.device_servers.program,
                      .arguments = options.device_servers.own_arguments,
                      .launcher = options.device_servers.launcher},
          .environment = options.gpu_access.environment,
          .launch_program = options.pipeline_programs,
          .rings = std::make_shared<RingBudget>(options.pipeline_memory),
          .times = std::move(times),
          .claims = options.pipeline_claims,
          .cutter = {.driver = options.slice_driver},
          .weights = std::move(weights)};
}

// `shared`: the same, where other nodes have it too.
Result<std::unique_ptr<Store>> open_store(boost::asio::io_context& io, const NodeOptions& options,
                                          SharedStore*& shared) {
  if (options.store.url.empty()) return Store::open(io, options.state_dir);
  auto opened = open_postgres_store(io, options.state_dir, options.store);
  if (!opened) return fail(opened.error());
  shared = opened->get();
  return std::unique_ptr<Store>(*std::move(opened));
}

bool has_instances(const std::vector<GpuView>& devices, GpuId gpu) {
  return std::ranges::any_of(devices, [gpu](const GpuView& view) { return view.gpu == gpu && view.instances > 0; });
}

// A version of which no instances are kept is in no book of shares, and as wide as its author says all the same.
PacedShare paced_share_of(const Shares& shares, const RegisteredFunction& function, FlowId flow, bool entitled) {
  const std::string name = flow_name(function.record);
  if (shares.knows(name)) return shares.paced(name, flow, entitled);
  const Share said = gpu_settings(function.record.config).value_or(GpuSettings()).share;
  return shares.paced_seatless(said, function.kernel_task != nullptr, flow);
}

}  // namespace

Result<std::unique_ptr<Node>> Node::create(boost::asio::io_context& io, NodeOptions options) {
  if (Status valid = validate(options.core); !valid) return fail(valid.error());
  auto policy = make_policy(options.policy, options.policy_options);
  if (!policy) return fail(policy.error());
  Tenants(options.tenants).tell(**policy);
  std::unique_ptr<Node> node(new Node(io, std::move(options), *std::move(policy)));
  if (Status opened = node->open(); !opened) return fail(opened.error());
  if (Status recovered = node->recover(); !recovered) return fail(recovered.error());
  return node;
}

Node::Node(boost::asio::io_context& io, NodeOptions options, std::unique_ptr<FlowQueue> policy)
    : io_(io),
      options_(std::move(options)),
      life_{.began = monotonic_now(), .is_ending = false, .drained = {}},
      tenants_(options_.tenants),
      driver_(io, options_.core, std::move(policy)),
      memory_(io,
              {.move_deadline = options_.core.move_deadline,
               .period = GpuMonitor::kPeriod,
               .runs_anything = [this] { return busy(); },
               .drop_unused_models =
                   [this](GpuId gpu, Bytes bytes, std::function<void(Bytes)> done) {
                     ModelHost* const models = programs_->models();
                     models != nullptr ? models->evict(gpu, bytes, std::move(done)) : done(Bytes(0));
                   }},
              driver_, instances_, functions_),
      notes_(functions_, std::chrono::milliseconds(wall_clock_ms()) - life_.began.time_since_epoch()),
      charges_(
          io, driver_, instances_, functions_, memory_,
          [this](GpuId gpu) {
            const GpuSample* const known = sample(gpu);
            return known == nullptr || (!known->device.is_slice() && known->names_processes);
          },
          [this](const InvocationRecord& record) { notes_.add(record); }),
      invocations_(driver_, functions_, request_ids_, charges_, notes_) {
  invocations_.tell(options_.sinks);
  invocations_.on_abandoned([this](InstanceId instance, InvocationId invocation) {
    if (LiveInstance* const live = instances_.find(instance)) live->runner->abandoned(invocation);
  });
  driver_.connect([this](const Action& action) { std::visit([this](const auto& a) { act(a); }, action); },
                  [this] { note_drained(); });
}

Status Node::open() {
  // The spawner is forked before the store's thread starts.
  auto programs = ProgramRunner::create(io_, program_options(options_), instance_events(), memory_.events());
  if (!programs) return fail(programs.error());
  programs_ = *std::move(programs);
  auto store = open_store(io_, options_, kept_.shared);
  if (!store) return fail(store.error());
  kept_.store = *std::move(store);
  events_ = std::make_unique<AsyncInvocations>(io_, options_.events, *kept_.store, functions_, request_ids_,
                                               invocations_, options_.failure_words, [this] { note_drained(); });
  auto objects = ObjectStore::open(io_, options_.objects);
  if (!objects) return fail(objects.error());
  objects_ = std::make_unique<ClusterObjectStore>(*std::move(objects));
  programs_->set_objects(std::make_unique<ObjectSockets>(io_, *objects_, options_.state_dir + "/run"));
  const auto is_kernel_task = [this](const std::string& name) {
    const RegisteredFunction* function = functions_.find(name);
    return function != nullptr && function->kernel_task != nullptr;
  };
  graphs_ = std::make_unique<GraphRuns>(io_, *this, *objects_, is_kernel_task, options_.failure_words.text);
  if (options_.memory) {
    events_->count_in(options_.memory);
    invocations_.count_in(options_.memory);
    graphs_->count_in(options_.memory);
  }
  if (const std::uint64_t bytes = options_.history_bytes; bytes > 0) {
    auto history = History::open(io_, options_.state_dir + "/history", bytes);
    if (!history) return fail(history.error());
    notes_.set_history(*std::move(history));
  }
  worker_ = std::make_unique<Worker>(io_);
  kernel_tasks_ = std::make_unique<KernelTaskRunner>(
      io_, KernelTaskRunnerOptions{options_.device_servers, options_.gpu_access.environment}, *objects_, *worker_,
      programs_->pacers(), instance_events());
  const auto times = std::make_shared<ComponentTimes>();  // shared: who plans by them, who keeps profiles
  pipelines_ =
      std::make_unique<Pipelines>(io_, pipelines_options(options_, times, [this] { return weights_of(tenants_); }),
                                  driver_, functions_, instance_events());
  task_requests_ =
      std::make_unique<TaskRequests>(io_, kernel_tasks_->objects(), functions_, tenants_, driver_, invocations_);
  ImageStoreOptions images = options_.images;
  images.state_dir = options_.state_dir;
  images.root = ::geteuid() == 0;
  images.functions_id = kSandboxUid;
  control_ = std::make_unique<FunctionControl>(io_, std::move(images), *worker_, *kept_.store, functions_, tenants_,
                                               request_ids_, driver_,
                                               [this](const RegisteredFunction& function) { forget_flow(function); });
  events_->set_versions(control_->versions());
  if (kept_.shared != nullptr) {
    control_->share(*kept_.shared);
    if (options_.common.opened) options_.common.opened(*kept_.shared);
  }
  control_->set_in_place(in_place_terms(options_));
  const auto devices = [this] {
    std::vector<Device> there;
    if (!gpus_) return there;
    for (const GpuSample& one : gpus_->samples()) there.push_back(one.device);
    return there;
  };
  scaling_ = std::make_unique<FunctionScaling>(io_, *kept_.store, *control_, functions_, invocations_, instances_,
                                               driver_, devices, times);
  return {};
}

Status Node::recover() {
  const bool is_shared = kept_.shared != nullptr;
  if (Status functions = control_->recover(is_shared ? &kept_.late : nullptr); !functions) return functions;
  if (Status profiles = scaling_->recover(); !profiles) return profiles;
  // Of a common store they are claimed, once the functions are here.
  auto events = is_shared ? std::vector<QueuedEvent>() : kept_.store->load_events();
  if (!events) return fail(events.error());
  if (!functions_.all().empty() || !events->empty()) {
    spdlog::info("found {} functions and {} waiting asynchronous invocations", functions_.all().size(), events->size());
  }
  auto configs = kept_.store->load_event_configs();
  if (!configs) return fail(configs.error());
  for (FunctionChange& change : kept_.late) {
    if (const auto config = configs->find(change.function); config != configs->end())
      change.event_config = config->second;
  }
  events_->restore(*std::move(events), *std::move(configs));
  return {};
}

// ---- GPUs

void Node::use_gpus(std::unique_ptr<GpuMonitor> monitor, std::unique_ptr<GpuSharing> sharing) {
  gpus_ = std::move(monitor);
  sharing_ = std::move(sharing);
  sharing_->connect(daemon_events());
  const GiveShare give_share = [this](InstanceSpec& spec, GpuId gpu, const Share& share) {
    sharing_->give_share(spec, gpu, share);
  };
  programs_->set_share(give_share);
  control_->shares().set_measure([this](FlowId flow, ShareStatus& status) { programs_->measure_share(flow, status); });
  kernel_tasks_->set_share(give_share);
  pipelines_->connect({.all =
                           [this] {
                             std::vector<Device> all;
                             for (const GpuView& view : device_views(driver_.core())) {
                               if (const GpuSample* const known = sample(view.gpu)) all.push_back(known->device);
                             }
                             return all;
                           },
                       .is_empty =
                           [this](GpuId gpu) {
                             if (has_instances(device_views(driver_.core()), gpu)) return false;
                             return !sharing_->knows(gpu) || sharing_->instances(gpu) == 0;
                           },
                       .end_idle_servers = [this](GpuId gpu) { kernel_tasks_->end_idle_servers(gpu); },
                       .give_share = give_share,
                       .look_soon = [this] { gpus_->look_soon(); }});
  const bool runs_side_by_side = sharing_->mode() == SharingMode::kMps;
  const Policy& policy = driver_.core().policy().policy();
  control_->shares().configure({.mode = sharing_->mode(),
                                .policy = std::string(policy.name),
                                .keeps_instances = policy.keeps_instances && !policy.one_function_per_gpu,
                                .has_task_widths = runs_side_by_side || options_.device_servers.one_for_all,
                                .pool = options_.core.instances_per_gpu});
  programs_->pacers().set_side_by_side(runs_side_by_side);
  for (const GpuSample& gpu : gpus_->samples()) {
    driver_.core().add_gpu(sharing_->spec_of(gpu.device));
    add_seats_on(gpu.device);
  }
  control_->settle_shares();
  driver_.tell([](Core& core, Instant now, Actions& out) { core.wake(now, out); });  // Core::prepare()
  scaling_->start({.has_widths = runs_side_by_side,
                   .keep = options_.scale_to_zero,
                   .ahead = options_.start_ahead,
                   .pool = options_.core.instances_per_gpu});
  gpus_->start(io_, [this](const GpuObservation& observation) { observe(observation); });
  if (kept_.shared != nullptr) {
    kept_.common = std::make_unique<CommonStore>(
        io_, CommonStore::Ports{.store = *kept_.shared,
                                .functions = functions_,
                                .control = *control_,
                                .events = *events_,
                                .updated =
                                    [this](const std::string& scope, const FunctionRecord& record) {
                                      if (model_scope(record) != scope) forget_models(scope);
                                      tell_consent(programs_->models(), record);
                                    },
                                .pull_back =
                                    [this] {
                                      driver_.tell([this](Core&, Instant now, Actions& out) {
                                        invocations_.cancel_submitted(now, out);
                                      });
                                    },
                                .documents = options_.common.documents,
                                .runs_nothing = options_.runs_nothing});
    kept_.common->start(std::exchange(kept_.late, {}));
  }
  events_->submit();
}

void Node::add_seats_on(const Device& device) {
  control_->shares().add_device(device, options_.core.instances_per_gpu, sharing_->spec_of(device).slots);
}

Status Node::retune(const NodeTuning& tuning) {
  CoreOptions core = options_.core;
  core.queue_limit = tuning.queue_limit;
  core.slots_per_gpu = tuning.slots_per_gpu;
  if (Status valid = validate(core); !valid) return valid;
  std::map<GpuId, std::size_t> slots;
  for (const GpuSample& gpu : gpus_->samples()) {
    const std::size_t wanted = gpu.device.is_slice() ? tuning.slots_per_slice : tuning.slots_per_gpu;
    if (!sharing_->spec_of(gpu.device).is_dynamic) slots[gpu.device.id] = wanted;
  }
  if (Status seated = control_->shares().set_slots(slots, core.instances_per_gpu); !seated) return seated;
  Tuning change{.queue_limit = tuning.queue_limit};
  tenants_.set_shares(tuning.tenants);
  for (const auto& [name, known] : tenants_.all()) change.tenants.emplace_back(known.id, known.share);
  sharing_->set_slots(tuning.slots_per_gpu, tuning.slots_per_slice);
  for (const GpuSample& gpu : gpus_->samples()) {
    const GpuSpec spec = sharing_->spec_of(gpu.device);
    if (!spec.is_dynamic) change.slots.emplace_back(spec.gpu, spec.slots);
  }
  options_.core = core;
  driver_.tell([&](Core& told, Instant now, Actions& out) { told.retune(now, change, out); });
  control_->settle_shares();
  return {};
}

const GpuSample* Node::sample(GpuId gpu) const {
  return gpus_ ? gpus_->find(gpu) : nullptr;
}

// Devices that appeared, and those that are no longer there.
void Node::compare_devices(const GpuObservation& observation) {
  for (const GpuSample& sample : observation.samples) {
    if (!sharing_->knows(sample.device.id)) take_in(sample.device);
  }
  const auto is_there = [&](GpuId gpu) {
    const auto is_it = [gpu](const GpuSample& sample) { return sample.device.id == gpu; };
    return std::any_of(observation.samples.begin(), observation.samples.end(), is_it);
  };
  bool seats_went = false;
  driver_.tell([&](Core& core, Instant now, Actions& out) {
    for (const GpuView& view : device_views(core)) {
      if (is_there(view.gpu)) continue;
      core.device(now, DeviceWent{view.gpu}, out);
      seats_went |= control_->shares().remove_device(view.gpu);
    }
  });
  if (seats_went) control_->settle_shares();
}

void Node::take_in(const Device& device) {
  spdlog::info("GPU {} appears: {}, {:.0f} MiB", device.id.value(), device.name, device.memory.mib());
  sharing_->take_in(device, [this, device](const Status& shared) {
    if (!shared) return spdlog::error("GPU {} is not used: {}", device.id.value(), shared.error().message);
    driver_.tell([&](Core& core, Instant now, Actions& out) {
      core.device(now, DeviceAppeared{sharing_->spec_of(device)}, out);
    });
    add_seats_on(device);
    control_->settle_shares();
  });
}

void Node::observe(const GpuObservation& observation) {
  compare_devices(observation);
  if (options_.sinks->usage != nullptr) count_memory(driver_.core(), functions_, *options_.sinks->usage);
  for (const auto& [instance, busy] : charges_.compare_with_devices(observation.processes)) {
    programs_->device_worked(instance, busy);
  }
  driver_.tell([&](Core& core, Instant now, Actions& out) {
    for (const Nvml::Xid& xid : observation.xids) {
      spdlog::warn("Xid {} of {}", xid.number, xid.gpu_uuid);
      for (const GpuSample& gpu : observation.samples) {
        if (gpu.device.gpu_uuid == xid.gpu_uuid) core.device(now, DeviceFault{gpu.device.id, xid.number}, out);
      }
    }
    for (const GpuSample& gpu : observation.samples) {
      core.device(now,
                  DeviceSample{.gpu = gpu.device.id,
                               .failure = gpu.failure,
                               .utilisation = gpu.utilisation,
                               .memory_used = gpu.memory_used},
                  out);
    }
  });
  std::vector<GpuId> serving;
  for (const GpuView& gpu : device_views(driver_.core())) {
    if (gpu.state == GpuState::kServing) serving.push_back(gpu.gpu);
  }
  sharing_->ask_daemons(monotonic_now(), serving);
  pipelines_->tick();
}

GpuSharing::Events Node::daemon_events() {
  return {
      .seen =
          [this](GpuId gpu, MpsDaemonState state) {
            driver_.tell([&](Core& core, Instant now, Actions& out) { core.device(now, DaemonSeen{gpu, state}, out); });
          },
      .started =
          [this](GpuId gpu, bool ok) {
            driver_.tell([&](Core& core, Instant now, Actions& out) { core.device(now, DaemonStarted{gpu, ok}, out); });
          },
  };
}

void Node::act(const DeviceChange& change) {
  if (is_pipeline_device(change.gpu)) return;  // no process is there, and nobody watches it
  if (change.kind == DeviceChange::Kind::kGone) return forget_device(change.gpu);
  const std::vector<GpuView> views = driver_.core().gpus();
  const auto is_it = [&](const GpuView& view) { return view.gpu == change.gpu; };
  const GpuView& view = *std::find_if(views.begin(), views.end(), is_it);
  const std::uint64_t gpu = change.gpu.value();
  switch (change.kind) {
    case DeviceChange::Kind::kDrained: {
      const std::size_t left = sharing_->instances(change.gpu);
      spdlog::warn("GPU {} gets no more work: {}; {} instances to go", gpu, view.reason, left);
      if (left > 0 || !pipelines_->holder(change.gpu).empty())
        return;  // a pipeline says so when its processes are gone
      return driver_.tell(
          [&](Core& core, Instant now, Actions& out) { core.device(now, DeviceEmptied{change.gpu}, out); });
    }
    case DeviceChange::Kind::kRestartDaemon: return sharing_->restart_daemon(change.gpu);
    case DeviceChange::Kind::kServes: return spdlog::info("GPU {} serves again", gpu);
    case DeviceChange::Kind::kGone: return;
    case DeviceChange::Kind::kSlots: return spdlog::info("GPU {}: D is {} now", gpu, view.slots);
  }
}

void Node::forget_device(GpuId gpu) {
  spdlog::warn("GPU {} is gone", gpu.value());
  sharing_->give_up(gpu);
  gpus_->forget(gpu);
}

// ---- events of the runners

InstanceEvents Node::instance_events() {
  return {
      .next = [this](InstanceId instance) { on_next(instance); },
      .answered = [this](InstanceId instance, Answer answer) { on_answered(instance, std::move(answer)); },
      .gone = [this](InstanceId instance, const ExitInfo& exit) { on_gone(instance, exit); },
      .residence = [this](InstanceId instance,
                          const SessionResidence& is) { driver_.core().set_residence(instance, is); },
      .session_memory = [this](InstanceId instance,
                               const SessionMemory& has) { driver_.core().set_session_memory(instance, has); },
      .loaded =
          [this](InvocationId invocation) {
            driver_.tell([&](Core& core, Instant now, Actions& out) { core.loaded(now, invocation, out); });
          },
      .able_again = [this] { events_->node_recovered(); },
      .is_wanted = [this](InvocationId invocation) { return invocations_.is_wanted(invocation); },
  };
}

void Node::on_next(InstanceId instance) {
  LiveInstance* const live = instances_.find(instance);
  if (live == nullptr) return;  // being killed
  const bool was_ready = std::exchange(live->ready, true);
  if (!was_ready) {
    charges_.ready(instance);
    functions_.start_ended(live->flow, "");
  }
  driver_.tell([&](Core& core, Instant now, Actions& out) {
    was_ready ? core.instance_idle(now, instance, out) : core.instance_ready(now, instance, out);
  });
}

void Node::on_answered(InstanceId instance, Answer answer) {
  const InvocationId invocation = answer.invocation;
  const bool is_error = answer.is_error;
  if (!invocations_.answered(std::move(answer))) return;
  LiveInstance* const live = instances_.find(instance);
  if (live != nullptr) invocations_.memory_returned(invocation, live->returned.ended, live->returned.took);
  if (live != nullptr && invocations_.wants_log_tail(invocation)) {
    invocations_.set_log_tail(invocation, live->runner->log_tail(instance));
  }
  driver_.tell([&](Core& core, Instant now, Actions& out) {
    // First, so that what follows from the answer knows what the instance holds.
    const std::optional<DeviceUse> use = memory_.report(instance, out);
    const std::optional<Duration> used = charges_.used(instance, use);
    if (charges_.goes_on(instance, use)) {
      charges_.watch(instance, invocation);
      core.answered_early(now, invocation, is_error, used.value_or(Duration(0)), out);
    } else {
      core.answered(now, invocation, is_error, used, out);
    }
  });
}

void Node::on_gone(InstanceId instance, const ExitInfo& exit) {
  charges_.gone(instance);
  const LiveInstance* const live = instances_.find(instance);
  if (live != nullptr && !live->ready && !exit.is_nodes_fault) {
    functions_.start_ended(live->flow, words_of_failed_start(exit));
  }
  instances_.remove(instance);
  driver_.tell([&](Core& core, Instant now, Actions& out) {
    const std::size_t before = out.size();
    core.instance_gone(now, instance, out);
    for (std::size_t i = before; i < out.size(); ++i) {
      const auto* const complete = std::get_if<Complete>(&out[i]);
      if (complete != nullptr) invocations_.instance_gone(complete->invocation, exit);
    }
  });
  const std::optional<GpuId> emptied = sharing_->instance_gone(instance);
  if (!emptied) return;
  driver_.tell([&](Core& core, Instant now, Actions& out) { core.device(now, DeviceEmptied{*emptied}, out); });
}

// ---- actions of the core

// The one place that looks at the kind of a function.
void Node::act(const StartInstance& action) {
  const RegisteredFunction* const function = functions_.find(action.flow);
  FL_CHECK(function != nullptr, "flow {} has no function", action.flow.value());
  Runner& runner = function->is_pipeline() ? static_cast<Runner&>(*pipelines_)
                   : function->kernel_task ? static_cast<Runner&>(*kernel_tasks_)
                                           : *programs_;
  instances_.add(action.instance, {.flow = action.flow, .gpu = action.gpu, .runner = &runner});
  if (!function->is_pipeline()) sharing_->instance_started(action.instance, action.gpu);
  memory_.watch();
  const GpuSample* const known = sample(action.gpu);
  runner.start({.instance = action.instance,
                .gpu = action.gpu,
                .device_memory = known != nullptr ? known->device.memory : Bytes(0),
                .share = paced_share_of(control_->shares(), *function, action.flow, action.entitled),
                .function = *function});
}

void Node::act(const SeatChange& action) {
  const RegisteredFunction* const function = functions_.find(action.flow);
  LiveInstance* const live = instances_.find(action.instance);
  if (function == nullptr || live == nullptr) return;  // it has gone by itself
  live->runner->pace(action.instance, paced_share_of(control_->shares(), *function, action.flow, action.entitled));
}

void Node::act(const StopInstance& action) {
  const auto level = action.reason == StopReason::kNoRoom ? spdlog::level::info : spdlog::level::debug;
  spdlog::log(level, "instance {} stops: {}", action.instance.value(), stop_reason_name(action.reason));
  charges_.stopped(action.instance);
  LiveInstance* const live = instances_.find(action.instance);
  if (live == nullptr) return;  // it has gone by itself
  if (action.reason == StopReason::kStartFailed) functions_.start_ended(live->flow, "it was not ready in time");
  Runner& runner = *live->runner;
  instances_.remove(action.instance);
  runner.kill(action.instance);
}

void Node::act(const Charge& action) {
  charges_.act(action);
  const RegisteredFunction* const function = functions_.find(action.flow);
  if (options_.sinks->usage == nullptr || function == nullptr) return;
  const FunctionRecord& record = function->record;
  const std::string_view name = function->requested ? "(one-off request)" : std::string_view(record.name);
  options_.sinks->usage->charged(tenant_of(record.config.tags), name, action.after_answer);
}

void Node::act(const Deliver& action) {
  DeliverRequest request = invocations_.deliver(action);
  charges_.begin(action.instance);
  memory_.watch();
  if (LiveInstance* const live = instances_.find(action.instance)) {
    live->runner->deliver(action.instance, std::move(request));
  }
}

// ---- the graceful end

void Node::drain(std::function<void()> drained) {
  scaling_->drain();
  graphs_->drain();
  events_->drain();
  if (kept_.common) kept_.common->drain();
  life_.is_ending = true;
  life_.drained = std::move(drained);
  driver_.tell([this](Core& core, Instant now, Actions& out) {
    core.drain(now, out);
    invocations_.cancel_submitted(now, out);  // they stay on disk for the next start
  });
}

void Node::note_drained() {
  if (!life_.drained || !driver_.core().drained() || kept_.store->pending_writes() > 0) return;
  boost::asio::post(io_, std::exchange(life_.drained, nullptr));
}

// ---- NodeService

Status Node::check_invoke(const std::string& function) {
  const auto found = functions_.get(function);
  if (!found) return fail(found.error());
  return {};
}

NodeService::CancelHandle Node::invoke(InvokeRequest request, Callback<Outcome> done) {
  const auto function = functions_.get(request.invocation.function);
  if (!function) {
    done(fail(function.error()));
    return {};
  }
  request.invocation.request_id = request_ids_.next();
  const auto version = versions().choose(request.invocation.function, request.qualifier, request.invocation.request_id);
  if (!version) {
    done(fail(version.error()));
    return {};
  }
  request.invocation.version = *version;
  if (*version == 0) {
    scaling_->called(request.invocation.function);
    done = scaling_->counted(request.invocation.function, std::move(done));
  }
  const RegisteredFunction* const flow = control_->versions().flow_of(request.invocation.function, *version);
  FL_CHECK(flow != nullptr, "version {} of {} was chosen and is not there", *version, request.invocation.function);
  return invocations_.invoke(*flow, std::move(request), std::move(done));
}

void Node::invoke_event(InvokeRequest request, Callback<std::string> accepted) {
  events_->accept(std::move(request), std::move(accepted));
}

Status Node::run_elsewhere(const std::string& tenant, Bytes bytes, Job job) {
  return task_requests_->run_elsewhere(tenant, bytes, std::move(job));
}

NodeService::CancelHandle Node::run_task(TaskRun run, Callback<Outcome> done) {
  return task_requests_->run(std::move(run), std::move(done));
}

void Node::create_function(std::string name, FunctionConfig config, CodeSource code, Callback<FunctionRecord> done) {
  if (Status known = check_given(options_, config, nullptr); !known) return done(fail(known.error()));
  control_->create(std::move(name), std::move(config), std::move(code), std::move(done));
}

Result<FunctionRecord> Node::get_function(const std::string& name) {
  const auto function = functions_.get(name);
  if (!function) return fail(function.error());
  return (*function)->record;
}

std::vector<FunctionRecord> Node::list_functions() {
  std::vector<FunctionRecord> records;
  for (const auto& [name, function] : functions_.all()) {
    if (!is_trial(name)) records.push_back(function.record);
  }
  return records;
}

std::optional<CallSignature> Node::call_signature(const std::string& name) {
  const RegisteredFunction* function = functions_.find(name);
  if (function == nullptr) return std::nullopt;
  if (!function->kernel_task) return model_of(function->record.config).value_or(std::nullopt);
  return signature_of(
      function->is_pipeline() ? function->kernel_task->pipeline->interface : function->kernel_task->spec->task);
}

void Node::update_code(std::string name, CodeSource code, Callback<FunctionRecord> done) {
  const auto before = functions_.get(name);
  const std::string scope = before ? model_scope((*before)->record) : "";
  control_->update_code(std::move(name), std::move(code),
                        [this, scope, done = std::move(done)](Result<FunctionRecord> changed) {
                          if (changed && model_scope(*changed) != scope) forget_models(scope);
                          done(std::move(changed));
                        });
}

void Node::update_config(std::string name, FunctionConfig config, Callback<FunctionRecord> done) {
  const RegisteredFunction* const function = functions_.find(name);
  const FunctionConfig* const before = function == nullptr ? nullptr : &function->record.config;
  if (Status known = check_given(options_, config, before); !known) return done(fail(known.error()));
  control_->update_config(std::move(name), std::move(config),
                          [this, done = std::move(done)](Result<FunctionRecord> changed) {
                            if (changed) tell_consent(programs_->models(), *changed);
                            done(std::move(changed));
                          });
}

void Node::set_reserved_concurrency(std::string name, std::optional<int> limit, Callback<FunctionRecord> done) {
  control_->set_reserved_concurrency(name, limit, [this, name, done = std::move(done)](Result<FunctionRecord> changed) {
    if (changed) events_->function_changed(name);
    done(std::move(changed));
  });
}

void Node::forget_flow(const RegisteredFunction& flow) {
  if (flow.record.version == 0) {
    events_->function_removed(flow.record.name);
    scaling_->function_removed(flow.record.name);
  }
  charges_.forget(flow.flow);
  if (options_.sinks->latencies != nullptr) options_.sinks->latencies->forget(flow_name(flow.record));
  programs_->forget(flow.flow);
  forget_models(model_scope(flow.record));
}

void Node::forget_models(const std::string& scope) {
  if (ModelHost* const models = programs_->models()) models->scope_gone(scope);
}

void Node::delete_function(std::string name, std::function<void(Status)> done) {
  control_->remove(std::move(name), std::move(done));
}

Result<std::string> Node::log(const std::string& function, std::size_t tail_bytes) {
  if (Status known = check_invoke(function); !known) return fail(known.error());
  return log_tail(options_.host.log_dir, function, tail_bytes);
}

Result<TimedLog> Node::timed_log(const std::string& function, std::size_t tail_bytes) {
  if (Status known = check_invoke(function); !known) return fail(known.error());
  return fairlead::timed_log(options_.host.log_dir, function, tail_bytes);
}

void Node::history(std::uint64_t from, Callback<HistoryPage> done) {
  History* const history = notes_.history();
  if (history == nullptr) {
    return done(fail(Errc::kNotFound, "this node keeps no history; start it with --history above 0"));
  }
  history->read(from, History::kMaxPageBytes, std::move(done));
}

void Node::dead_letters(std::string function, std::size_t limit, Callback<std::vector<DeadLetter>> done) {
  kept_.store->list_dead_letters(std::move(function), limit, std::move(done));
}

NodeStatus Node::status() {
  const Core& core = driver_.core();
  NodeStatus status;
  status.version = node_version();
  status.policy = core.policy().policy().name;
  if (sharing_) status.sharing = sharing_mode_name(sharing_->mode());
  status.memory_policy = memory_policy_name(options_.core.memory_policy);
  status.uptime = monotonic_now() - life_.began;
  status.global_virtual_time = core.policy().global_virtual_time();
  status.draining = life_.is_ending;
  status.queued = core.policy().queued();
  status.counters = core.counters();
  status.instances = core.instances();
  status.resident = resident_memory();
  status.moves = memory_.moves();
  status.settings = {options_.core, options_.policy_options, options_.policy_options.get(kOverRun)};
  status.objects = objects_->usage();
  status.task_requests = task_requests_->status();
  status.graphs = graphs_->counters();
  status.events = events_->counters();
  status.damage = kept_.store->damage();
  status.spawner_obstacle = programs_->obstacle();
  status.spawner_restarts = programs_->spawner_restarts();
  status.device_servers = device_server_status(kernel_tasks_->servers());
  if (const ModelHost* const models = programs_->models()) status.models = model_status(models->views());
  status.functions = function_status(functions_, core, status.instances, control_->shares());
  if (options_.policy_options.by_tenant) status.tenants = tenant_status(functions_, core, tenants_);
  status.pipelines = pipelines_->status();
  status.slice_cuts = pipelines_->cuts();
  if (gpus_) status.gpus = gpu_status(device_views(driver_.core()), *gpus_);
  for (GpuStatus& gpu : status.gpus) {
    const std::string holder = pipelines_->holder(gpu.view.gpu);
    if (!holder.empty() && gpu.reason.empty()) gpu.reason = "held by pipeline " + holder;
  }
  return status;
}

}  // namespace fairlead
