// fairlead graph: graphs of functions from the command line (docs/how-to/graphs.md).
#include <algorithm>
#include <chrono>
#include <map>
#include <ostream>
#include <set>
#include <thread>
#include <tuple>

#include "cli/commands.h"
#include "cli/format.h"
#include "cli/payload.h"
#include "cli/table.h"
#include "edge/graph_service.h"

namespace fairlead::cli {
namespace {

constexpr std::chrono::milliseconds kPollPeriod{100};  // between answers that tell of nodes that ended
constexpr int kWaitSeconds = 60;                       // for one answer

struct GraphArguments {
  std::string tenant;
  std::string file = "-";
  std::string run;
  bool wait = false;
};

Result<Json> ask(Cli& cli, const GraphArguments& arguments, std::string method, std::string target,
                 std::string body = "") {
  net::ClientRequest request{.method = std::move(method), .target = std::move(target)};
  if (!arguments.tenant.empty()) request.headers.push_back({"X-Fairlead-Tenant", arguments.tenant});
  request.body = std::move(body);
  const auto response = cli.node().send(std::move(request));
  if (!response) return fail(response.error());
  Json answer = Json::parse(response->body, nullptr, /*allow_exceptions=*/false);
  if (answer.is_discarded() || !answer.is_object()) return fail(Errc::kCorrupt, "the node did not answer with JSON");
  return answer;
}

std::string run_path(const std::string& run) {
  return "/v1/graphs/" + net::percent_encode(run);
}

std::int64_t ms_of(const Json& fields, const char* name) {
  return fields.value(name, std::int64_t{0});
}

// From its start to its end; of one that runs still or never ran: nothing.
std::string time_of(const Json& node) {
  if (!node.contains("started_ms") || !node.contains("ended_ms")) return "-";
  return format_seconds(static_cast<double>(ms_of(node, "ended_ms") - ms_of(node, "started_ms")) / 1000);
}

// The rows of nodes, in the order in which they end; the widths are known from the first answer on.
class NodeRows {
 public:
  explicit NodeRows(const Json& nodes) {
    for (const auto& [name, node] : nodes.items()) {
      name_width_ = std::max(name_width_, name.size());
      function_width_ = std::max(function_width_, node.value("function", "").size());
    }
  }

  std::string heading() const { return row("NODE", "FUNCTION", "STATE", "TIME"); }

  // Of the nodes that have ended since the last call.
  std::string next(const Json& nodes) {
    std::vector<std::tuple<std::int64_t, std::int64_t, std::string>> fresh;  // several may end in a millisecond
    for (const auto& [name, node] : nodes.items()) {
      if (!node.contains("ended_ms") || shown_.contains(name)) continue;
      fresh.emplace_back(ms_of(node, "ended_ms"), ms_of(node, "started_ms"), name);
    }
    std::sort(fresh.begin(), fresh.end());
    std::string text;
    for (const auto& [ended, started, name] : fresh) {
      const Json& node = nodes[name];
      text += row(name, node.value("function", ""), node.value("state", ""), time_of(node));
      shown_.insert(name);
    }
    return text;
  }

 private:
  std::string row(const std::string& name, const std::string& function, const std::string& state,
                  const std::string& time) const {
    return fmt::format("{:<{}}  {:<{}}  {:<7}  {}\n", name, name_width_, function, function_width_, state, time);
  }

  std::size_t name_width_ = 4, function_width_ = 8;
  std::set<std::string> shown_;
};

std::string summary(const Json& run) {
  std::string counted;
  for (const char* state : {"waiting", "running", "done", "failed", "skipped"}) {
    const std::size_t count = run["counts"].value(state, std::size_t{0});
    if (count > 0) counted += fmt::format(", {} {}", count, state);
  }
  std::string text = fmt::format("run {}: {}{}", run.value("run", ""), run.value("state", ""), counted);
  if (run.contains("ended_ms")) {
    text += fmt::format(", {}",
                        format_seconds(static_cast<double>(ms_of(run, "ended_ms") - ms_of(run, "created_ms")) / 1000));
  }
  return text + "\n";
}

// The status by how a run ended; what failed goes to stderr, where nodes that were only skipped say nothing new.
int finish(Cli& cli, const Json& run) {
  if (run.contains("error")) cli.err() << "fairlead: " << run.value("error", "") << "\n";
  const Json nodes = run.value("nodes", Json::object());
  for (const auto& [name, node] : nodes.items()) {
    if (node.value("state", "") == "failed") cli.err() << "fairlead: " << node.value("error", "") << "\n";
  }
  const std::string state = run.value("state", "");
  return state == "failed" || state == "cancelled" ? kFunctionError : kOk;
}

bool goes_on(const Json& run) {
  return run.value("state", "") == "running";
}

// Follows a run to its end. Text is printed as nodes end.
int follow(Cli& cli, const GraphArguments& arguments, Json run) {
  const std::string id = run.value("run", "");
  NodeRows rows(run["nodes"]);
  if (!cli.json()) cli.out() << rows.heading();
  while (true) {
    if (!cli.json()) cli.out() << rows.next(run["nodes"]) << std::flush;
    if (!goes_on(run)) break;
    const Json& counts = run["counts"];
    const std::size_t ended = counts.value("done", std::size_t{0}) + counts.value("failed", std::size_t{0}) +
                              counts.value("skipped", std::size_t{0});
    std::this_thread::sleep_for(kPollPeriod);
    const std::string query =
        cli.json() ? fmt::format("?wait={}", kWaitSeconds) : fmt::format("?wait={}&ended={}", kWaitSeconds, ended);
    Result<Json> next = ask(cli, arguments, "GET", run_path(id) + query);
    if (!next) return cli.report(next.error());
    run = *std::move(next);
  }
  cli.out() << (cli.json() ? run.dump(2) + "\n" : summary(run));
  return finish(cli, run);
}

int run_graph(Cli& cli, const GraphArguments& arguments) {
  Result<std::string> graph = read_payload({.data = {}, .file = arguments.file}, cli.in(), kMaxGraphBytes);
  if (!graph) return cli.report(graph.error());
  Result<Json> run = ask(cli, arguments, "POST", "/v1/graphs", *std::move(graph));
  if (!run) return cli.report(run.error());
  if (arguments.wait) return follow(cli, arguments, *std::move(run));
  cli.out() << (cli.json() ? run->dump(2) + "\n" : run->value("run", "") + "\n");
  return goes_on(*run) ? int{kOk} : finish(cli, *run);
}

int check_graph(Cli& cli, const GraphArguments& arguments) {
  Result<std::string> graph = read_payload({.data = {}, .file = arguments.file}, cli.in(), kMaxGraphBytes);
  if (!graph) return cli.report(graph.error());
  const Result<Json> checked = ask(cli, arguments, "POST", "/v1/graphs?check", *std::move(graph));
  if (!checked) return cli.report(checked.error());
  if (cli.json()) {
    cli.out() << checked->dump(2) << "\n";
    return kOk;
  }
  cli.out() << fmt::format("valid: {} nodes\n", checked->value("nodes", std::size_t{0}));
  const Json inputs = checked->value("inputs", Json::array());
  for (const Json& key : inputs) {
    cli.out() << "waits for object " << key.get<std::string>() << "\n";
  }
  return kOk;
}

int show_run(Cli& cli, const GraphArguments& arguments) {
  Result<Json> run = ask(cli, arguments, "GET", run_path(arguments.run));
  if (!run) return cli.report(run.error());
  if (arguments.wait) return follow(cli, arguments, *std::move(run));
  if (cli.json()) {
    cli.out() << run->dump(2) << "\n";
    return kOk;
  }
  using enum Table::Align;
  Table table({{"NODE"}, {"FUNCTION"}, {"STATE"}, {"TIME"}, {"ERROR"}});
  const Json nodes = run->value("nodes", Json::object());
  for (const auto& [name, node] : nodes.items()) {
    table.add_row({name, node.value("function", ""), node.value("state", ""), time_of(node), node.value("error", "")});
  }
  cli.out() << table.text() << summary(*run);
  return kOk;
}

int list_runs(Cli& cli, const GraphArguments& arguments) {
  const Result<Json> answer = ask(cli, arguments, "GET", "/v1/graphs");
  if (!answer) return cli.report(answer.error());
  const Json runs = answer->value("runs", Json::array());
  if (cli.json()) {
    cli.out() << runs.dump(2) << "\n";
    return kOk;
  }
  using enum Table::Align;
  Table table({{"RUN"}, {"NAME"}, {"STATE"}, {"DONE", kRight}, {"FAILED", kRight}, {"NODES", kRight}, {"CREATED"}});
  for (const Json& run : runs) {
    const Json counts = run.value("counts", Json::object());
    std::size_t nodes = 0;
    for (const auto& [state, count] : counts.items()) nodes += count.get<std::size_t>();
    table.add_row({run.value("run", ""), run.value("name", ""), run.value("state", ""),
                   fmt::format("{}", counts.value("done", 0)), fmt::format("{}", counts.value("failed", 0)),
                   fmt::format("{}", nodes), format_time(ms_of(run, "created_ms"))});
  }
  cli.out() << table.text();
  return kOk;
}

int cancel_run(Cli& cli, const GraphArguments& arguments) {
  const Result<Json> run = ask(cli, arguments, "DELETE", run_path(arguments.run));
  if (!run) return cli.report(run.error());
  cli.out() << (cli.json() ? run->dump(2) + "\n" : summary(*run));
  return kOk;
}

using Run = int (*)(Cli&, const GraphArguments&);

}  // namespace

void add_graph(Cli& cli) {
  // Shared: the parser writes them, the command reads them.
  auto arguments = std::make_shared<GraphArguments>();
  CLI::App& command = cli.add_group("graph", "Run graphs of functions that read and write objects");
  command.fallthrough();
  command.add_option("--tenant", arguments->tenant, "Whose objects and runs [default]");
  const auto add = [&](const char* name, const char* description, Run action) {
    return &cli.add_command(command, name, description, [&cli, arguments, action] { return action(cli, *arguments); });
  };
  CLI::App* run = add("run", "Start a graph; prints the id of the run", &run_graph);
  run->add_option("FILE", arguments->file, "The graph, as JSON; -: standard input")->required();
  run->add_flag("--wait", arguments->wait, "Wait for its end; prints its nodes as they end");
  add("check", "Say what is wrong with a graph, and which objects it waits for", &check_graph)
      ->add_option("FILE", arguments->file, "The graph, as JSON; -: standard input")
      ->required();
  CLI::App* show = add("show", "The nodes of a run", &show_run);
  show->add_option("RUN", arguments->run, "Run")->required();
  show->add_flag("--wait", arguments->wait, "Wait for its end; prints its nodes as they end");
  add("list", "Runs, the newest first", &list_runs);
  add("cancel", "End a run", &cancel_run)->add_option("RUN", arguments->run, "Run")->required();
}

}  // namespace fairlead::cli
