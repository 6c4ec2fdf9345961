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
  bool async = false;
  bool log = false;
};

// What is not UTF-8 cannot be a JSON string.
std::string utf8_or_replaced(const std::string& bytes) {
  return Json(bytes).dump(-1, ' ', false, Json::error_handler_t::replace);
}

void print_json(Cli& cli, const NodeClient::InvokeAnswer& answer) {
  Json payload = Json::parse(answer.payload, nullptr, false);
  if (payload.is_discarded()) payload = Json::parse(utf8_or_replaced(answer.payload));
  Json out{{"request_id", answer.request_id}, {"function_error", answer.function_error}, {"payload", payload}};
  for (const auto& [key, value] : {std::pair{"start", answer.start}, std::pair{"queue_ms", answer.queue_ms},
                                   std::pair{"exec_ms", answer.exec_ms}}) {
    if (!value.empty()) out[key] = Json::accept(value) ? Json::parse(value) : Json(value);  // times as numbers
  }
  if (!answer.log_tail.empty()) out["log"] = Json::parse(utf8_or_replaced(answer.log_tail));
  cli.out() << out.dump(2) << "\n";
}

void print_log(Cli& cli, const NodeClient::InvokeAnswer& answer) {
  cli.err() << answer.log_tail;
  if (!answer.log_tail.empty() && answer.log_tail.back() != '\n') cli.err() << "\n";
  if (answer.start.empty()) return;
  cli.err() << fmt::format("{} start, queued {} ms, ran {} ms, request {}\n", answer.start, answer.queue_ms,
                           answer.exec_ms, answer.request_id);
}

int run_invoke(Cli& cli, const Options& options) {
  const std::size_t limit = options.async ? kMaxAsyncPayloadBytes : kMaxSyncPayloadBytes;
  Result<std::string> payload = read_payload(options.payload, cli.in(), limit);
  if (!payload) return cli.report(payload.error());
  Result<NodeClient::InvokeAnswer> answer =
      cli.node().invoke(options.function, std::move(*payload),
                        {.event = options.async, .log_tail = options.log, .client_context = options.client_context});
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
  if (answer->function_error.empty()) return kOk;
  cli.err() << "fairlead: the function failed (" << answer->function_error << ")\n";
  return kFunctionError;
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
  command.add_option("--context", options->client_context, "Client context, JSON that the function can read");
  CLI::Option* async =
      command.add_flag("--async", options->async, "Do not wait: the node keeps the event and retries it on failure");
  command.add_flag("--log", options->log, "Print the end of the function's log and the times to stderr")
      ->excludes(async);
}

}  // namespace fairlead::cli
