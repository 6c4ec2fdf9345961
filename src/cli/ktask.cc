// `fairlead ktask run`: a kernel task tried out, deployed under a name of its own for one call.
#include <unistd.h>

#include <filesystem>
#include <ostream>

#include "cli/commands.h"
#include "cli/payload.h"
#include "cli/zip_folder.h"
#include "model/function.h"

namespace fairlead::cli {
namespace {

struct Options {
  std::string folder;
  PayloadSource payload;
  int timeout_seconds = 60;
};

int run_task(Cli& cli, const Options& options) {
  if (!std::filesystem::is_regular_file(options.folder + "/task.json")) {
    return cli.report({Errc::kInvalidArgument, options.folder + " has no task.json"});
  }
  Result<std::string> payload = read_payload(options.payload, cli.in(), kMaxSyncPayloadBytes);
  if (!payload) return cli.report(payload.error());
  const Result<Json> code = folder_as_code(cli.node(), options.folder, /*upload=*/false);
  if (!code) return cli.report(code.error());
  const std::string name = fmt::format("ktask-run-{}", ::getpid());
  NodeClient& node = cli.node();
  const Result<Json> made = node.call("POST", "/2015-03-31/functions",
                                      Json{{"FunctionName", name},
                                           {"Role", ""},
                                           {"Runtime", "provided.al2023"},
                                           {"Handler", "task.json"},
                                           {"Code", *code},
                                           {"Timeout", options.timeout_seconds}});
  if (!made) return cli.report(made.error());
  const Result<NodeClient::InvokeAnswer> answer = node.invoke(name, std::move(*payload), {});
  const Result<Json> removed = node.call("DELETE", function_path(name));
  if (!answer) return cli.report(answer.error());
  cli.out() << answer->payload << "\n";
  if (!removed) return cli.report(removed.error());
  if (answer->function_error.empty()) return kOk;
  cli.err() << "fairlead: the kernel task failed\n";
  return kFunctionError;
}

}  // namespace

void add_ktask(Cli& cli) {
  auto options = std::make_shared<Options>();
  CLI::App& run = cli.add_command(cli.add_group("ktask", "Kernel tasks: try one out"), "run",
                                  "Deploy a kernel task for one call, and print the answer",
                                  [&cli, options] { return run_task(cli, *options); });
  run.add_option("FOLDER", options->folder, "Folder with a task.json and its modules")->required();
  CLI::Option* data = run.add_option("-d,--data", options->payload.data, "The call, as JSON [{}]");
  run.add_option("-p,--payload", options->payload.file, "File with the call; - is standard input")->excludes(data);
  run.add_option("--timeout", options->timeout_seconds, "Seconds it may take")
      ->check(CLI::Range(kMinTimeoutSeconds, kMaxTimeoutSeconds));
}

}  // namespace fairlead::cli
