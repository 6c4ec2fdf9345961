#include <ostream>

#include "cli/commands.h"
#include "cli/payload.h"
#include "model/function.h"

namespace fairlead::cli {
namespace {

struct Options {
  std::string function;
  PayloadSource payload;
  std::string client_context;
  std::string qualifier;
  bool async = false;
  bool log = false;
  bool stream = false;
};

// What is not UTF-8 cannot be a JSON string.
std::string utf8_or_replaced(const std::string& bytes) {
  return Json(bytes).dump(-1, ' ', false, Json::error_handler_t::replace);
}

Json facts(const NodeClient::InvokeAnswer& answer) {
  Json out{{"request_id", answer.request_id}, {"function_error", answer.function_error}};
  if (!answer.version.empty()) out["version"] = answer.version;
  for (const auto& [key, value] :
       {std::pair{"start", answer.start}, std::pair{"queue_ms", answer.queue_ms}, std::pair{"exec_ms", answer.exec_ms},
        std::pair{"first_byte_ms", answer.first_byte_ms}}) {
    if (!value.empty()) out[key] = Json::accept(value) ? Json::parse(value) : Json(value);  // times as numbers
  }
  return out;
}

void print_json(Cli& cli, const NodeClient::InvokeAnswer& answer) {
  Json payload = Json::parse(answer.payload, nullptr, false);
  if (payload.is_discarded()) payload = Json::parse(utf8_or_replaced(answer.payload));
  Json out = facts(answer);
  out["payload"] = payload;
  if (!answer.log_tail.empty()) out["log"] = Json::parse(utf8_or_replaced(answer.log_tail));
  cli.out() << out.dump(2) << "\n";
}

void print_log(Cli& cli, const NodeClient::InvokeAnswer& answer) {
  cli.err() << answer.log_tail;
  if (!answer.log_tail.empty() && answer.log_tail.back() != '\n') cli.err() << "\n";
  if (answer.start.empty()) return;
  const std::string ran = answer.exec_ms.empty() ? "" : fmt::format(", ran {} ms", answer.exec_ms);
  const std::string first =
      answer.first_byte_ms.empty() ? "" : fmt::format(", first byte after {} ms", answer.first_byte_ms);
  cli.err() << fmt::format("{} start, queued {} ms{}{}, request {}\n", answer.start, answer.queue_ms, ran, first,
                           answer.request_id);
}

int exit_status(Cli& cli, const NodeClient::InvokeAnswer& answer) {
  if (answer.function_error.empty()) return kOk;
  cli.err() << "fairlead: the function failed (" << answer.function_error << ")\n";
  return kFunctionError;
}

// Parts as they come; with --json a line for each, and one for the end.
int run_stream(Cli& cli, const Options& options, std::string payload) {
  char last = '\n';
  const auto answer = cli.node().stream(
      options.function, std::move(payload), {.qualifier = options.qualifier},
      [&](const NodeClient::InvokeAnswer&, std::string_view part) {
        last = part.back();
        cli.json() ? cli.out() << R"({"part": )" << utf8_or_replaced(std::string(part)) << "}\n" : cli.out() << part;
        cli.out() << std::flush;
      });
  if (!cli.json() && cli.out_is_terminal() && last != '\n') cli.out() << "\n";
  if (!answer) return cli.report(answer.error());
  if (cli.json()) cli.out() << facts(*answer).dump() << "\n";
  if (options.log) print_log(cli, *answer);
  return exit_status(cli, *answer);
}

int run_invoke(Cli& cli, const Options& options) {
  const std::size_t limit = options.async ? kMaxAsyncPayloadBytes : kMaxSyncPayloadBytes;
  Result<std::string> payload = read_payload(options.payload, cli.in(), limit);
  if (!payload) return cli.report(payload.error());
  if (options.stream) return run_stream(cli, options, std::move(*payload));
  Result<NodeClient::InvokeAnswer> answer = cli.node().invoke(options.function, std::move(*payload),
                                                              {.event = options.async,
                                                               .log_tail = options.log,
                                                               .client_context = options.client_context,
                                                               .qualifier = options.qualifier});
  if (!answer) return cli.report(answer.error());
  if (cli.json()) {
    print_json(cli, *answer);
  } else if (options.async) {
    cli.out() << "accepted " << answer->request_id << "\n";
  } else {
    const bool unfinished_line = cli.out_is_terminal() && !answer->payload.ends_with('\n');
    cli.out() << answer->payload << (unfinished_line ? "\n" : "") << std::flush;  // into a pipe: the bytes as they are
    if (options.log) print_log(cli, *answer);
  }
  return exit_status(cli, *answer);
}

}  // namespace

void add_invoke(Cli& cli) {
  auto options = std::make_shared<Options>();
  CLI::App& command = cli.add_command("invoke", "Invoke a function; its answer goes to stdout",
                                      [&cli, options] { return run_invoke(cli, *options); });
  command.add_option("NAME", options->function, "Function")->required();
  CLI::Option* data = command.add_option("-d,--data", options->payload.data, "Payload as text [{}]");
  command.add_option("-p,--payload", options->payload.file, "File with the payload; - is standard input")
      ->excludes(data);
  CLI::Option* context =
      command.add_option("--context", options->client_context, "Client context, JSON that the function can read");
  command.add_option("-q,--qualifier", options->qualifier, "Version or alias; $LATEST unless told");
  CLI::Option* async =
      command.add_flag("--async", options->async, "Do not wait: the node keeps the event and retries it on failure");
  command.add_flag("--log", options->log, "Print the end of the function's log and the times to stderr")
      ->excludes(async);
  command
      .add_flag("--stream", options->stream, "Print the answer as the function makes it; --json: a line for each part")
      ->excludes(async)
      ->excludes(context);
}

}  // namespace fairlead::cli
