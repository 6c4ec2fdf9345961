#include "cli/sim_record.h"

#include <fmt/format.h>

#include <charconv>
#include <filesystem>
#include <fstream>
#include <ostream>

#include "decide/core/invocation_record.h"
#include "decide/queueing/window.h"
#include "node/serve_options.h"
#include "sim/recording.h"

namespace fairlead::cli {
namespace {

struct RecordOptions {
  std::string out;
  double last_s = 0;
};

Result<std::vector<InvocationRecord>> parse_lines(const std::string& lines) {
  std::vector<InvocationRecord> records;
  for (std::size_t begin = 0, end; (end = lines.find('\n', begin)) != std::string::npos; begin = end + 1) {
    const auto record = record_of(std::string_view(lines).substr(begin, end - begin));
    if (!record) return fail(Errc::kCorrupt, "the node's history: {}", record.error().message);
    records.push_back(*record);
  }
  return records;
}

Result<std::vector<InvocationRecord>> read_history(NodeClient& node) {
  std::vector<InvocationRecord> all;
  for (std::string from = "0";;) {
    const auto page = node.get("/fairlead/v1/history?from=" + from);
    if (!page) return fail(page.error());
    if (page->body.empty()) return all;
    const auto records = parse_lines(page->body);
    if (!records) return fail(records.error());
    all.insert(all.end(), records->begin(), records->end());
    const std::string next(page->header("X-Fairlead-Next"));
    if (next.empty() || next == from) return fail(Errc::kCorrupt, "the node's history has no next page after {}", from);
    from = next;
  }
}

double number(const Json& object, const char* key, double absent) {
  const auto found = object.find(key);
  return found != object.end() && found->is_number() ? found->get<double>() : absent;
}

Bytes bytes(const Json& object, const char* key) {
  return Bytes(static_cast<std::int64_t>(number(object, key, 0)));
}

sim::FunctionModel function_of(const Json& function) {
  sim::FunctionModel model{.name = function.value("name", "")};
  model.memory = bytes(function.value("memory", Json::object()), "expected_bytes");
  model.weight = number(function, "weight", 1);
  model.tenant = function.value("tenant", "");
  if (const double objective = number(function, "objective_ms", 0); objective > 0) {
    model.objective = from_seconds(objective / 1000);
  }
  return model;
}

// What an instance has on the device once all of it is there; 0: none is there to ask. Nearer than what the node expects,
// which is the most that any of a number of invocations needed.
Bytes held_by_one(const Json& status, const std::string& function) {
  Bytes most{0};
  for (const Json& instance : status.value("instances", Json::array())) {
    if (instance.value("function", "") != function) continue;
    const Json memory = instance.value("memory", Json::object());
    most = std::max({most, bytes(memory, "held_bytes"), bytes(memory, "resident_bytes")});
  }
  return most;
}

// More leaves than is asked for, half a region in the mean.
Bytes region_of(const Json& counters) {
  const double moves = number(counters, "swap_outs", 0) - number(counters, "swap_failures", 0);
  const double more = number(counters, "bytes_out", 0) - number(counters, "bytes_asked_out", 0);
  return moves < 1 ? Bytes(0) : Bytes(static_cast<std::int64_t>(2 * std::max(0.0, more) / moves));
}

void set_devices(const Json& status, sim::Scenario& scenario) {
  const Json gpus = status.value("gpus", Json::array());
  scenario.devices = std::max<std::size_t>(1, gpus.size());
  if (!gpus.empty()) {
    // What no instance reports, contexts and other programs, is not to be had by a simulated one.
    scenario.device.memory = bytes(gpus[0], "memory_total_bytes") - bytes(gpus[0], "memory_unreported_bytes");
    scenario.core.slots_per_gpu =
        static_cast<std::size_t>(std::max(1.0, number(gpus[0], "slots", number(gpus[0], "tokens", 2))));
  }
  const Json counters = status.value("counters", Json::object()).value("memory", Json::object());
  const Json seconds = status.value("move_seconds", Json::object());
  const double moved = number(counters, "bytes_in", 0), took = number(seconds, "in", 0);
  if (moved > 0 && took > 0) scenario.device.link_bytes_per_second = std::max(1e7, moved / took);
  scenario.device.region = region_of(counters);
}

Result<sim::Scenario> settings_of(const Json& status) {
  const auto found = status.find("settings");
  if (found == status.end()) {
    return fail(Errc::kInvalidArgument, "the node does not tell its settings: it is of an earlier version, {}",
                status.value("version", "unknown"));
  }
  const Json& settings = *found;
  sim::Scenario scenario;
  scenario.policy = status.value("policy", scenario.policy);
  const ServeOptions usual;
  scenario.policy_options.set(kOverRun, from_seconds(number(settings, "over_run_seconds", usual.over_run_seconds)));
  scenario.policy_options.ttl_factor = number(settings, "ttl_factor", usual.ttl_factor);
  scenario.policy_options.by_tenant = settings.value("by_tenant", false);
  scenario.core.instances_per_gpu = static_cast<std::size_t>(number(settings, "instances_per_gpu", 32));
  scenario.core.starts_per_gpu = static_cast<std::size_t>(number(settings, "starts_per_gpu", 0));
  scenario.core.no_cold_duplicates = settings.value("no_cold_duplicates", false);
  scenario.core.queue_limit = static_cast<std::size_t>(number(settings, "queue_limit", 10'000));
  scenario.core.queue_limit_per_flow = static_cast<std::size_t>(number(settings, "queue_limit_per_function", 1'000));
  const std::string eviction = settings.value("eviction", ""), memory = status.value("memory_policy", "");
  if (!eviction_named(eviction) || !memory_policy_named(memory)) {
    return fail(Errc::kInvalidArgument,
                "the node says eviction '{}' and memory_policy '{}', of which the simulator does not know one: use the "
                "`fairlead` of the node's version, {}",
                eviction, memory, status.value("version", "unknown"));
  }
  scenario.core.eviction = *eviction_named(eviction);
  scenario.core.memory_policy = *memory_policy_named(memory);
  set_devices(status, scenario);
  for (const Json& tenant : status.value("tenants", Json::array())) {
    TenantShare& share = scenario.tenants[tenant.value("name", "")];
    share.weight = number(tenant, "weight", 1);
    if (const double most = number(tenant, "max_in_flight", 0); most > 0) {
      share.max_concurrency = static_cast<std::size_t>(most);
    }
  }
  for (const Json& function : status.value("functions", Json::array())) {
    scenario.functions.push_back(function_of(function));
    sim::FunctionModel& model = scenario.functions.back();
    if (const Bytes held = held_by_one(status, model.name); held > Bytes(0)) model.memory = held;
  }
  return scenario;
}

void keep_last(std::vector<InvocationRecord>& records, double seconds) {
  if (seconds <= 0 || records.empty()) return;
  std::int64_t newest = 0;
  for (const InvocationRecord& record : records) newest = std::max(newest, record.at_us);
  const std::int64_t since = newest - static_cast<std::int64_t>(seconds * 1e6);
  std::erase_if(records, [&](const InvocationRecord& record) { return record.at_us < since; });
}

Status write_file(const std::filesystem::path& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << text;
  if (file.flush()) return {};
  return fail(Errc::kIo, "cannot write {}", path.string());
}

Status write_all(const std::string& folder, const sim::Recording& recording) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return fail(Errc::kIo, "cannot make folder {}: {}", folder, error.message());
  const std::filesystem::path path(folder);
  if (Status written = write_file(path / "trace.csv", sim::trace_csv(recording)); !written) return written;
  return write_file(path / "scenario.toml", sim::scenario_toml(recording.scenario, "trace.csv"));
}

int run_sim_record(Cli& cli, const RecordOptions& options) {
  const auto status = cli.node().call("GET", "/fairlead/v1/status");
  if (!status) return cli.report(status.error());
  auto settings = settings_of(*status);
  if (!settings) return cli.report(settings.error());
  settings->name = "recorded at " + cli.endpoint();
  auto records = read_history(cli.node());
  if (!records) return cli.report(records.error());
  keep_last(*records, options.last_s);
  const auto recording = sim::make_recording(*records, *std::move(settings));
  if (!recording) return cli.report(recording.error());
  if (Status written = write_all(options.out, *recording); !written) return cli.report(written.error());

  for (const std::string& note : recording->notes) cli.err() << note << '\n';
  if (recording->left_out > 0) {
    cli.err() << fmt::format("{} invocations were cancelled or deleted before they ran: left out\n",
                             recording->left_out);
  }
  if (cli.json()) {
    cli.out() << Json{{"folder", options.out},
                      {"invocations", recording->arrivals.size()},
                      {"functions", recording->scenario.functions.size()},
                      {"left_out", recording->left_out},
                      {"notes", recording->notes}}
                     .dump(2)
              << '\n';
  } else {
    cli.out() << fmt::format("{} invocations of {} functions in {:.0f} s: try  fairlead sim {}/scenario.toml\n",
                             recording->arrivals.size(), recording->scenario.functions.size(),
                             to_seconds(recording->scenario.duration), options.out);
  }
  return kOk;
}

}  // namespace

void add_sim_record(Cli& cli, CLI::App& sim) {
  auto options = std::make_shared<RecordOptions>();  // shared: the parser writes it, the command reads it
  CLI::App& command =
      cli.add_command(sim, "record", "Write a node's history as trace.csv and scenario.toml, which sim and replay read",
                      [&cli, options] { return run_sim_record(cli, *options); });
  command.add_option("--out", options->out, "Folder for the files; made if it is not there")->required();
  command.add_option("--last", options->last_s, "Only the last so many seconds of it; 0: all")
      ->check(CLI::Range(0.0, 1e9));
}

}  // namespace fairlead::cli
