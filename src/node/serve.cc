#include "node/serve.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/signal_set.hpp>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>

#include "base/byte_budget.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/spare_memory.h"
#include "decide/queueing/window.h"
#include "decide/sharing/measured_lanes.h"
#include "edge/lambda/lambda_outcome.h"
#include "gpu/mig_control.h"
#include "gpu/nvml.h"
#include "identity/secret_vault.h"
#include "model/software_gpu.h"
#include "node/checkpoint_backend.h"
#include "node/common_key.h"
#include "node/event_loop.h"
#include "node/front_door.h"
#include "node/gpu_sharing.h"
#include "node/jails.h"
#include "node/keys_and_secrets.h"
#include "node/latency_book.h"
#include "node/machine_name.h"
#include "node/node.h"
#include "node/node_status.h"
#include "node/node_warmth.h"
#include "node/own_rights.h"
#include "node/reload.h"
#include "node/serve_settings.h"
#include "node/traces/tracer.h"
#include "node/usage_meter.h"
#include "runtime/device_server/command_line.h"
#include "runtime/egress_network.h"
#include "runtime/writable_folder.h"
#include "store/state_lock.h"

namespace fairlead {
namespace {

namespace fs = std::filesystem;

bool uses_gpus(const ServeOptions& options) {
  return options.gpus != "0";
}

Result<GpuLibrary> gpu_library(const ServeOptions& options) {
  if (!uses_gpus(options)) return GpuLibrary{};
  if (options.software_gpu) return software_gpu_library(options.driver_dir);
  return system_gpu_library(options.driver_dir);
}

std::optional<ShimHostOptions> shim_options(const ServeOptions& options) {
  if (options.shim_library.empty()) {
    spdlog::warn(
        "libfairlead-shim.so is missing beside this program: functions run without it, their device memory "
        "stays where it is and their GPU time is taken from the clock");
    return std::nullopt;
  }
  ShimHostOptions shims;
  shims.library = options.shim_library;
  shims.backend = options.memory_backend;
  shims.uvm = options.uvm_mode;
  shims.host_memory = Bytes(static_cast<std::int64_t>(options.host_memory_bytes));
  if (shims.backend == wire::MemoryBackend::kCheckpoint) shims.host_memory = Bytes(0);  // the driver keeps the contents
  return shims;
}

ObjectStoreOptions object_options(const ServeOptions& options, const std::string& state_dir) {
  const auto bytes = [](std::uint64_t count) { return Bytes(static_cast<std::int64_t>(count)); };
  ObjectStoreOptions objects;
  objects.spill_dir = options.object_spill_dir.empty() ? state_dir + "/objects" : options.object_spill_dir;
  objects.memory_dir = options.object_memory_dir;
  if (objects.memory_dir.empty()) {  // without shared memory the page cache has to do
    objects.memory_dir =
        ::access("/dev/shm", W_OK) == 0 ? default_object_memory_dir(state_dir) : state_dir + "/object-memory";
  }
  objects.memory_limit = bytes(options.object_memory_bytes);
  objects.spill_limit = bytes(options.object_spill_bytes);
  objects.tenant_quota = bytes(options.object_quota_bytes);
  return objects;
}

// NVIDIA's library has machine code, which the software GPU does not run.
std::string cublas_choice(const ServeOptions& options) {
  return options.software_gpu && options.cublas == "auto" ? "off" : options.cublas;
}

DeviceServersOptions device_servers_options(const ServeOptions& options) {
  const auto bytes = [](std::uint64_t count) { return Bytes(static_cast<std::int64_t>(count)); };
  DeviceServersOptions servers;
  servers.one_for_all = options.task_isolation == TaskIsolation::kFence;
  const double trial = options.task_trial_seconds.value_or(servers.one_for_all ? kFenceTrialSeconds : 0);
  if (trial > 0) servers.trial_patience = from_seconds(trial);
  DeviceServerOptions server{.library_dir = options.driver_dir,
                             .cache = {.device = bytes(options.task_memory_bytes),
                                       .host = bytes(options.task_host_bytes),
                                       .eviction = options.task_eviction}};
  if (servers.one_for_all) server.spaces = AddressSpaces::kPerTenant;
  server.cublas = cublas_choice(options);
  server.trials = trial > 0;
  servers.arguments = device_server_arguments(server);
  server.spaces = AddressSpaces::kOne;
  server.trials = false;
  servers.own_arguments = device_server_arguments(server);
  return servers;
}

std::optional<ModelHostOptions> model_options(const ServeOptions& options) {
  if (options.model_memory_percent == 0) return std::nullopt;
  ModelHostOptions models;
  models.server = {"/proc/self/exe", "model-server"};
  if (!options.driver_dir.empty()) models.server.insert(models.server.end(), {"--gpu-library", options.driver_dir});
  models.memory_percent = options.model_memory_percent;
  models.tenant_percent = options.model_quota_percent;
  return models;
}

// Where somebody says how much runs at once, that is what runs.
void set_task_lanes(const ServeOptions& options, CoreOptions& core) {
  core.task_loads_per_gpu = 1;
  const bool is_measured = options.task_lanes ? *options.task_lanes == 0 : !options.slots.is_given;
  if (is_measured) {
    core.most_task_lanes = std::min(std::max(MeasuredLanes::kMost, core.slots_per_gpu), core.instances_per_gpu);
  } else {
    core.task_lanes = static_cast<std::size_t>(options.task_lanes.value_or(0));
  }
}

// A call may be answered by any node of a cluster, and a folder is on one machine.
std::string in_place_obstacle(const ServeOptions& options) {
  const char* const why = !options.store.empty() ? "--store, a store that other nodes have too"
                          : !options.peers.empty() || !options.advertise.empty() ? "--peer"
                                                                                 : nullptr;
  if (why == nullptr) return "";
  return fmt::format("this node is one of a cluster ({}), whose other machines do not have the folder", why);
}

NodeOptions node_options(const ServeOptions& options, const std::string& state_dir, const GpuLibrary& gpu) {
  NodeOptions node;
  node.state_dir = state_dir;
  node.store = {.url = options.store,
                .password_file = options.store_password_file,
                .node_name = options.node_name.empty() ? machine_name() : options.node_name};
  node.runs_nothing = !uses_gpus(options);
  node.policy = options.policy;
  node.policy_options.set(kOverRun, from_seconds(options.over_run_seconds));
  node.policy_options.ttl_factor = options.ttl_factor;
  node.policy_options.by_tenant = !options.ignore_tenants;
  node.tenants = options.tenants;
  node.core.slots_per_gpu = static_cast<std::size_t>(options.slots.most);
  node.core.instances_per_gpu = static_cast<std::size_t>(options.instances_per_gpu);
  node.core.memory_policy = options.memory_policy;
  node.core.eviction = options.eviction;
  node.core.starts_per_gpu = static_cast<std::size_t>(options.starts_per_gpu);
  node.core.no_cold_duplicates = !options.cold_duplicates;
  set_task_lanes(options, node.core);
  node.core.queue_limit = static_cast<std::size_t>(options.queue_limit);
  node.host.state_dir = state_dir + "/instances";
  node.host.log_dir = state_dir + "/logs";
  node.host.spawner_program = "/proc/self/exe";  // this program, also after its file was replaced
  node.host.cpu.millicpus = static_cast<std::uint64_t>(options.instance_cpus * 1000);
  if (::geteuid() == 0 && options.instance_uids.count > 0 && options.sharing != SharingMode::kMps) {
    node.host.uids = std::make_shared<UidPool>(options.instance_uids.first, options.instance_uids.count);
  }
  node.objects = object_options(options, state_dir);
  node.gpu_access = gpu_access(gpu);
  node.device_servers = device_servers_options(options);
  const std::string jail_root = state_dir + "/instances/jail";
  node.pipeline_programs = program_launcher(jail_root, node.host.cpu.millicpus, node.host.uids);
  if (!options.no_jail) {
    jail_device_servers(options, node.gpu_access, jail_root, node.host.uids, node.device_servers);
    node.images.launcher = image_tool_launcher(jail_root, options.registries);
  }
  node.volumes = options.volumes;
  node.in_place_obstacle = in_place_obstacle(options);
  node.host.egress = options.egress;
  node.images.registries = RegistryRules::parse(options.registries).value_or(RegistryRules());
  // MIG slices are made by who has CAP_SYS_ADMIN: NVIDIA's driver asks for that.
  node.give_up_rights = [is_mig = options.sharing == SharingMode::kMig] { return give_up_rights(is_mig); };
  node.shims = shim_options(options);
  node.models = model_options(options);
  if (node.models && !options.no_jail) {
    node.models->launcher =
        model_server_launcher(options, node.gpu_access, state_dir + "/instances/jail", node.host.uids);
  }
  node.history_bytes = options.history_bytes;
  node.scale_to_zero = from_seconds(options.scale_to_zero_seconds);
  node.start_ahead = options.start_ahead;
  const auto bytes = [](std::uint64_t count) { return Bytes(static_cast<std::int64_t>(count)); };
  node.pipeline_memory = {.node = bytes(options.pipeline_memory_bytes),
                          .function = bytes(options.pipeline_function_memory_bytes)};
  node.pipeline_claims.idle = from_seconds(options.pipeline_idle_seconds);
  node.pipeline_claims.turn = from_seconds(options.pipeline_turn_seconds);
  node.events.first_retry = from_seconds(options.event_retry_seconds);
  node.memory = std::make_shared<ByteBudget>(options.request_memory_bytes);
  node.events.bytes = options.event_memory_bytes;
  node.failure_words = {.document = lambda_payload, .text = lambda_failure_text};
  return node;
}

// OpenTelemetry's names for them. What an operator says comes last, and counts where a name stands twice.
Result<SpanExporterOptions> exporter_options(const ServeOptions& options) {
  auto collector = parse_collector(options.otlp);
  if (!collector) return fail(collector.error());
  SpanExporterOptions exporter;
  exporter.endpoint = std::move(collector->endpoint);
  exporter.target = std::move(collector->target);
  const std::string name = options.node_name.empty() ? machine_name() : options.node_name;
  std::map<std::string, std::string> resource{
      {"service.name", "fairlead"}, {"service.version", node_version()}, {"service.instance.id", name}};
  for (const std::string& attribute : options.otlp_attributes) {
    const std::size_t equals = attribute.find('=');
    resource[attribute.substr(0, equals)] = attribute.substr(equals + 1);
  }
  exporter.resource.assign(resource.begin(), resource.end());
  return exporter;
}

identity::SecretKeySource secret_key_source(const ServeOptions& options) {
  identity::SecretKeySource source{.file = options.secret_key, .made = options.state_dir + "/secret-key"};
  if (!options.secret_key_command.empty()) source.command = {"/bin/sh", "-c", options.secret_key_command};
  if (const char* folder = std::getenv("CREDENTIALS_DIRECTORY")) {
    source.credential = folder + std::string("/fairlead-secret-key");
  }
  return source;
}

SharingOptions sharing_options(const ServeOptions& options) {
  SharingOptions sharing;
  sharing.mode = options.sharing;
  sharing.state_dir = options.state_dir;
  sharing.library_dir = options.driver_dir;
  sharing.dynamic_slots = options.slots.is_dynamic;
  sharing.slots_per_gpu = static_cast<std::size_t>(options.slots.most);
  sharing.slots_per_slice = static_cast<std::size_t>(options.slots.per_slice());
  return sharing;
}

// A daemon refuses clients beyond its limit, so no more instances may be there. Asks NVML, which starts no threads, as
// the CUDA driver does: the node has yet to fork.
Status limit_to_mps_clients(const GpuLibrary& library, CoreOptions& core) {
  const auto nvml = Nvml::load(library.dir);
  if (!nvml) return fail(nvml.error());
  const std::size_t clients = mps_client_limit((*nvml)->cuda_version());
  if (core.instances_per_gpu > clients) {
    spdlog::warn("an MPS daemon serves {} clients: the pool is {} instances per GPU instead of {}", clients, clients,
                 core.instances_per_gpu);
    core.instances_per_gpu = clients;
    core.most_task_lanes = std::min(core.most_task_lanes, clients);
  }
  if (core.slots_per_gpu > clients) {
    return fail(Errc::kInvalidArgument, "--slots is {}, an MPS daemon serves {} clients at most", core.slots_per_gpu,
                clients);
  }
  return {};
}

// An instance takes about seven descriptors, a connection one.
void raise_descriptor_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

Status make_state_dir(const std::string& dir) {
  std::error_code error;
  fs::create_directories(dir, error);
  if (error) return fail(errno_error(error.value(), "create state folder " + dir));
  fs::permissions(dir, fs::perms::owner_all, error);
  return {};
}

// A folder that comes later would be missed by functions that are deployed for it, and one behind a link might be anywhere.
Status check_volume(const Volume& volume) {
  std::error_code error;
  const fs::path place = fs::canonical(volume.folder, error);
  if (error || !fs::is_directory(place, error)) {
    return fail(Errc::kInvalidArgument, "volume {}: {} is no folder of this machine{}; correct --volume", volume.name,
                volume.folder, error ? ": " + error.message() : "");
  }
  if (place == volume.folder) return {};
  return fail(Errc::kInvalidArgument, "volume {}: {} is by another name {}; offer that", volume.name, volume.folder,
              place.string());
}

Status check_volumes(const std::vector<Volume>& volumes) {
  for (const Volume& volume : volumes) {
    if (Status valid = check_volume(volume); !valid) return valid;
    const Status written = volume.writable ? check_writable_folder(volume.folder) : Status();
    if (!written) return fail(written.error().code, "volume {}: {}", volume.name, written.error().message);
  }
  return check_apart(volumes);
}

// While this process has one thread. A machine that has none runs functions all the same, but for those that ask for one.
void look_for_way_out(InstanceHostOptions& host) {
  if (host.egress.empty()) return;
  host.egress_obstacle = try_way_out();
  if (host.egress_obstacle.empty()) return;
  spdlog::warn("--egress: functions have no way out, and those that ask for one are refused: {}", host.egress_obstacle);
}

spdlog::level::level_enum log_level(const ServeOptions& options) {
  return spdlog::level::from_str(options.log_level);
}

void log_from(spdlog::level::level_enum level) {
  spdlog::default_logger_raw()->set_level(level);
}

NodeTuning tuning(const ServeOptions& options) {
  return {.queue_limit = static_cast<std::size_t>(options.queue_limit),
          .slots_per_gpu = static_cast<std::size_t>(options.slots.most),
          .slots_per_slice = static_cast<std::size_t>(options.slots.per_slice()),
          .tenants = options.tenants};
}

// A running node and what stops it. The first SIGTERM or SIGINT drains, a second one or the drain deadline ends at once.
class Server {
 public:
  Server(const ServeOptions& options, const RereadSettings& reread)
      : options_(options),
        reread_(reread),
        signals_(io_, SIGTERM, SIGINT, SIGHUP),
        drain_deadline_(io_),
        memory_timer_(io_) {}

  Status start() {
    const std::string& dir = options_.state_dir;
    if (Status valid = check_together(options_); !valid) return valid;
    if (Status there = check_volumes(options_.volumes); !there) return there;
    if (Status made = make_state_dir(dir); !made) return made;
    std::error_code ignored;
    fs::create_directories(dir + "/instances/jail", ignored);  // the root of jails is mounted there
    auto folder = store::StateLock::acquire(dir + "/instances");
    if (!folder) return fail(folder.error());
    instances_lock_.emplace(*std::move(folder));
    if (options_.software_gpu) spdlog::warn("{}", kSoftwareGpuIsolatesNothing);
    const auto library = gpu_library(options_);
    if (!library) return fail(library.error());
    NodeOptions settings = node_options(options_, dir, *library);
    if (options_.sharing == SharingMode::kMps) {
      if (Status limited = limit_to_mps_clients(*library, settings.core); !limited) return limited;
    }
    if (Status loaded = load_checkpoints(*library, settings); !loaded) return loaded;
    if (Status loaded = load_slice_driver(*library, settings); !loaded) return loaded;
    auto secrets = identity::SecretVault::open(dir, secret_key_source(options_));
    if (!secrets) return fail(secrets.error());
    secrets_ = *std::move(secrets);
    settings.secrets = [this](const std::string& tenant, const std::string& name) {
      return secrets_->reveal(tenant, name);
    };
    if (Status shared = share_documents(settings); !shared) return shared;
    prepare_watching(settings);
    const std::shared_ptr<ByteBudget> memory = settings.memory;
    look_for_way_out(settings.host);
    auto node = Node::create(io_, std::move(settings));
    if (!node) return fail(node.error());
    node_ = *std::move(node);
    if (Status watched = begin_watching(); !watched) return watched;
    if (Status used = use_gpus(*library); !used) return used;
    for (const std::string& lack : what_jails_lack(options_.no_jail)) spdlog::warn("{}", lack);
    spdlog::info("state in {}, policy {}", dir, options_.policy);
    NodeWarmth(*node_).set_bounds({.percent = options_.pin_percent,
                                   .tenant_percent = options_.pin_quota_percent,
                                   .staging = Bytes(static_cast<std::int64_t>(options_.host_memory_bytes))});
    const auto of_cluster = common_key(options_, kForApiKeys);
    if (!of_cluster) return fail(of_cluster.error());
    auto common = std::make_unique<KeysAndSecrets>(
        io_, KeysAndSecrets::Options{.state_dir = dir, .cluster = *of_cluster}, *secrets_);
    front_door_ =
        std::make_unique<FrontDoor>(io_, *node_, std::move(common), publish_documents(), memory, watching_.sinks);
    return front_door_->open(options_);
  }

  void run() {
    await_signal();
    watch_memory();
    EventLoop(io_, [this] { return node_->busy() || front_door_->is_forwarding(); }).run();
  }

 private:
  // What nodes of a common store have together besides functions. Before the node, which tells of changes once the loop runs.
  Status share_documents(NodeOptions& settings) {
    const auto key = common_key(options_, kForSecrets);
    if (!key) return fail(key.error());
    if (key->empty()) return {};
    secrets_->share(*key, publish_documents());
    settings.common = {
        .opened = [this](SharedStore& store) { store_of_cluster_ = &store; },
        .documents =
            [this](SharedDocuments documents) { front_door_->keys_and_secrets().adopt(std::move(documents)); }};
    return {};
  }
  PublishDocuments publish_documents() {
    return [this](const DocumentChanges& changes) { return store_of_cluster_->change_documents(changes); };
  }

  // Before the node: it is told of them. What has a thread begins after it, because the node forks.
  void prepare_watching(NodeOptions& settings) {
    if (!options_.otlp.empty()) watching_.tracer = std::make_unique<Tracer>(options_.otlp_ratio);
    watching_.sinks = {.traces = watching_.tracer.get(), .usage = nullptr, .latencies = &watching_.latencies};
    settings.sinks = &watching_.sinks;
  }
  Status begin_watching() {
    auto usage = UsageMeter::open(
        io_, {.state_dir = options_.state_dir, .days = options_.usage_days, .wall_clock_ms = wall_clock_ms});
    if (!usage) return fail(usage.error());
    watching_.usage = *std::move(usage);
    watching_.sinks.usage = watching_.usage.get();
    if (!watching_.tracer) return {};
    auto exporter = exporter_options(options_);
    if (!exporter) return fail(exporter.error());
    spdlog::info("traces go to {}{}", exporter->endpoint.text, exporter->target);
    return watching_.tracer->start(*std::move(exporter));
  }

  Status load_checkpoints(const GpuLibrary& library, NodeOptions& settings) {
    if (!uses_gpus(options_) || !settings.shims || settings.shims->backend != wire::MemoryBackend::kCheckpoint)
      return {};
    auto backend = CheckpointBackend::load(library.dir);
    if (!backend) return fail(backend.error());
    checkpoints_ = *std::move(backend);
    settings.shims->mover = checkpoints_->mover();
    return {};
  }

  Status load_slice_driver(const GpuLibrary& library, NodeOptions& settings) {
    if (!options_.mig_reslice) return {};
    auto control = MigControl::load(library.dir);
    if (!control) return fail(control.error());
    const std::shared_ptr<MigControl> mig = *std::move(control);  // shared by its two uses
    settings.slice_driver = {
        .layouts = [mig] { return mig->layouts(); },
        .cut = [mig](const SliceCut& cut) { return mig->cut(cut.gpu_uuid, cut.destroy, cut.make); }};
    return {};
  }

  Status use_gpus(const GpuLibrary& library) {
    Result<std::unique_ptr<GpuMonitor>> gpus = GpuMonitor::none();
    if (uses_gpus(options_)) gpus = GpuMonitor::open(library.dir, options_.sharing == SharingMode::kMig);
    if (!gpus) return fail(gpus.error());
    if (!uses_gpus(options_)) spdlog::info("--gpus 0: a pure gateway, which runs nothing itself");
    for (const GpuSample& gpu : (*gpus)->samples()) {
      spdlog::info("GPU {}: {}, {:.0f} MiB", gpu.device.id.value(), gpu.device.name, gpu.device.memory.mib());
    }
    if (checkpoints_) {
      if (Status started = checkpoints_->start((*gpus)->samples()); !started) return started;
    }
    auto sharing = GpuSharing::create(io_, sharing_options(options_), (*gpus)->samples());
    if (!sharing) return fail(sharing.error());
    node_->use_gpus(*std::move(gpus), *std::move(sharing));
    return {};
  }

  void watch_memory() {
    constexpr Duration kPeriod = std::chrono::seconds(5);
    memory_timer_.expires_after(kPeriod);
    memory_timer_.async_wait([this](boost::system::error_code error) {
      if (error) return;
      const auto resident = [] { return static_cast<std::size_t>(resident_memory().count()); };
      if (spare_memory_.is_worth_returning(spare_bytes(), resident())) {
        return_spare_memory();
        spare_memory_.returned(resident());
      }
      watch_memory();
    });
  }

  void await_signal() {
    signals_.async_wait([this](boost::system::error_code error, int signal) {
      if (error) return;
      if (signal == SIGHUP) {
        reload();
        return await_signal();
      }
      if (stopping_) return io_.stop();
      stopping_ = true;
      spdlog::info("{}: finishing what was accepted, at most {:.0f} s", signal == SIGTERM ? "SIGTERM" : "SIGINT",
                   options_.drain_seconds);
      stop_gracefully();
      await_signal();
    });
  }

  // All or nothing: what is wrong in one place leaves every setting as it is.
  void reload() {
    if (!reread_) {
      return spdlog::info(
          "SIGHUP: the node runs on; it was started without --config, so there is nothing to read again");
    }
    const Result<ServeOptions> wanted = reread_();
    if (!wanted) return refuse(wanted.error());
    const Reload plan = plan_reload(options_, *wanted);
    if (Status together = check_together(plan.options); !together) return refuse(together.error());
    if (Status taken = node_->retune(tuning(plan.options)); !taken) return refuse(taken.error());
    log_from(std::min(log_level(options_), log_level(plan.options)));  // so that the change is seen in any case
    options_ = plan.options;
    for (const std::string& change : plan.changed) spdlog::info("SIGHUP: {}", change);
    for (const std::string& change : plan.unchanged) spdlog::warn("SIGHUP: {}", change);
    if (plan.changed.empty() && plan.unchanged.empty()) spdlog::info("SIGHUP: no setting has changed");
    log_from(log_level(options_));
  }

  static void refuse(const Error& error) { spdlog::error("SIGHUP: {}; nothing was changed", error.message); }

  void stop_gracefully() {
    front_door_->stop_listening();
    drain_deadline_.expires_after(from_seconds(options_.drain_seconds));
    drain_deadline_.async_wait([this](boost::system::error_code error) {
      if (error) return;
      spdlog::warn("invocations still run after {:.0f} s: they end now", options_.drain_seconds);
      io_.stop();
    });
    node_->drain([this] { front_door_->when_forwarded([this] { io_.stop(); }); });
  }

  ServeOptions options_;  // what the node runs with
  const RereadSettings reread_;
  // Held before anything of the folder is touched: what a start clears away, sockets above all, may be a running node's.
  std::optional<store::StateLock> instances_lock_;
  boost::asio::io_context io_{1};  // one thread runs it
  boost::asio::signal_set signals_;
  boost::asio::steady_timer drain_deadline_;
  boost::asio::steady_timer memory_timer_;
  SpareMemory spare_memory_;
  bool stopping_ = false;
  std::unique_ptr<CheckpointBackend> checkpoints_;  // none: memory moves in other ways
  std::unique_ptr<identity::SecretVault> secrets_;
  struct {
    std::unique_ptr<Tracer> tracer;  // null: no traces
    std::unique_ptr<UsageMeter> usage;
    LatencyBook latencies;
    RequestSinks sinks;  // the three
  } watching_;
  std::unique_ptr<Node> node_;
  SharedStore* store_of_cluster_ = nullptr;  // the node's
  std::unique_ptr<FrontDoor> front_door_;
};

}  // namespace

Status serve(const ServeOptions& options, const RereadSettings& reread) {
  init_log(options.log_level);
  raise_descriptor_limit();
  keep_large_blocks_apart();
  Server server(options, reread);
  if (Status started = server.start(); !started) {
    spdlog::error("{}", started.error().message);
    return started;
  }
  server.run();
  spdlog::info("stopped");
  return {};
}

}  // namespace fairlead
