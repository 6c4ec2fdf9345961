#include <filesystem>
#include <ostream>

#include "cli/commands.h"
#include "cli/format.h"
#include "cli/zip_folder.h"
#include "gateway/base64.h"
#include "model/function.h"

namespace fairlead::cli {
namespace {

struct Options {
  std::string name;
  std::string folder;
  std::vector<std::string> environment;  // KEY=VALUE
  std::vector<std::string> tags;         // key=value
  std::optional<int> gpu_memory_mib;
  std::optional<double> weight;
  std::optional<int> timeout_seconds;
  std::optional<int> memory_mib;
  std::optional<int> reserved;
  std::optional<std::string> description;
  std::optional<std::string> handler;
  bool upload = false;
};

Result<Json> pairs(const std::vector<std::string>& texts, const std::string& flag) {
  Json map = Json::object();
  for (const std::string& text : texts) {
    std::size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0) {
      return fail(Errc::kInvalidArgument, "{}: '{}' is not of the form KEY=VALUE", flag, text);
    }
    map[text.substr(0, equals)] = text.substr(equals + 1);
  }
  return map;
}

Result<Json> tags_of(const Options& options) {
  Result<Json> tags = pairs(options.tags, "--tag");
  if (!tags) return tags;
  if (options.gpu_memory_mib) (*tags)["gpu:memory-mib"] = std::to_string(*options.gpu_memory_mib);
  if (options.weight) (*tags)["gpu:weight"] = fmt::format("{}", *options.weight);
  return tags;
}

// Only what was given: the node has defaults for a new function, and keeps the rest of an existing one.
Result<Json> configuration_of(const Options& options) {
  Json configuration = Json::object();
  if (options.timeout_seconds) configuration["Timeout"] = *options.timeout_seconds;
  if (options.memory_mib) configuration["MemorySize"] = *options.memory_mib;
  if (options.description) configuration["Description"] = *options.description;
  if (options.handler) configuration["Handler"] = *options.handler;
  Result<Json> environment = pairs(options.environment, "--env");
  if (!environment) return environment;
  if (!environment->empty()) configuration["Environment"] = {{"Variables", *environment}};
  return configuration;
}

// A node on this machine takes the folder as it is; any other gets an archive.
Result<Json> code_of(Cli& cli, const Options& options) {
  if (cli.node().is_local() && !options.upload) {
    std::error_code ignored;
    return Json{{"Folder", std::filesystem::canonical(options.folder, ignored).string()}};
  }
  Result<std::string> zip = zip_folder(options.folder);
  if (!zip) return fail(zip.error());
  return Json{{"ZipFile", base64_encode(*zip)}};
}

Result<Json> create(NodeClient& node, const Options& options, const Json& code, const Json& configuration,
                    const Json& tags) {
  Json body{{"FunctionName", options.name},
            {"Runtime", "provided.al2023"},
            {"Role", ""},
            {"Handler", "bootstrap"},
            {"Code", code},
            {"Tags", tags}};
  body.update(configuration);
  return node.call("POST", "/2015-03-31/functions", body);
}

Result<Json> update(NodeClient& node, const Options& options, const Json& code, const Json& configuration,
                    const Json& tags) {
  // Configuration first: it is checked before anything changes, and the new code then starts with it.
  if (!configuration.empty()) {
    Result<Json> changed = node.call("PUT", function_path(options.name, "/configuration"), configuration);
    if (!changed) return changed;
  }
  if (!tags.empty()) {
    Result<Json> tagged =
        node.call("POST", "/2017-03-31/tags/" + net::percent_encode(function_arn(options.name)), Json{{"Tags", tags}});
    if (!tagged) return tagged;
  }
  return node.call("PUT", function_path(options.name, "/code"), code);
}

void print_result(Cli& cli, const Options& options, const Json& function, bool created) {
  if (cli.json()) {
    cli.out() << function.dump(2) << "\n";
    return;
  }
  cli.out() << fmt::format("{} {} ({}, sha256 {})\n", created ? "created" : "updated", options.name,
                           format_bytes(function.value("CodeSize", 0.0)), function.value("CodeSha256", ""));
  cli.err() << fmt::format("next: fairlead invoke {0} -d '{{}}'   fairlead logs {0} -f   fairlead top\n", options.name);
}

int run_deploy(Cli& cli, const Options& options) {
  if (Status status = validate_function_name(options.name); !status) return cli.report(status.error());
  if (Status status = check_function_folder(options.folder); !status) return cli.report(status.error());
  Result<Json> configuration = configuration_of(options);
  if (!configuration) return cli.report(configuration.error());
  Result<Json> tags = tags_of(options);
  if (!tags) return cli.report(tags.error());
  Result<Json> code = code_of(cli, options);
  if (!code) return cli.report(code.error());

  NodeClient& node = cli.node();
  Result<Json> function = create(node, options, *code, *configuration, *tags);
  const bool exists = !function && function.error().code == Errc::kConflict;
  if (exists) function = update(node, options, *code, *configuration, *tags);
  if (!function) return cli.report(function.error());
  if (options.reserved) {
    const std::string path = "/2017-10-31/functions/" + net::percent_encode(options.name) + "/concurrency";
    Result<Json> reserved = node.call("PUT", path, Json{{"ReservedConcurrentExecutions", *options.reserved}});
    if (!reserved) return cli.report(reserved.error());
  }
  print_result(cli, options, *function, !exists);
  return kOk;
}

}  // namespace

void add_deploy(Cli& cli) {
  auto options = std::make_shared<Options>();
  CLI::App& command =
      cli.add_command("deploy", "Create a function from a folder, or update it; on update, what is not given stays",
                      [&cli, options] { return run_deploy(cli, *options); });
  command.add_option("NAME", options->name, "Function: letters, digits, - and _, at most 64")->required();
  command.add_option("FOLDER", options->folder, "Folder with an executable 'bootstrap' at its top level")->required();
  command.add_option("--env", options->environment, "Environment variable KEY=VALUE; may be repeated")
      ->allow_extra_args(false);
  command.add_option("--tag", options->tags, "Tag key=value; may be repeated")->allow_extra_args(false);
  command.add_option("--gpu-memory", options->gpu_memory_mib, "MiB of device memory one instance is expected to hold")
      ->check(CLI::Range(1, 1 << 20));
  command.add_option("--weight", options->weight, "Fair share relative to other functions [1]")
      ->check(CLI::Range(0.01, 100.0));
  command.add_option("--timeout", options->timeout_seconds, "Seconds one invocation may take")
      ->check(CLI::Range(kMinTimeoutSeconds, kMaxTimeoutSeconds));
  command.add_option("--memory", options->memory_mib, "MiB of host memory one instance may use")
      ->check(CLI::Range(kMinMemoryMib, kMaxMemoryMib));
  command.add_option("--reserved", options->reserved, "Most invocations that run at the same time; 0 refuses all")
      ->check(CLI::Range(0, 100'000));
  command.add_option("--description", options->description, "What the function does");
  command.add_option("--handler", options->handler, "Passed to the function as _HANDLER [bootstrap]");
  command.add_flag("--upload", options->upload, "Send an archive even to a node on this machine");
}

}  // namespace fairlead::cli
