// `fairlead ktask run`: a kernel task tried out. A one-off request: nothing is deployed, and the second time is warm.
#include <filesystem>
#include <iterator>
#include <ostream>
#include <set>

#include "base/read_file.h"
#include "cli/commands.h"
#include "cli/payload.h"
#include "model/function.h"
#include "wire/kernel_task_codec.h"

namespace fairlead::cli {
namespace {

namespace fs = std::filesystem;

struct Options {
  std::string folder;
  PayloadSource payload;
  std::uint32_t timeout_seconds = kDefaultRequestTimeoutSeconds;
};

std::string content_of(const fs::path& path) {
  return read_whole_file(path).value_or("");
}

// The files that a task names, as far as its text can be read: what is wrong with it the node says better.
std::set<std::string> names_in(const std::string& task) {
  const Json document = Json::parse(task, nullptr, /*allow_exceptions=*/false);
  std::set<std::string> names;
  const auto note = [&](const Json& owner, const char* field) {
    if (owner.is_object() && owner.contains(field) && owner[field].is_string()) names.insert(owner[field]);
  };
  if (!document.is_object()) return names;
  for (const Json& kernel : document.value("kernels", Json::array())) note(kernel, "module");
  for (const Json& buffer : document.value("buffers", Json::object())) note(buffer, "file");
  return names;
}

// Nothing from outside of the folder is sent.
bool is_file_in(const std::string& folder, const std::string& name) {
  std::error_code error;
  const fs::path path = fs::weakly_canonical(fs::path(folder) / name, error);
  const fs::path inside = path.lexically_relative(fs::weakly_canonical(folder, error));
  return !error && !inside.empty() && *inside.begin() != ".." && fs::is_regular_file(path, error);
}

Result<KernelTaskRequest> request_of(const Options& options, std::string call) {
  const std::string path = options.folder + "/task.json";
  if (!fs::is_regular_file(path)) return fail(Errc::kInvalidArgument, "{} has no task.json", options.folder);
  KernelTaskRequest request{.task = content_of(path), .timeout_seconds = options.timeout_seconds};
  request.call = std::move(call);
  for (const std::string& name : names_in(request.task)) {
    if (is_file_in(options.folder, name)) request.files.push_back({name, content_of(fs::path(options.folder) / name)});
  }
  if (Status valid = validate_request(request); !valid) return fail(valid.error());
  return request;
}

int run_task(Cli& cli, const Options& options) {
  Result<std::string> call = read_payload(options.payload, cli.in(), kMaxSyncPayloadBytes);
  if (!call) return cli.report(call.error());
  const Result<KernelTaskRequest> request = request_of(options, *std::move(call));
  if (!request) return cli.report(request.error());
  const Result<net::ClientResponse> answer =
      cli.node().send({.method = "POST",
                       .target = "/v1/ktasks",
                       .headers = {{"Content-Type", wire::kKernelTaskContentType}},
                       .body = wire::encode(*request)});
  if (!answer) return cli.report(answer.error());
  cli.out() << answer->body << "\n";
  if (answer->header("X-Amz-Function-Error").empty()) return kOk;
  cli.err() << "fairlead: the kernel task failed\n";
  return kFunctionError;
}

}  // namespace

void add_ktask(Cli& cli) {
  auto options = std::make_shared<Options>();
  CLI::App& run = cli.add_command(cli.add_group("ktask", "Kernel tasks: try one out"), "run",
                                  "Call a kernel task once, without deploying it, and print the answer",
                                  [&cli, options] { return run_task(cli, *options); });
  run.add_option("FOLDER", options->folder, "Folder with a task.json and its modules")->required();
  CLI::Option* data = run.add_option("-d,--data", options->payload.data, "The call, as JSON [{}]");
  run.add_option("-p,--payload", options->payload.file, "File with the call; - is standard input")->excludes(data);
  run.add_option("--timeout", options->timeout_seconds, "Seconds it may take")
      ->check(CLI::Range(kMinTimeoutSeconds, kMaxTimeoutSeconds));
}

}  // namespace fairlead::cli
