#include "sim/ktask/setup.h"

#include <fmt/ranges.h>

#include <charconv>

namespace fairlead::sim {
namespace {

// Least and most are part of what the setting means.
struct Setting {
  std::string_view key;
  std::string_view meaning;
  double least, most;
  void (*store)(KtaskSetup&, double);
};

template <typename Change>
void for_all_clients(KtaskSetup& setup, Change change) {
  for (KtaskWorkload& client : setup.clients) change(client);
}

constexpr double kGib = 1 << 30;

constexpr Setting kNumbers[] = {
    {"gpus", "GPUs", 1, 64, [](KtaskSetup& s, double v) { s.gpus = static_cast<std::size_t>(v); }},
    {"cores", "CPU cores, of pre- and post-processing and of starting processes", 1, 4096,
     [](KtaskSetup& s, double v) { s.cores = static_cast<std::size_t>(v); }},
    {"memory_gib", "device memory of a GPU, for objects", 0.001, 4096,
     [](KtaskSetup& s, double v) { s.memory = Bytes(static_cast<std::int64_t>(v * kGib)); }},
    {"link_gb_per_s", "host to device, each way", 0.1, 10'000,
     [](KtaskSetup& s, double v) { s.link_bytes_per_second = v * 1e9; }},
    {"peer_gb_per_s", "from one GPU to another; 0: constants come from the host alone", 0, 10'000,
     [](KtaskSetup& s, double v) { s.peer_bytes_per_second = v * 1e9; }},
    {"copy_streams", "1: an input queues behind others' constants", 1, 2,
     [](KtaskSetup& s, double v) { s.copy_streams = static_cast<std::size_t>(v); }},
    {"lanes", "requests at once on a GPU; 1: the paper's single stream; auto: 2 to 8, as measured", 1, 64,
     [](KtaskSetup& s, double v) { s.lanes = static_cast<std::size_t>(v); }},
    {"loads_at_once", "requests that load constants without holding a lane, of each GPU; 0: they hold one", 0, 64,
     [](KtaskSetup& s, double v) { s.loads_at_once = static_cast<std::size_t>(v); }},
    {"dynamic_kept_s", "inputs and outputs are deleted so long after the answer", 0, 3600,
     [](KtaskSetup& s, double v) { s.dynamic_kept = from_seconds(v); }},
    {"outstanding", "offline: requests that each client keeps with the service", 1, 1000,
     [](KtaskSetup& s, double v) { s.outstanding = static_cast<std::size_t>(v); }},
    {"rate", "online: requests a second over all clients, instead of a share of the peak", 0.001, 1e6,
     [](KtaskSetup& s, double v) { s.rate = v; }},
    {"warm_up_s", "what is not measured", 0, 1e5, [](KtaskSetup& s, double v) { s.warm_up = from_seconds(v); }},
    {"duration_s", "what is", 0.001, 1e5, [](KtaskSetup& s, double v) { s.duration = from_seconds(v); }},
    {"noise", "kernels, CPU parts and starts take up to so much more or less", 0, 0.9,
     [](KtaskSetup& s, double v) { s.noise = v; }},
    {"workload.cold_start_s", "start of an eTask's process", 0, 1000,
     [](KtaskSetup& s, double v) { for_all_clients(s, [=](auto& client) { client.cold_start = from_seconds(v); }); }},
    {"workload.at_once", "requests whose kernels run together at full speed", 1, 1000,
     [](KtaskSetup& s, double v) { for_all_clients(s, [=](auto& client) { client.gpu_share = 1 / v; }); }},
    {"workload.gpu_ms", "kernels of a request, alone", 0.001, 1e6,
     [](KtaskSetup& s, double v) { for_all_clients(s, [=](auto& client) { client.gpu = from_seconds(v / 1e3); }); }},
    {"workload.cpu_ms", "CPU time of a request", 0, 1e6,
     [](KtaskSetup& s, double v) { for_all_clients(s, [=](auto& client) { client.cpu = from_seconds(v / 1e3); }); }},
    {"workload.constants_mb", "constants of a client", 0, 1e6,
     [](KtaskSetup& s, double v) {
       for_all_clients(s, [=](auto& client) { client.constants = Bytes(static_cast<std::int64_t>(v * 1e6)); });
     }},
    {"workload.dynamic_mb", "input and output of a request", 0.001, 1e6,
     [](KtaskSetup& s, double v) {
       for_all_clients(s, [=](auto& client) { client.dynamic = Bytes(static_cast<std::int64_t>(v * 1e6)); });
     }},
};

Result<double> number(std::string_view key, std::string_view value, double least, double most) {
  double parsed{};
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), parsed);
  const bool whole = error == std::errc() && end == value.data() + value.size();
  if (whole && parsed >= least && parsed <= most) return parsed;
  return fail(Errc::kInvalidArgument, "{} is \"{}\", it must be a number from {} to {}", key, value, least, most);
}

Status set_number(KtaskSetup& setup, const Setting& setting, std::string_view value) {
  const auto parsed = number(setting.key, value, setting.least, setting.most);
  if (!parsed) return fail(parsed.error());
  setting.store(setup, *parsed);
  return {};
}

// What the policies' own files say that they look at. Two have a shorter name as well.
const ParameterInfo* parameter_of(std::string_view key) {
  if (key == "patience") return policy_parameter("patience_reloads");
  if (key == "penalty") return policy_parameter("penalty_latencies");
  return policy_parameter(key);
}

Status set_parameter(KtaskSetup& setup, std::string_view key, const ParameterInfo& parameter, std::string_view value) {
  const auto parsed = number(key, value, parameter.least, parameter.most);
  if (!parsed) return fail(parsed.error());
  setup.policy_options.set_number(parameter, *parsed);
  return {};
}

// Besides a number of kNumbers.
Status set_lanes(KtaskSetup& setup, const Setting& setting, std::string_view value) {
  if (value != "auto") {
    if (Status number = set_number(setup, setting, value); number) return number;
    return fail(Errc::kInvalidArgument, "lanes is \"{}\", it must be auto or a number from {} to {}", value,
                setting.least, setting.most);
  }
  setup.lanes = 0;
  return {};
}

Status set_policy(KtaskSetup& setup, std::string_view value) {
  if (auto known = make_policy(value, {}); !known) return fail(known.error());
  setup.policy = value;
  return {};
}

Status set_eviction(KtaskSetup& setup, std::string_view value) {
  const auto eviction = cache_eviction_named(value);
  if (!eviction) {
    return fail(Errc::kInvalidArgument, "eviction is \"{}\", it must be one of cost, lru, single-use", value);
  }
  setup.eviction = *eviction;
  return {};
}

}  // namespace

std::vector<std::string_view> ktask_systems() {
  return {"fairlead", "window", "kaas", "etask"};
}

Result<KtaskSetup> ktask_system(std::string_view name) {
  KtaskSetup setup;
  if (name == "fairlead") return setup;
  if (name == "window") {
    setup.policy = "resident-window";
    setup.lanes = 4;
    setup.policy_options.set(kOverRun, std::chrono::milliseconds(500));
    return setup;
  }
  setup.lanes = 1;
  setup.loads_at_once = 0;
  setup.copy_streams = 1;
  setup.eviction = CacheEviction::kSingleUse;
  setup.policy = name == "kaas" ? "cfs-affinity" : "exclusive";
  if (name == "kaas" || name == "etask") return setup;
  return fail(Errc::kInvalidArgument, "system \"{}\" is unknown; known are {}", name, fmt::join(ktask_systems(), ", "));
}

std::vector<KtaskSetting> ktask_settings() {
  std::vector<KtaskSetting> all = {{"policy", fmt::format("who is served where: {}", fmt::join(policy_names(), ", "))},
                                   {"eviction", "what makes room on a device: cost, lru, single-use"}};
  for (const ParameterInfo* parameter : policy_parameters()) {
    all.push_back({std::string(parameter->name), std::string(parameter->meaning)});
  }
  for (const Setting& setting : kNumbers) all.push_back({std::string(setting.key), std::string(setting.meaning)});
  return all;
}

Status set(KtaskSetup& setup, std::string_view key, std::string_view value) {
  if (key == "policy") return set_policy(setup, value);
  if (key == "eviction") return set_eviction(setup, value);
  for (const Setting& setting : kNumbers) {
    if (setting.key == key)
      return key == "lanes" ? set_lanes(setup, setting, value) : set_number(setup, setting, value);
  }
  if (const ParameterInfo* parameter = parameter_of(key)) return set_parameter(setup, key, *parameter, value);
  std::vector<std::string> known;
  for (const KtaskSetting& setting : ktask_settings()) known.push_back(setting.key);
  return fail(Errc::kInvalidArgument, "setting \"{}\" is unknown; known are {}", key, fmt::join(known, ", "));
}

Status check(const KtaskSetup& setup) {
  if (setup.clients.empty()) return fail(Errc::kInvalidArgument, "there are no clients: replicas must be 1 or more");
  for (const KtaskWorkload& client : setup.clients) {
    const Bytes needs = client.constants + client.dynamic;
    if (needs > setup.memory) {
      return fail(Errc::kInvalidArgument,
                  "a request of {} needs {} bytes of device memory, memory_gib gives {}: raise memory_gib or use a "
                  "smaller workload",
                  client.name, needs.count(), setup.memory.count());
    }
  }
  return {};
}

}  // namespace fairlead::sim
