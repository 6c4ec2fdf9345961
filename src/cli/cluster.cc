// fairlead cluster: who is in it, how busy they are, where functions are at home; and a node that is emptied before it is stopped.
#include <chrono>
#include <memory>
#include <ostream>
#include <thread>

#include "cli/commands.h"
#include "cli/format.h"
#include "cli/table.h"

namespace fairlead::cli {
namespace {

std::string seconds(const Json& object, const char* field) {
  return fmt::format("{:.2f}", object.value(field, 0.0));
}

void print_members(Cli& cli, const Json& answer) {
  Table table({{"NODE"}, {"STATE"}, {"SLOTS"}, {"BACKLOG s"}, {"FORWARDED"}, {"FAILED"}, {"ADDRESS"}});
  for (const Json& member : answer.value("members", Json::array())) {
    const std::string address = member.value("address", "");
    table.add_row(
        {member.value("name", ""), member.value("state", ""), fmt::format("{:.0f}", member.value("slots", 0.0)),
         seconds(member, "backlog_s"), std::to_string(member.value("forwarded", std::uint64_t{0})),
         std::to_string(member.value("failed", std::uint64_t{0})), address.empty() ? "(this node)" : address});
  }
  cli.out() << table.text();
  for (const Json& member : answer.value("members", Json::array())) {
    if (const std::string error = member.value("error", ""); !error.empty()) cli.out() << error << "\n";
  }
}

void print_functions(Cli& cli, const Json& answer) {
  Table table({{"FUNCTION"}, {"HOME"}, {"WHY"}});
  for (const Json& function : answer.value("functions", Json::array())) {
    const Json home = function.value("home", Json());
    table.add_row(
        {function.value("name", ""), home.is_string() ? home.get<std::string>() : "-", function.value("why", "")});
  }
  cli.out() << "\n" << table.text();
}

// Who has all for itself, on a node that serves one tenant, needs no table.
void print_tenants(Cli& cli, const Json& answer) {
  const Json tenants = answer.value("tenants", Json::array());
  if (tenants.size() < 2) return;
  Table table({{"TENANT"}, {"FACTOR"}, {"LEAD s"}});
  for (const Json& tenant : tenants) {
    table.add_row({tenant.value("name", ""), fmt::format("{:.3g}", tenant.value("factor", 1.0)),
                   fmt::format("{:+.2f}", tenant.value("lead_seconds", 0.0))});
  }
  cli.out() << "\n" << table.text();
}

// A node that is alone has none of these routes.
Result<Json> ask(Cli& cli, const char* method, const char* path) {
  auto answer = cli.node().call(method, path);
  if (answer || answer.error().code != Errc::kNotFound) return answer;
  return fail(Errc::kNotFound, "this node is in no cluster: it was started without --cluster-key");
}

int run_status(Cli& cli) {
  const auto answer = ask(cli, "GET", "/fairlead/v1/cluster");
  if (!answer) return cli.report(answer.error());
  if (!answer->is_object()) return cli.report({Errc::kCorrupt, "the node did not answer with an object"});
  if (cli.json()) {
    cli.out() << answer->dump(2) << "\n";
    return kOk;
  }
  print_members(cli, *answer);
  print_tenants(cli, *answer);
  print_functions(cli, *answer);
  return kOk;
}

struct ClusterDrain {
  double patience_s = 300;
};

// Asks again until nothing runs: a drain that was said is said again, and changes nothing.
int run_drain(Cli& cli, const ClusterDrain& options) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(options.patience_s);
  for (bool is_first = true;; is_first = false) {
    const auto answer = ask(cli, "POST", "/fairlead/v1/cluster/drain");
    if (!answer) return cli.report(answer.error());
    const std::string name = answer->value("name", "");
    const auto calls = answer->value("calls_here", std::uint64_t{0});
    const bool is_over = std::chrono::steady_clock::now() >= end;
    if (cli.json() && (calls == 0 || is_over)) cli.out() << answer->dump(2) << "\n";
    if (calls == 0) {
      if (!cli.json())
        cli.out() << fmt::format("nothing runs at {}, and new calls go to other nodes: it may be stopped\n", name);
      return kOk;
    }
    if (is_first && !cli.json())
      cli.out() << fmt::format("{} takes no more calls; {} still wait or run\n", name, calls) << std::flush;
    if (is_over) {
      return cli.report({Errc::kDeadlineExceeded,
                         fmt::format("{} calls still wait or run at {} after {:.0f} s: --wait gives them longer, and "
                                     "`fairlead cluster resume` takes the node back",
                                     calls, name, options.patience_s)});
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  }
}

int run_resume(Cli& cli) {
  const auto answer = ask(cli, "POST", "/fairlead/v1/cluster/resume");
  if (!answer) return cli.report(answer.error());
  if (cli.json()) {
    cli.out() << answer->dump(2) << "\n";
  } else {
    cli.out() << answer->value("name", "") << " takes calls again\n";
  }
  return kOk;
}

}  // namespace

void add_cluster(Cli& cli) {
  CLI::App& group = cli.add_group("cluster", "See the nodes that give each other calls");
  cli.add_command(group, "status", "Nodes, their states and loads; where each function's next call goes, and why",
                  [&cli] { return run_status(cli); });
  const auto drain = std::make_shared<ClusterDrain>();
  CLI::App& command = cli.add_command(
      group, "drain", "Give the calls of this node to others, and wait until nothing runs here: before it is stopped",
      [&cli, drain] { return run_drain(cli, *drain); });
  command.add_option("--wait", drain->patience_s, "Seconds for what runs")
      ->check(CLI::Range(0.0, 86'400.0))
      ->capture_default_str();
  cli.add_command(group, "resume", "Take calls again after a drain", [&cli] { return run_resume(cli); });
}

}  // namespace fairlead::cli
