#include <algorithm>
#include <charconv>
#include <csignal>
#include <filesystem>

#include "cli/commands.h"
#include "cli/places.h"
#include "queueing/policy.h"
#include "runtime/device_server/cublas.h"
#include "sharing/sharing_mode.h"

namespace fairlead::cli {
namespace {

std::vector<std::string> names_of_policies() {
  std::vector<std::string> names;
  for (std::string_view name : policy_names()) names.emplace_back(name);
  return names;
}

constexpr int kMaxSlots = 64;
constexpr int kMaxTaskLanes = 64;
constexpr int kDefaultDynamicSlots = 8;

// "N", "auto" or "auto:MAX".
void set_slots(ServeOptions& options, const std::string& text) {
  constexpr std::string_view kAuto = "auto";
  const bool is_dynamic = std::string_view(text).starts_with(kAuto);
  std::string_view number = text;
  if (is_dynamic) number.remove_prefix(kAuto.size());
  if (is_dynamic && number.starts_with(':')) number.remove_prefix(1);
  int slots = kDefaultDynamicSlots;
  if (text != kAuto) {
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), slots);
    const bool is_number = error == std::errc() && end == number.data() + number.size();
    const bool has_colon = !is_dynamic || text[kAuto.size()] == ':';
    if (!is_number || !has_colon || slots < 1 || slots > kMaxSlots) {
      throw CLI::ValidationError("--slots", fmt::format("'{}' is neither a number between 1 and {}, nor auto, nor "
                                                         "auto:MAX with such a number",
                                                         text, kMaxSlots));
    }
  }
  options.gives_slots = true;
  options.dynamic_slots = is_dynamic;
  options.slots_per_gpu = slots;
  options.slots_per_slice = is_dynamic ? 1 : slots;
}

// "N" or "auto".
void set_task_lanes(ServeOptions& options, const std::string& text) {
  int lanes = 0;
  if (text != "auto") {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), lanes);
    const bool is_number = error == std::errc() && end == text.data() + text.size();
    if (!is_number || lanes < 1 || lanes > kMaxTaskLanes) {
      throw CLI::ValidationError(
          "--task-lanes", fmt::format("'{}' is neither auto nor a number between 1 and {}", text, kMaxTaskLanes));
    }
  }
  options.task_lanes = lanes;
}

void set_tenants(ServeOptions& options, const std::vector<std::string>& texts) {
  options.tenants.clear();
  for (const std::string& text : texts) {
    Result<TenantEntry> tenant = tenant_from(text);
    if (!tenant) throw CLI::ValidationError("--tenant", tenant.error().message);
    for (const TenantEntry& other : options.tenants) {
      if (other.name == tenant->name) throw CLI::ValidationError("--tenant", "'" + other.name + "' is given twice");
    }
    options.tenants.push_back(*std::move(tenant));
  }
}

void add_scheduling_options(CLI::App& command, ServeOptions& options) {
  command.add_option("--policy", options.policy, "Which invocation is next")
      ->check(CLI::IsMember(names_of_policies()))
      ->group("Scheduling");
  command
      .add_option("--over-run", options.over_run_seconds,
                  "T: seconds of GPU service a function may be ahead of the slowest one before it waits")
      ->check(CLI::Range(0.0, 86400.0))
      ->group("Scheduling");
  command
      .add_option("--ttl-factor", options.ttl_factor,
                  "alpha: an idle function counts as active for alpha times its mean time between invocations")
      ->check(CLI::Range(0.0, 1000.0))
      ->group("Scheduling");
  command
      .add_flag("--cold-duplicates", options.cold_duplicates,
                "Start another instance of a function even where a busy one is expected to be free sooner")
      ->group("Scheduling");
  command
      .add_option_function<std::vector<std::string>>(
          "--tenant", [&options](const std::vector<std::string>& texts) { set_tenants(options, texts); },
          "Fair between tenants first, then between the functions of each: a tenant's share against the others, and "
          "how "
          "many of its invocations may run at the same time. May be repeated; functions name theirs with the tag "
          "gpu:tenant, tenants not listed have weight 1, functions that name none are default's")
      ->type_name("NAME:WEIGHT[:MAX]")
      ->allow_extra_args(false)
      ->group("Scheduling");
  command
      .add_option("--starts", options.starts_per_gpu,
                  "Instances that may start at the same time on one GPU while invocations hold its slots; 0: a cold "
                  "start holds the slot of its invocation, as in the MQFQ-Sticky paper. Default: the cores, at most 4")
      ->check(CLI::Range(0, 64))
      ->group("Scheduling");
  command
      .add_option_function<std::string>(
          "--slots", [&options](const std::string& text) { set_slots(options, text); },
          "D: invocations that run on one GPU at the same time; auto or auto:MAX: as utilisation and memory allow, up "
          "to "
          "MAX [8]. A MIG slice has 1 unless a number is given")
      ->type_name("N|auto[:MAX]")
      ->default_str("2")
      ->group("Scheduling");
  command.add_option("--pool", options.instances_per_gpu, "Instances kept on one GPU, warm ones included")
      ->check(CLI::Range(1, 1024))
      ->group("Scheduling");
  command
      .add_option("--queue-limit", options.queue_limit,
                  "Invocations that may wait on this node; more are refused as throttled")
      ->check(CLI::Range(1, 1'000'000))
      ->group("Scheduling");
}

void add_memory_options(CLI::App& command, ServeOptions& options) {
  command
      .add_option(
          "--memory-policy", options.memory_policy,
          "Device memory of idle instances: none leaves it and stops instances when it is short; prefetch moves it "
          "to the host when a chosen invocation needs the room, and back ahead of use; prefetch-swap also moves out "
          "what throttled and inactive functions hold for what is about to run")
      ->check(CLI::IsMember({"none", "prefetch", "prefetch-swap"}))
      ->group("Memory");
  command
      .add_option(
          "--eviction", options.eviction,
          "Which idle memory, or instance, goes first: lru the least recently used, inactive-first the same but "
          "instances of throttled and inactive functions before others, cost the one that is least likely to be "
          "needed soon and cheapest to restart")
      ->check(CLI::IsMember({"lru", "inactive-first", "cost"}))
      ->group("Memory");
}

void add_gpu_options(CLI::App& command, ServeOptions& options) {
  command
      .add_option("--sharing", options.sharing,
                  "How kernels share a GPU: none (processes take turns), mps (side by side, in shares of the SMs), mig "
                  "(its slices only)")
      ->check(CLI::IsMember(sharing_mode_names()))
      ->group("GPU");
  CLI::Option* software =
      command.add_flag("--softgpu", options.software_gpu, "Use the software GPU that comes with fairlead")
          ->group("GPU");
  command
      .add_option("--gpu-library-dir", options.gpu_library_dir,
                  "Folder with libcuda.so.1 and libnvidia-ml.so.1; without it the system's are used")
      ->check(CLI::ExistingDirectory)
      ->excludes(software)
      ->group("GPU");
}

template <typename Map>
std::vector<std::string> keys_of(const Map& map) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : map) keys.push_back(key);
  return keys;
}

void add_device_memory_options(CLI::App& command, ServeOptions& options) {
  command
      .add_option(
          "--memory-backend", options.memory_backend,
          "How device memory leaves and comes back: unmapped under its address (vmm), managed (uvm), with the whole "
          "process by the driver (checkpoint: needs NVIDIA's driver 570), never (none)")
      ->check(CLI::IsMember(keys_of(kMemoryBackends)))
      ->group("Device memory");
  command.add_option("--uvm-mode", options.uvm_mode, "With --memory-backend uvm: what is done beside managing it")
      ->check(CLI::IsMember(keys_of(kUvmModes)))
      ->group("Device memory");
  command
      .add_option("--host-memory", options.host_memory_bytes,
                  "Memory of this machine for device memory that has left its GPU, for example 8GiB; "
                  "0: it goes to memory of the functions")
      ->transform(CLI::AsSizeValue(false))
      ->group("Device memory");
}

constexpr std::uint64_t kLeastHistoryBytes = std::uint64_t{8} << 20;  // less would not hold a batch in each file
constexpr std::uint64_t kMostHistoryBytes = std::uint64_t{1} << 40;

CLI::Validator history_bound() {
  return CLI::Validator(
      [](const std::string& text) {
        const std::uint64_t bytes = std::stoull(text);
        if (bytes == 0 || (bytes >= kLeastHistoryBytes && bytes <= kMostHistoryBytes)) return std::string();
        return fmt::format("--history is {} bytes, it must be 0 or between {} and {}", bytes, kLeastHistoryBytes,
                           kMostHistoryBytes);
      },
      "SIZE");
}

void add_object_options(CLI::App& command, ServeOptions& options) {
  command
      .add_option("--object-memory", options.object_memory_bytes,
                  "Shared memory for objects, for example 8GiB; more of them go to disk, the least recently used first")
      ->transform(CLI::AsSizeValue(false))
      ->group("Objects");
  command.add_option("--object-spill", options.object_spill_bytes, "Disk for objects that memory has no room for")
      ->transform(CLI::AsSizeValue(false))
      ->group("Objects");
  command
      .add_option("--object-memory-dir", options.object_memory_dir,
                  "Folder in shared memory for objects [one of its own in /dev/shm]")
      ->group("Objects");
  command
      .add_option("--object-spill-dir", options.object_spill_dir, "Folder on disk for objects [in the state folder]")
      ->group("Objects");
  command.add_option("--object-quota", options.object_quota_bytes, "Memory and disk for the objects of one tenant")
      ->transform(CLI::AsSizeValue(false))
      ->group("Objects");
}

void add_kernel_task_options(CLI::App& command, ServeOptions& options) {
  command
      .add_option_function<std::string>(
          "--task-lanes", [&options](const std::string& text) { set_task_lanes(options, text); },
          "Calls of kernel tasks that run on one GPU at the same time while no program does; auto: from D up to 8, by "
          "what "
          "they take longer beside each other [auto, or D where --slots is given]")
      ->type_name("N|auto")
      ->group("Kernel tasks");
  command
      .add_option("--task-memory", options.task_memory_bytes,
                  "Device memory that the kernel tasks of one tenant may take on a GPU, or of all tenants with "
                  "--task-isolation fence; 0: what is free when the first of them starts")
      ->transform(CLI::AsSizeValue(false))
      ->group("Kernel tasks");
  command
      .add_option("--task-host-memory", options.task_host_bytes, "Host tier of their objects, for each device server")
      ->transform(CLI::AsSizeValue(false))
      ->group("Kernel tasks");
  command
      .add_option("--task-eviction", options.task_eviction,
                  "Which object leaves the device first: single-use those used once, lru the least recently used, cost "
                  "the one that is cheapest to bring back for what it is used")
      ->check(CLI::IsMember({"single-use", "lru", "cost"}))
      ->group("Kernel tasks");
  command
      .add_option("--task-isolation", options.task_isolation,
                  "What keeps kernel tasks of different tenants apart: process a device server for each tenant, fence "
                  "one for all, with each module rewritten so that it reaches its tenant's memory only")
      ->check(CLI::IsMember({"process", "fence"}))
      ->group("Kernel tasks");
  command
      .add_option(
          "--cublas", options.cublas,
          "What multiplies matrices for the built-in library of kernel tasks: auto cuBLAS where the system has it "
          "and the GPU is none of software, off the library's own kernels, or a file, for example "
          "/usr/local/cuda/lib64/libcublas.so.12")
      ->type_name("auto|off|PATH")
      ->group("Kernel tasks");
  command
      .add_option("--task-trial", options.task_trial_seconds,
                  "Load each new module of a kernel task in a process of its own first, which has so many seconds for "
                  "it; 0: do not [30 with --task-isolation fence, else 0]")
      ->check(CLI::Range(0.0, 3600.0))
      ->group("Kernel tasks");
}

// Here, not in the first device server: that starts with the first task.
Status check_cublas(ServeOptions& options) {
  if (options.cublas == "auto" || options.cublas == "off") return {};
  std::error_code ignored;
  options.cublas = std::filesystem::absolute(options.cublas, ignored).lexically_normal().string();
  if (Status loaded = Cublas::check_library(options.cublas); !loaded) {
    return fail(Errc::kInvalidArgument, "--cublas: {}", loaded.error().message);
  }
  return {};
}

// What a node lacks to start is neither a function nor another node, which the other statuses are for.
int report_start(Cli& cli, const Error& error) {
  cli.report(error);
  return error.code == Errc::kInvalidArgument ? kUsage : kFailed;
}

int run_serve(Cli& cli, ServeOptions options, const Serve& serve) {
  std::signal(SIGHUP, SIG_IGN);  // until the node handles it: a library that is looked at below takes its time
  std::error_code ignored;
  if (options.state_dir.empty()) options.state_dir = default_state_dir();
  options.state_dir = std::filesystem::absolute(options.state_dir, ignored).lexically_normal().string();
  if (!options.gpu_library_dir.empty()) {
    options.gpu_library_dir = std::filesystem::absolute(options.gpu_library_dir, ignored).lexically_normal().string();
  }
  if (options.software_gpu) {
    Result<std::string> folder = software_gpu_dir();
    if (!folder) return report_start(cli, folder.error());
    options.gpu_library_dir = *std::move(folder);
  }
  if (Status cublas = check_cublas(options); !cublas) return report_start(cli, cublas.error());
  if (Result<std::string> library = shim_library()) options.shim_library = *std::move(library);
  return serve(options);
}

// --over-run is FAIRLEAD_SERVE_OVER_RUN in the environment, with the same type, bounds and help. The command line and the
// configuration file win over it.
void name_variables(CLI::App& command) {
  for (CLI::Option* option : command.get_options()) {
    if (option == command.get_help_ptr()) continue;
    std::string name = "FAIRLEAD_SERVE_" + option->get_lnames().front();
    std::replace(name.begin(), name.end(), '-', '_');
    std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::toupper(c); });
    option->envname(name);
  }
}

}  // namespace

void add_serve(Cli& cli, Serve serve) {
  auto options = std::make_shared<ServeOptions>();  // shared: the parser writes it, the command reads it
  CLI::App& command =
      cli.add_command("serve", "Run a node: functions, queues and GPUs of this machine",
                      [&cli, options, serve = std::move(serve)] { return run_serve(cli, *options, serve); });
  command.option_defaults()->always_capture_default();
  command.add_option("--state", options->state_dir,
                     "Folder that holds functions, queued events and logs [" + default_state_dir() + "]");
  command.add_option("--listen", options->listen, "Address to answer at: HOST:PORT or unix:/PATH; may be repeated")
      ->allow_extra_args(false);
  command.add_option("--drain", options->drain_seconds, "Seconds a graceful stop waits for running invocations")
      ->check(CLI::Range(0.0, 3600.0));
  command
      .add_option(
          "--history", options->history_bytes,
          "Disk for what `sim record` makes traces of, a line for each invocation, the oldest go first; 0: none")
      ->transform(CLI::AsSizeValue(false))
      ->check(history_bound());
  command.add_option("--log-level", options->log_level, "What is logged to stderr")
      ->check(CLI::IsMember({"debug", "info", "warn", "error", "off"}));
  add_scheduling_options(command, *options);
  add_memory_options(command, *options);
  add_gpu_options(command, *options);
  add_device_memory_options(command, *options);
  add_object_options(command, *options);
  add_kernel_task_options(command, *options);
  name_variables(command);
}

}  // namespace fairlead::cli
