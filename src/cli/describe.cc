#include <ostream>

#include "cli/commands.h"
#include "cli/format.h"
#include "cli/profile_runs.h"
#include "cli/status_text.h"
#include "cli/table.h"
#include "cli/warmth_text.h"

namespace fairlead::cli {
namespace {

std::string joined(const Json& map) {
  std::string text;
  for (const auto& [key, value] : map.items()) {
    text += (text.empty() ? "" : ", ") + key + "=" + (value.is_string() ? value.get<std::string>() : value.dump());
  }
  return text.empty() ? "-" : text;
}

std::string words(const Json& list) {
  std::string text;
  for (const Json& word : list) text += (text.empty() ? "" : " ") + (word.is_string() ? word.get<std::string>() : "?");
  return text;
}

template <typename AddRow>
void add_image_rows(const Json& function, const Json& configuration, AddRow row) {
  const Json code = function.value("Code", Json::object());
  const Json overrides =
      configuration.value("ImageConfigResponse", Json::object()).value("ImageConfig", Json::object());
  row("Image", code.value("ImageUri", ""));
  row("Resolved", code.value("ResolvedImageUri", ""));
  row("Digest", "sha256:" + configuration.value("CodeSha256", ""));
  if (overrides.contains("EntryPoint")) row("Entry point", words(overrides["EntryPoint"]));
  if (overrides.contains("Command")) row("Command", words(overrides["Command"]));
  if (overrides.contains("WorkingDirectory")) row("Directory", overrides.value("WorkingDirectory", ""));
}

// The function's entry in the node's status, with its instances in "each"; null when the node has none.
Json live_state_of(Cli& cli, const std::string& name) {
  Result<Json> status = cli.node().call("GET", "/fairlead/v1/status");
  if (!status) return {};
  status = with_holds(*std::move(status), cli.node().call("GET", "/fairlead/v1/warmth").value_or(Json()));
  Json each = Json::array();
  for (Json& instance : status->value("instances", Json::array())) {
    if (instance.value("function", "") == name) each.push_back(std::move(instance));
  }
  for (Json& function : status->value("functions", Json::array())) {
    if (function.value("name", "") != name) continue;
    function["each"] = std::move(each);
    return std::move(function);
  }
  return {};
}

// "7 on GPU 1: idle, kept, 1.5 GiB of the device"
std::string instance_text(const Json& instance) {
  const Json memory = instance.value("memory", Json::object());
  std::string text =
      fmt::format("{} on GPU {}: {}", instance.value("id", 0), instance.value("gpu", 0), instance.value("state", ""));
  if (instance.value("seated", false)) text += ", kept";
  if (memory.contains("held_bytes")) {
    text += fmt::format(", {} of the device", format_bytes(memory.value("resident_bytes", 0.0)));
    if (memory.value("away_bytes", 0.0) > 0)
      text += fmt::format(", {} of host memory for it", format_bytes(memory.value("away_bytes", 0.0)));
  }
  if (instance.contains("kept_seconds")) text += ", ends in " + kept_text(instance);
  const std::string pinned = instance.value("seated", false) ? "none" : pinned_text(instance);
  if (pinned != "none") text += ", pinned: " + pinned;
  return text;
}

template <typename AddRow>
void add_warmth_rows(const Json& live, AddRow row) {
  const Json share = live.value("share", Json::object());
  if (const int wanted = share.value("seats_wanted", 0); wanted > 0) row("Kept started", std::to_string(wanted));
  const Json each = live.value("each", Json::array());
  for (std::size_t i = 0; i < each.size(); ++i) row(i == 0 ? "Instances" : "", instance_text(each[i]));
}

// Null where the node does not scale it.
Json scaling_of(Cli& cli, const std::string& name) {
  Result<Json> scaling = cli.node().call("GET", native_path(name, "/scaling"));
  return scaling ? *std::move(scaling) : Json();
}

template <typename AddRow>
void add_scaling_rows(const Json& scaling, AddRow row) {
  const std::string state = scaling.value("state", "");
  const std::string lacking = scaling.value("lacking", "");
  row("Scaling", lacking.empty() ? state : state + ": " + lacking);
  if (scaling.value("quota_percent", 0) == 0) return;
  row("Rectangle", fmt::format("{} % of the SMs x {} % of the time: {:.1f} requests/s, {:.1f} ms each",
                               scaling.value("width_percent", 0), scaling.value("quota_percent", 0),
                               scaling.value("rate_per_s", 0.0), scaling.value("execution_ms", 0.0)));
  row("Replicas", fmt::format("{} in {} seats, {} start, {} beside them", scaling.value("ready", 0),
                              scaling.value("seats", 0), scaling.value("starting", 0), scaling.value("parked", 0)));
  row("Price", fmt::format("{:.2f} GPUs, {:.2f} an instance", scaling.value("gpus", 0.0),
                           scaling.value("gpus_per_instance", 0.0)));
}

std::string description_of(const Json& function, const Json& live, const Json& scaling) {
  const Json configuration = function.value("Configuration", Json::object());
  const Json environment = configuration.value("Environment", Json::object()).value("Variables", Json::object());
  const Json concurrency = function.value("Concurrency", Json::object());
  Table table({{"", {}}, {"", {}}});
  auto row = [&](const std::string& name, const std::string& value) { table.add_row({name, value}); };
  row("Name", configuration.value("FunctionName", ""));
  row("State", configuration.value("State", "-"));
  row("Description", configuration.value("Description", ""));
  const bool is_image = configuration.value("PackageType", "") == "Image";
  const Json code = function.value("Code", Json::object());
  if (code.value("InPlace", false)) row("Folder", code.value("Folder", "") + ", in place");
  if (!is_image) row("Handler", configuration.value("Handler", ""));
  row("Memory", fmt::format("{} MiB", configuration.value("MemorySize", 0)));
  row("Timeout", fmt::format("{} s", configuration.value("Timeout", 0)));
  row("Environment", joined(environment));
  row("Tags", joined(function.value("Tags", Json::object())));
  row("Reserved", concurrency.contains("ReservedConcurrentExecutions")
                      ? concurrency["ReservedConcurrentExecutions"].dump() + " concurrent executions"
                      : "-");
  if (is_image) {
    add_image_rows(function, configuration, row);
  } else {
    row("Code",
        format_bytes(configuration.value("CodeSize", 0.0)) + ", sha256 " + configuration.value("CodeSha256", ""));
  }
  row("Modified", configuration.value("LastModified", ""));
  row("Revision", configuration.value("RevisionId", ""));
  row("ARN", configuration.value("FunctionArn", ""));
  if (!live.is_null()) {
    row("Starts", starts_text(live));
    row("Device memory", memory_text(live));
    add_warmth_rows(live, row);
  }
  if (!scaling.is_null()) add_scaling_rows(scaling, row);
  return table.text().substr(1);  // without the empty heading
}

int run_describe(Cli& cli, const std::string& name) {
  Result<Json> function = cli.node().call("GET", function_path(name));
  if (!function) return cli.report(function.error());
  cli.out() << (cli.json() ? function->dump(2) + "\n"
                           : description_of(*function, live_state_of(cli, name), scaling_of(cli, name)));
  return kOk;
}

}  // namespace

void add_describe(Cli& cli) {
  auto name = std::make_shared<std::string>();
  cli.add_command("describe", "Show one function's configuration, starts and device memory",
                  [&cli, name] { return run_describe(cli, *name); })
      .add_option("NAME", *name, "Function")
      ->required();
}

}  // namespace fairlead::cli
