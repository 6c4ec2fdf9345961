#include "node/serve_settings.h"

#include <algorithm>
#include <cctype>
#include <sstream>

#include "decide/queueing/policy.h"
#include "model/registry_rules.h"
#include "net/http_channel.h"
#include "net/http_listener.h"
#include "node/traces/span_exporter.h"

namespace fairlead {
namespace {

constexpr int kMostSlots = 64;
constexpr double kMostCpus = 1024;
constexpr double kMostAhead = 10;
constexpr int kDefaultDynamicSlots = 8;
constexpr int kMostTaskLanes = 64;
constexpr int kMostStarts = 64;
constexpr int kMostInstances = 1024;
constexpr int kMostQueued = 1'000'000;
constexpr double kDaySeconds = 86400, kHourSeconds = 3600;
constexpr double kMostTtlFactor = 1000;
constexpr std::uint64_t kMostRequestBytes = std::uint64_t{1} << 40;
constexpr std::uint64_t kLeastHistoryBytes = std::uint64_t{8} << 20;  // less would not hold a batch in each file
constexpr std::uint64_t kMostHistoryBytes = std::uint64_t{1} << 40;

constexpr const char* kEighthOfMemory = "an eighth of the machine's memory, at most 16GiB";
constexpr const char* kQuarterOfMemory = "a quarter of the machine's memory, at most 64GiB";

// ---- types of this table alone

SettingType<std::string> socket_address() {
  SettingType<std::string> type = any_text("ADDRESS", "HOST:PORT or unix:/PATH");
  type.read = [](const std::string& text) -> Result<std::string> {
    if (const auto parsed = net::parse_socket_address(text); !parsed) return fail(parsed.error());
    return text;
  };
  return type;
}

SettingType<std::string> peer_url() {
  SettingType<std::string> type = any_text("URL", "http://HOST:PORT, https://HOST:PORT or unix:/PATH");
  type.read = [](const std::string& text) -> Result<std::string> {
    if (const auto parsed = net::parse_endpoint(text); !parsed) return fail(parsed.error());
    return text;
  };
  return type;
}

SettingType<std::string> collector_url() {
  SettingType<std::string> type = any_text("URL", "http://HOST:PORT[/PATH], https://HOST:PORT[/PATH] or unix:/PATH");
  type.read = [](const std::string& text) -> Result<std::string> {
    if (const auto parsed = parse_collector(text); !parsed) return fail(parsed.error());
    return text;
  };
  return type;
}

SettingType<std::string> resource_attribute() {
  const std::string bound = "NAME=VALUE, of at most 256 bytes in all";
  SettingType<std::string> type = any_text("NAME=VALUE", bound);
  type.read = [=](const std::string& text) -> Result<std::string> {
    const std::size_t equals = text.find('=');
    if (equals == 0 || equals == std::string::npos || text.size() > 256) return out_of_bound(bound);
    return text;
  };
  return type;
}

Status add_attribute(std::vector<std::string>& attributes, std::string attribute) {
  constexpr std::size_t kMost = 32;
  if (attributes.size() >= kMost) return fail(Errc::kInvalidArgument, "there are more than {} attributes", kMost);
  attributes.push_back(std::move(attribute));
  return {};
}

SettingType<std::string> policy_name() {
  std::vector<std::string> names;
  for (const std::string_view name : policy_names()) names.emplace_back(name);
  return one_of(names);
}

SettingType<SharingMode> sharing_mode() {
  std::vector<std::pair<std::string, SharingMode>> words;
  for (const std::string& name : sharing_mode_names()) words.emplace_back(name, *sharing_mode_from(name));
  return one_of(words);
}

template <typename T, typename Name>
SettingType<T> named(std::initializer_list<T> values, Name name_of) {
  std::vector<std::pair<std::string, T>> words;
  for (const T value : values) words.emplace_back(name_of(value), value);
  return one_of(words);
}

// "N", "auto" or "auto:MAX".
SettingType<SlotChoice> slot_choice() {
  constexpr std::string_view kAuto = "auto";
  const std::string bound = fmt::format("a number from 1 to {0}, or auto, or auto:MAX with such a number", kMostSlots);
  return {.form = "N|auto[:MAX]",
          .bound = bound,
          .read = [=](const std::string& text) -> Result<SlotChoice> {
            std::string_view number = text;
            const bool is_dynamic = number.starts_with(kAuto);
            if (number == kAuto) return SlotChoice{kDefaultDynamicSlots, true, true};
            if (is_dynamic) number.remove_prefix(kAuto.size());
            if (is_dynamic && !number.starts_with(':')) return out_of_bound(bound);
            if (is_dynamic) number.remove_prefix(1);
            const auto most = bounded_number(number, 1, kMostSlots);
            if (!most) return out_of_bound(bound);
            return SlotChoice{*most, is_dynamic, true};
          },
          .write = [](const SlotChoice& slots) -> std::string {
            if (!slots.is_given) return "";
            return slots.is_dynamic ? fmt::format("auto:{}", slots.most) : fmt::format("{}", slots.most);
          }};
}

// "N", or "auto" for 0.
SettingType<int> task_lane_choice() {
  const std::string bound = fmt::format("auto, or a whole number from 1 to {}", kMostTaskLanes);
  return {.form = "N|auto",
          .bound = bound,
          .read = [=](const std::string& text) -> Result<int> {
            if (text == "auto") return 0;
            const auto lanes = bounded_number(std::string_view(text), 1, kMostTaskLanes);
            if (!lanes) return out_of_bound(bound);
            return *lanes;
          },
          .write = [](const int& lanes) { return lanes == 0 ? "auto" : fmt::format("{}", lanes); }};
}

// "FIRST:COUNT", or "none".
SettingType<UidRange> uid_range() {
  constexpr std::uint32_t kLeast = 65536, kMost = 4'294'901'760;  // users of the host are below, 2^32 - 1 is nobody
  const std::string bound =
      fmt::format("FIRST:COUNT, users from {} to {} that nobody else has, or none", kLeast, kMost);
  return {.form = "FIRST:COUNT|none",
          .bound = bound,
          .read = [=](const std::string& text) -> Result<UidRange> {
            if (text == "none") return UidRange{0, 0};
            const std::size_t colon = text.find(':');
            if (colon == std::string::npos) return out_of_bound(bound);
            const auto first = bounded_number(std::string_view(text).substr(0, colon), kLeast, kMost);
            const auto count = bounded_number(std::string_view(text).substr(colon + 1), 1u, kMost);
            if (!first || !count || *count > kMost - *first) return out_of_bound(bound);
            return UidRange{*first, *count};
          },
          .write =
              [](const UidRange& range) {
                return range.count == 0 ? "none" : fmt::format("{}:{}", range.first, range.count);
              }};
}

SettingType<TenantEntry> tenant_entry() {
  return {.form = "NAME:WEIGHT[:MAX]",
          .bound = "NAME:WEIGHT or NAME:WEIGHT:MAX",
          .read = tenant_from,
          .write = [](const TenantEntry& tenant) {
            const std::string entry = fmt::format("{}:{}", tenant.name, tenant.share.weight);
            const auto& most = tenant.share.max_concurrency;
            return most ? fmt::format("{}:{}", entry, *most) : entry;
          }};
}

Status add_address(std::vector<std::string>& addresses, std::string address) {
  addresses.push_back(std::move(address));
  return {};
}

Status add_registries(std::vector<std::string>& registries, std::string text) {
  std::istringstream entries(text);
  for (std::string entry; std::getline(entries, entry, ',');) {
    if (const auto rules = RegistryRules::parse({entry}); !rules) return fail(rules.error());
    registries.push_back(entry);
  }
  return {};
}

SettingType<Volume> volume_entry() {
  return {.form = "NAME=FOLDER[:TENANT[:rw]]",
          .bound = "NAME=FOLDER, NAME=FOLDER:TENANT or NAME=FOLDER:TENANT:rw",
          .read = parse_volume,
          .write = [](const Volume& volume) {
            std::string entry = volume.name + "=" + volume.folder;
            if (volume.tenant.empty()) return entry;
            return entry + ":" + volume.tenant + (volume.writable ? ":rw" : "");
          }};
}

Status add_volume(std::vector<Volume>& volumes, Volume volume) {
  for (const Volume& other : volumes) {
    if (other.name == volume.name) return fail(Errc::kInvalidArgument, "volume '{}' is given twice", volume.name);
  }
  volumes.push_back(std::move(volume));
  return {};
}

SettingType<EgressGrant> egress_grant() {
  return {.form = "TENANT=LIST",
          .bound = "TENANT=none, TENANT=all or TENANT=LIST",
          .read = parse_egress_grant,
          .write = [](const EgressGrant& grant) { return grant.tenant + "=" + grant.list.text(); }};
}

Status add_egress(std::vector<EgressGrant>& grants, EgressGrant grant) {
  for (const EgressGrant& other : grants) {
    if (other.tenant == grant.tenant) {
      return fail(Errc::kInvalidArgument, "tenant '{}' is given a list twice: put all of it into one", grant.tenant);
    }
  }
  grants.push_back(std::move(grant));
  return {};
}

Status add_tenant(std::vector<TenantEntry>& tenants, TenantEntry tenant) {
  for (const TenantEntry& other : tenants) {
    if (other.name == tenant.name) return fail(Errc::kInvalidArgument, "tenant '{}' is given twice", tenant.name);
  }
  tenants.push_back(std::move(tenant));
  return {};
}

// Lanes that are measured begin at D; which of the two they are is fixed at the start.
bool slots_can_live(const ServeOptions& from, const ServeOptions& to) {
  if (from.slots.is_dynamic || to.slots.is_dynamic) return false;
  return from.slots.is_given == to.slots.is_given || from.task_lanes.has_value();
}

// ---- the table, a group at a time

using Options = ServeOptions;

ServeSettings address_settings() {
  return {
      ServeSetting::list<std::string>("listen", &Options::listen, socket_address(),
                                      "Address to answer at: HOST:PORT or unix:/PATH; may be repeated", add_address),
      ServeSetting::list<std::string>("grpc", &Options::grpc, socket_address(),
                                      "Address to speak gRPC at, for clients of models (Open Inference Protocol): "
                                      "HOST:PORT or unix:/PATH; may be repeated",
                                      add_address)
          .by_default("nowhere"),
      ServeSetting("open", &Options::open, yes_or_no(),
                   "Ask nobody for an API key who comes over loopback: every user and program of this machine is the "
                   "operator then; web pages stay out"),
      ServeSetting(
          "tls-certificate", &Options::tls_certificate, any_text("FILE", "a file"),
          "Speak TLS at every TCP address, with this certificate (PEM, and those up to its root); written anew, "
          "it is taken within seconds")
          .by_default("HTTP"),
      ServeSetting("tls-key", &Options::tls_key, any_text("FILE", "a file"), "Key of that certificate (PEM)")
          .by_default("none"),
      ServeSetting("tls-client-ca", &Options::tls_client_ca, any_text("FILE", "a file"),
                   "Let in only who shows a certificate of one of these authorities (PEM), beside a key")
          .by_default("everybody"),
      ServeSetting("no-tls", &Options::no_tls, yes_or_no(),
                   "Listen beyond loopback although keys, code and payloads travel in the clear: for a network that is "
                   "trusted, or behind a proxy that ends TLS")};
}

ServeSettings node_settings() {
  return {
      ServeSetting("state", &Options::state_dir, any_text("FOLDER", "a folder"),
                   "Folder that holds functions, queued events and logs")
          .by_default("$XDG_STATE_HOME/fairlead, else ~/.local/state/fairlead, else /var/lib/fairlead"),
      ServeSetting(
          "request-memory", &Options::request_memory_bytes, size_in({kLeastRequestMemory, kMostRequestBytes, false}),
          "Memory for what callers send and are sent: large bodies, from their arrival to the answer, answers, "
          "asynchronous invocations, results of graphs, replies kept for repeats; a tenant may hold as much as is "
          "left free")
          .by_default("an eighth of the machine's memory, 160 MiB to 2 GiB"),
      ServeSetting(
          "event-memory", &Options::event_memory_bytes, size_in({std::uint64_t{16} << 20, kMostRequestBytes, false}),
          "What of request-memory asynchronous invocations that are not over may have, of which a tenant may hold as "
          "much as is left free")
          .by_default("an eighth of the machine's memory, 160 MiB to 2 GiB"),
      ServeSetting("secret-key", &Options::secret_key, any_text("FILE", "a file"),
                   "File with the key under which secrets of functions are kept: 64 hexadecimal digits")
          .by_default("systemd's credential fairlead-secret-key, else secret-key in the state folder, which is made"),
      ServeSetting(
          "secret-key-command", &Options::secret_key_command, any_text("COMMAND", "a command"),
          "Command that prints this key, for example a key management service's client; run once, at the start")
          .by_default("none"),
      ServeSetting(
          "instance-uids", &Options::instance_uids, uid_range(),
          "Where the node is run by root: users of the host for instances, one each, so that none uses up what "
          "the kernel counts by user; none, or with --sharing mps, whose daemon serves one user: all are one"),
      ServeSetting(
          "instance-cpus", &Options::instance_cpus, factor_number(0, kMostCpus),
          "Processors that one instance may keep busy; 0: as many as there are, in equal shares while they are "
          "short"),
      ServeSetting("no-jail", &Options::no_jail, yes_or_no(),
                   "Run servers and image tools with the node's own rights, although they read what strangers "
                   "wrote: for a driver that does not work in namespaces of its own"),
      ServeSetting("drain", &Options::drain_seconds, seconds_number(0, kHourSeconds),
                   "Seconds a graceful stop waits for running invocations")
          .live(),
      ServeSetting(
          "history", &Options::history_bytes, size_in({kLeastHistoryBytes, kMostHistoryBytes, true}),
          "Disk for what `sim record` makes traces of, a line for each invocation, the oldest go first; 0: none"),
      ServeSetting("event-retry", &Options::event_retry_seconds, seconds_number(0, kHourSeconds),
                   "Seconds before an asynchronous invocation that failed is tried again; the next time twice that"),
      ServeSetting("scale-to-zero", &Options::scale_to_zero_seconds, seconds_number(0, kHourSeconds),
                   "Seconds without a call after which a function that the node scales (tag gpu:autoscale) has no "
                   "instance"),
      ServeSetting("log-level", &Options::log_level, one_of({"debug", "info", "warn", "error", "off"}),
                   "What is logged to stderr")
          .live(),
  };
}

ServeSettings pipeline_settings() {
  return {
      ServeSetting("pipeline-memory", &Options::pipeline_memory_bytes, size_in({}),
                   "Host memory for tensors between the stages of pipelines, of all together; it is pinned")
          .by_default("a quarter of the machine's memory, at most 64 GiB"),
      ServeSetting("pipeline-function-memory", &Options::pipeline_function_memory_bytes, size_in({}),
                   "The same of one function, whose pipelines hold it while one drains and the next runs"),
      ServeSetting("pipeline-idle", &Options::pipeline_idle_seconds, seconds_number(0, kHourSeconds),
                   "Seconds without a call after which other functions that wait may have the slices of a pipeline"),
      ServeSetting(
          "pipeline-turn", &Options::pipeline_turn_seconds, seconds_number(1, 45),
          "Seconds that a call of a pipeline without slices waits at most before one that is in use gives its own up, "
          "if that has had them for as long"),
      ServeSetting("mig-reslice", &Options::mig_reslice, yes_or_no(),
                   "Cut idle slices anew for a pipeline that fits on none of them; needs --sharing mig"),
  };
}

ServeSettings watching_settings() {
  return {
      ServeSetting(
          "otlp", &Options::otlp, collector_url(),
          "OpenTelemetry collector to send traces of requests to, as OTLP over HTTP in JSON; without a path, to "
          "/v1/traces")
          .by_default("no traces"),
      ServeSetting("otlp-ratio", &Options::otlp_ratio, factor_number(0, 1),
                   "Part of the requests whose traces are kept, of those whose callers do not say so themselves"),
      ServeSetting::list<std::string>("otlp-attribute", &Options::otlp_attributes, resource_attribute(),
                                      "Attribute that all spans of this node have, beside service.name, "
                                      "service.version and service.instance.id; may be repeated",
                                      add_attribute)
          .by_default("none"),
      ServeSetting("usage-days", &Options::usage_days, whole_number(1, 3660),
                   "Days that records of what tenants used are kept (fairlead usage)"),
  };
}

ServeSettings image_settings() {
  return {
      ServeSetting::list<std::string>(
          "registries", &Options::registries,
          any_text("REGISTRY,...", "public, none, HOST, HOST:PORT or *.DOMAIN, or several of them with commas"),
          "Registries that images may come from: public any host over TLS at port 443 whose addresses are all global; "
          "HOST, HOST:PORT or *.DOMAIN one that is listed, wherever it is, with the hosts that it sends clients on to; "
          "none no registry. May be repeated",
          add_registries),
      ServeSetting::list<Volume>("volume", &Options::volumes, volume_entry(),
                                 "Folder of this machine that a function with the tag gpu:volumes = NAME sees, read "
                                 "only and at the same path; "
                                 "with :TENANT only functions of that tenant, and with :rw those write to it that ask "
                                 "for NAME:rw. May be repeated",
                                 add_volume)
          .by_default("no folders"),
      ServeSetting::list<EgressGrant>(
          "egress", &Options::egress, egress_grant(),
          "Where functions of a tenant may connect to at most, if they ask with the tag gpu:egress: all is every "
          "public "
          "address; else NAME, *.DOMAIN, ADDRESS or ADDRESS/BITS, each with :PORT or without, with commas. Private "
          "addresses only by their own entry; the node itself never. May be repeated, once for a tenant",
          add_egress)
          .by_default("nowhere"),
  };
}

ServeSettings openfaas_settings() {
  return {
      ServeSetting::list<std::string>(
          "callbacks", &Options::callbacks,
          any_text("HOST,...", "public, none, HOST, HOST:PORT or *.DOMAIN, or several of them with commas"),
          "Where callbacks of asynchronous calls (X-Callback-Url) may go: public any host over TLS at port 443 whose "
          "addresses are all global; HOST, HOST:PORT or *.DOMAIN one that is listed, wherever it is; none nowhere. May "
          "be "
          "repeated",
          add_registries),
      ServeSetting(
          "open-functions", &Options::open_functions, yes_or_no(),
          "Let whoever reaches the node call functions at /function/NAME and /async-function/NAME without a key, as "
          "OpenFaaS does; everything else asks for one as before"),
  };
}

ServeSettings scheduling_settings() {
  return {
      ServeSetting("policy", &Options::policy, policy_name(), "Which invocation is next"),
      ServeSetting(
          "start-ahead", &Options::start_ahead, factor_number(0, kMostAhead),
          "Instances of a function that the node scales are started ahead of need, and parked, for so many times "
          "its usual rate; 0: none is"),
      ServeSetting("over-run", &Options::over_run_seconds, seconds_number(0, kDaySeconds),
                   "T: seconds of GPU service a function may be ahead of the slowest one before it waits"),
      ServeSetting("ttl-factor", &Options::ttl_factor, factor_number(0, kMostTtlFactor),
                   "alpha: an idle function counts as active for alpha times its mean time between invocations"),
      ServeSetting("cold-duplicates", &Options::cold_duplicates, yes_or_no(),
                   "Start another instance of a function even where a busy one is expected to be free sooner"),
      ServeSetting::list<TenantEntry>(
          "tenant", &Options::tenants, tenant_entry(),
          "A tenant's share against the others, and how many of its invocations may run at the same time: the node is "
          "fair between tenants first, then between the functions of each. May be repeated; functions name theirs "
          "with the tag gpu:tenant, tenants not listed have weight 1, functions that name none are default's",
          add_tenant)
          .by_default("all have weight 1")
          .live(),
      ServeSetting(
          "ignore-tenants", &Options::ignore_tenants, yes_or_no(),
          "Fair between functions alone, whoever's they are: a tenant with more functions gets more, and one of "
          "short calls may keep others waiting for --over-run"),
      ServeSetting("starts", &Options::starts_per_gpu, whole_number(0, kMostStarts),
                   "Instances that may start at the same time on one GPU while invocations hold its slots; 0: a cold "
                   "start holds the slot of its invocation, as in the MQFQ-Sticky paper")
          .by_default(fmt::format("the machine's cores, at most {}", kMostDefaultStarts)),
      ServeSetting(
          "slots", &Options::slots, slot_choice(),
          fmt::format("D: invocations that run on one GPU at the same time; auto or auto:MAX: as utilisation and "
                      "memory allow, up to MAX [{}]. A MIG slice has 1 unless a number is given",
                      kDefaultDynamicSlots))
          .also("tokens")  // its old name, for one release
          .by_default(fmt::format("{}", SlotChoice().most))
          .live_when(slots_can_live, "from one number to another"),
      ServeSetting("pool", &Options::instances_per_gpu, whole_number(1, kMostInstances),
                   "Instances kept on one GPU, warm ones included"),
      ServeSetting("queue-limit", &Options::queue_limit, whole_number(1, kMostQueued),
                   "Invocations that may wait on this node; more are refused as throttled")
          .live(),
  };
}

ServeSettings memory_settings() {
  return {
      ServeSetting(
          "memory-policy", &Options::memory_policy,
          named({MemoryPolicy::kNone, MemoryPolicy::kPrefetch, MemoryPolicy::kPrefetchSwap}, memory_policy_name),
          "Device memory of idle instances: none leaves it and stops instances when it is short; prefetch moves "
          "it to the host when a chosen invocation needs the room, and back ahead of use; prefetch-swap also "
          "moves out what throttled and inactive functions hold for what is about to run"),
      ServeSetting(
          "eviction", &Options::eviction,
          named({EvictionKind::kLru, EvictionKind::kInactiveFirst, EvictionKind::kCost}, eviction_name),
          "Which idle memory, or instance, goes first: lru the least recently used, inactive-first the same but "
          "instances of throttled and inactive functions before others, cost the one that is least likely to be "
          "needed soon and cheapest to restart"),
  };
}

ServeSettings sharing_settings() {
  return {
      ServeSetting(
          "sharing", &Options::sharing, sharing_mode(),
          "How kernels share a GPU: none (processes take turns), mps (side by side, in shares of the SMs), mig "
          "(its slices only)"),
      ServeSetting("gpus", &Options::gpus, one_of({"all", "0"}),
                   "all, or 0: a pure gateway, which gives every call to another node of its cluster and runs nothing"),
      ServeSetting("softgpu", &Options::software_gpu, yes_or_no(), "Use the software GPU that comes with fairlead"),
      ServeSetting("gpu-library-dir", &Options::gpu_library_dir, existing_folder(),
                   "Folder with libcuda.so.1 and libnvidia-ml.so.1")
          .by_default("the system's"),
  };
}

ServeSettings device_memory_settings() {
  using wire::MemoryBackend, wire::UvmMode;
  return {
      ServeSetting("memory-backend", &Options::memory_backend,
                   one_of<MemoryBackend>({{"vmm", MemoryBackend::kVmm},
                                          {"uvm", MemoryBackend::kUvm},
                                          {"checkpoint", MemoryBackend::kCheckpoint},
                                          {"none", MemoryBackend::kNone}}),
                   "How device memory leaves and comes back: unmapped under its address (vmm), managed (uvm), with the "
                   "whole process by the driver (checkpoint: needs NVIDIA's driver 570), never (none)"),
      ServeSetting("uvm-mode", &Options::uvm_mode,
                   one_of<UvmMode>({{"plain", UvmMode::kPlain},
                                    {"advise", UvmMode::kAdvise},
                                    {"prefetch", UvmMode::kPrefetch},
                                    {"prefetch-swap", UvmMode::kPrefetchSwap}}),
                   "With --memory-backend uvm: what is done beside managing it"),
      ServeSetting(
          "host-memory", &Options::host_memory_bytes, size_in({}),
          "Memory of this machine for device memory that has left its GPU; 0: it goes to memory of the functions")
          .by_default(kQuarterOfMemory),
      ServeSetting("model-memory", &Options::model_memory_percent, whole_number<int>(0, 100),
                   "Per cent of a GPU's memory for models that programs share; 0: they share none"),
      ServeSetting("model-quota", &Options::model_quota_percent, whole_number<int>(1, 100),
                   "Per cent of --model-memory for the models of one tenant"),
      ServeSetting("pin-memory", &Options::pin_percent, whole_number<int>(0, 100),
                   "Per cent of a GPU's memory, and of --host-memory, for functions that are pinned there; 0: none is"),
      ServeSetting("pin-quota", &Options::pin_quota_percent, whole_number<int>(1, 100),
                   "Per cent of --pin-memory for the functions of one tenant, where there are several"),
  };
}

ServeSettings object_settings() {
  return {
      ServeSetting("object-memory", &Options::object_memory_bytes, size_in({}),
                   "Shared memory for objects; more of them go to disk, the least recently used first")
          .by_default(kEighthOfMemory),
      ServeSetting("object-spill", &Options::object_spill_bytes, size_in({}),
                   "Disk for objects that memory has no room for"),
      ServeSetting("object-memory-dir", &Options::object_memory_dir, any_text("FOLDER", "a folder"),
                   "Folder in shared memory for objects")
          .by_default("one of its own in /dev/shm"),
      ServeSetting("object-spill-dir", &Options::object_spill_dir, any_text("FOLDER", "a folder"),
                   "Folder on disk for objects")
          .by_default("in the state folder"),
      ServeSetting("object-quota", &Options::object_quota_bytes, size_in({}),
                   "Memory and disk for the objects of one tenant"),
  };
}

ServeSettings kernel_task_settings() {
  return {
      ServeSetting(
          "task-lanes", &Options::task_lanes, optional(task_lane_choice()),
          "Calls of kernel tasks that run on one GPU at the same time while no program does; auto: from D up to "
          "8, by what they take longer beside each other")
          .by_default("auto, or D where --slots is given"),
      ServeSetting("task-memory", &Options::task_memory_bytes, size_in({}),
                   "Device memory that the kernel tasks of one tenant may take on a GPU, or of all tenants with "
                   "--task-isolation fence; 0: what is free when the first of them starts"),
      ServeSetting("task-host-memory", &Options::task_host_bytes, size_in({}),
                   "Host tier of their objects, for each device server")
          .by_default(kEighthOfMemory),
      ServeSetting(
          "task-eviction", &Options::task_eviction,
          named({CacheEviction::kSingleUse, CacheEviction::kLru, CacheEviction::kCost}, cache_eviction_name),
          "Which object leaves the device first: single-use those used once, lru the least recently used, cost "
          "the one that is cheapest to bring back for what it is used"),
      ServeSetting("task-isolation", &Options::task_isolation,
                   one_of<TaskIsolation>({{"process", TaskIsolation::kProcess}, {"fence", TaskIsolation::kFence}}),
                   "What keeps kernel tasks of different tenants apart: process a device server for each tenant, fence "
                   "one for all, with each module rewritten so that it reaches its tenant's memory only"),
      ServeSetting(
          "cublas", &Options::cublas, any_text("auto|off|PATH", "auto, off or a file"),
          "What multiplies matrices for the built-in library of kernel tasks: auto cuBLAS where the system has "
          "it and the GPU is none of software, off the library's own kernels, or a file, for example "
          "/usr/local/cuda/lib64/libcublas.so.12"),
      ServeSetting("task-trial", &Options::task_trial_seconds, optional(seconds_number(0, kHourSeconds)),
                   "Load each new module of a kernel task in a process of its own first, which has so many seconds for "
                   "it; 0: do not")
          .by_default(fmt::format("{} with --task-isolation fence, else 0", kFenceTrialSeconds)),
  };
}

// What nodes send each other: calls, code and what they keep of it.
Status check_peers(const ServeOptions& options) {
  if (options.cluster_key.empty()) {
    if (options.peers.empty() && options.advertise.empty()) return {};
    return fail(Errc::kInvalidArgument,
                "--peer or --advertise is given, which needs --cluster-key: a file that all nodes have, made with "
                "'openssl rand -hex 32'");
  }
  std::vector<std::string> urls = options.peers;
  if (!options.advertise.empty()) urls.push_back(options.advertise);
  for (const std::string& url : urls) {
    const auto endpoint = net::parse_endpoint(url);
    if (!endpoint) return fail(endpoint.error());
    if (endpoint->speaks_tls || endpoint->is_local() || options.no_tls) continue;
    return fail(
        Errc::kInvalidArgument,
        "--peer or --advertise is '{}', which is beyond loopback, and calls, code and loads would travel in the clear: "
        "use https:// (docs/how-to/identity.md says how a node speaks TLS), or add --no-tls where the network is "
        "trusted",
        url);
  }
  return {};
}

// What comes from other machines needs a key, and should not be read on the way.
Status check_addresses(std::string_view setting, const std::vector<std::string>& addresses,
                       const ServeOptions& options) {
  for (const std::string& text : addresses) {
    if (net::is_local(text)) continue;
    if (options.open) {
      return fail(Errc::kInvalidArgument,
                  "{} is '{}', which other machines reach, and --open asks nobody for a key: leave --open out and give "
                  "keys with 'fairlead tenant add NAME', or listen on 127.0.0.1",
                  setting, text);
    }
    if (!options.no_tls && options.tls_certificate.empty()) {
      return fail(
          Errc::kInvalidArgument,
          "{} is '{}', which other machines reach, and keys, code and payloads would travel in the clear: make a "
          "certificate with 'fairlead certificate --host NAME' and give it with --tls-certificate and --tls-key, or "
          "add --no-tls where the network is trusted",
          setting, text);
    }
  }
  return {};
}

Status check_key_files(const ServeOptions& options) {
  if (options.tls_certificate.empty() != options.tls_key.empty()) {
    return fail(Errc::kInvalidArgument, "--tls-certificate is '{}' and --tls-key is '{}': give both or neither",
                options.tls_certificate, options.tls_key);
  }
  if (!options.secret_key.empty() && !options.secret_key_command.empty()) {
    return fail(Errc::kInvalidArgument, "--secret-key is '{}' and --secret-key-command is '{}': give one of them",
                options.secret_key, options.secret_key_command);
  }
  if (!options.tls_client_ca.empty() && options.tls_certificate.empty()) {
    return fail(Errc::kInvalidArgument, "--tls-client-ca is '{}', which needs --tls-certificate and --tls-key",
                options.tls_client_ca);
  }
  return {};
}

ServeSettings cluster_settings() {
  return {
      ServeSetting::list<std::string>(
          "peer", &Options::peers, peer_url(),
          "Another node of the cluster: http://HOST:PORT, https://HOST:PORT or unix:/PATH; may be repeated, and "
          "the same list may be given to all nodes",
          add_address)
          .by_default("none"),
      ServeSetting("cluster-key", &Options::cluster_key, any_text("FILE", "a file"),
                   "File with the key that all nodes of the cluster have, of 32 bytes or more, for its owner's eyes "
                   "alone; who has it "
                   "is a node")
          .by_default("no cluster"),
      ServeSetting("node-name", &Options::node_name, any_text("NAME", "a name"),
                   "What this node is called among others: letters, digits, '.', '_' and '-', another for each")
          .by_default("the machine's name"),
      ServeSetting("advertise", &Options::advertise, peer_url(),
                   "Where other nodes reach this one, if they do not list it")
          .by_default("the first address that it listens at"),
      ServeSetting(
          "store", &Options::store, any_text("URL", "postgresql://[USER@]HOST[:PORT]/DATABASE, without a password"),
          "Where functions and asynchronous invocations of all nodes are: postgresql://[USER@]HOST[:PORT]/DATABASE "
          "without a password, or ?host=FOLDER of its Unix socket")
          .by_default("this node's own, in the state folder"),
      ServeSetting("store-password-file", &Options::store_password_file, any_text("FILE", "a file"),
                   "File of mode 600 with the password of --store")
          .by_default("what PGPASSFILE names, or none"),
      ServeSetting("peer-ca", &Options::peer_ca, any_text("FILE", "a file"),
                   "Whom to believe at https:// peers (PEM); this node shows them --tls-certificate")
          .by_default("the system's authorities"),
  };
}

void append(ServeSettings& table, const char* group, ServeSettings settings) {
  for (ServeSetting& setting : settings) table.push_back(std::move(setting).in(group));
}

}  // namespace

const ServeSettings& serve_settings() {
  static const ServeSettings all = [] {
    ServeSettings table;
    append(table, "Node", address_settings());
    append(table, "Node", node_settings());
    append(table, "Node", pipeline_settings());
    append(table, "Cluster", cluster_settings());
    append(table, "Watching", watching_settings());
    append(table, "Images", image_settings());
    append(table, "OpenFaaS", openfaas_settings());
    append(table, "Scheduling", scheduling_settings());
    append(table, "Memory", memory_settings());
    append(table, "GPU", sharing_settings());
    append(table, "Device memory", device_memory_settings());
    append(table, "Objects", object_settings());
    append(table, "Kernel tasks", kernel_task_settings());
    return table;
  }();
  return all;
}

std::string serve_variable(std::string_view name) {
  std::string variable(kServeVariablePrefix);
  for (const char c : name) {
    variable += c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  }
  return variable;
}

// Here, since what is wrong with one setting is said with its text, in which there may be a password.
Status check_store(const ServeOptions& options) {
  const std::string& url = options.store;
  if (url.empty()) {
    if (options.store_password_file.empty()) return {};
    return fail(Errc::kInvalidArgument, "--store-password-file is '{}', which needs --store",
                options.store_password_file);
  }
  const std::size_t scheme = url.find("://");
  if (!url.starts_with("postgresql://") && !url.starts_with("postgres://")) {
    return fail(Errc::kInvalidArgument, "--store is no URL of PostgreSQL: postgresql://[USER@]HOST[:PORT]/DATABASE");
  }
  const std::size_t at = url.rfind('@');  // the last one: others may be the password's
  const bool is_in_front = at != std::string::npos && url.find(':', scheme + 3) < at;
  if (!is_in_front && url.find("password=") == std::string::npos) return {};
  return fail(Errc::kInvalidArgument,
              "--store has a password in it (a ':' before an '@', or 'password='), which every user of this machine "
              "could read: put that into a file of mode 600, and name the file with --store-password-file");
}

Status check_together(const ServeOptions& options) {
  if (options.listen.empty()) {
    return fail(Errc::kInvalidArgument, "--listen is an empty list: give an address, or leave it out");
  }
  if (Status closed = check_addresses("--listen", options.listen, options); !closed) return closed;
  if (Status closed = check_addresses("--grpc", options.grpc, options); !closed) return closed;
  if (Status whole = check_key_files(options); !whole) return whole;
  if (Status peers = check_peers(options); !peers) return peers;
  if (Status store = check_store(options); !store) return store;
  if (options.gpus == "0" && options.cluster_key.empty()) {
    return fail(Errc::kInvalidArgument,
                "--gpus is 0, so that this node runs nothing, and without --cluster-key there is no other node");
  }
  if (options.gpus == "0" && (options.software_gpu || options.sharing != SharingMode::kNone)) {
    return fail(Errc::kInvalidArgument, "--gpus is 0, which excludes --softgpu and --sharing {}: leave one of them out",
                sharing_mode_name(options.sharing));
  }
  if (options.mig_reslice && options.sharing != SharingMode::kMig) {
    return fail(Errc::kInvalidArgument, "--mig-reslice needs --sharing mig, and --sharing is {}: leave one of them out",
                sharing_mode_name(options.sharing));
  }
  if (options.software_gpu && !options.gpu_library_dir.empty()) {
    return fail(Errc::kInvalidArgument, "--softgpu excludes --gpu-library-dir, which is '{}': leave one of them out",
                options.gpu_library_dir);
  }
  if (options.ignore_tenants && !options.tenants.empty()) {
    return fail(Errc::kInvalidArgument, "--ignore-tenants excludes --tenant, which names {}: leave one of them out",
                options.tenants.front().name);
  }
  if (options.slots.most > options.instances_per_gpu) {
    return fail(Errc::kInvalidArgument,
                "--slots is {}, it must be at most --pool, which is {}: lower it or raise --pool", options.slots.most,
                options.instances_per_gpu);
  }
  if (options.task_lanes.value_or(0) > options.instances_per_gpu) {
    return fail(Errc::kInvalidArgument,
                "--task-lanes is {}, it must be at most --pool, which is {}: lower it or raise --pool",
                *options.task_lanes, options.instances_per_gpu);
  }
  return {};
}

}  // namespace fairlead
