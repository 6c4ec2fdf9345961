// `fairlead autoscale`: functions that the node scales, what each costs, and why it was decided so.
#include <fstream>
#include <ostream>

#include "base/clock.h"
#include "cli/autoscale.h"
#include "cli/format.h"
#include "cli/profile_runs.h"
#include "cli/scaling_page.h"
#include "cli/table.h"
#include "model/autoscale_tag.h"
#include "model/function.h"

namespace fairlead::cli {
namespace {

struct Options {
  std::string name, report;
  bool explain = false;
};

using Align = Table::Align;

std::string late_part(const Json& one) {
  const Json totals = one.value("totals", Json::object());
  const double answered = totals.value("answered", 0.0);
  return answered > 0 ? fmt::format("{:.2f} %", 100 * totals.value("late", 0.0) / answered) : "-";
}

std::string over_bound(const Json& one) {
  const Json totals = one.value("totals", Json::object());
  const double bound = totals.value("bound_gpu_seconds", 0.0);
  return bound > 0 ? fmt::format("{:.2f}", totals.value("held_gpu_seconds", 0.0) / bound) : "-";
}

std::string scaling_table(const Json& functions) {
  Table table({{"FUNCTION", Align::kLeft},
               {"STATE", Align::kLeft},
               {"SMS", Align::kRight},
               {"TIME", Align::kRight},
               {"REQ/S EACH", Align::kRight},
               {"SEATS", Align::kRight},
               {"READY", Align::kRight},
               {"GPUS", Align::kRight},
               {"LATE", Align::kRight},
               {"HELD/BOUND", Align::kRight},
               {"LACKS", Align::kLeft}});
  double gpus = 0;
  for (const Json& one : functions) {
    gpus += one.value("gpus", 0.0);
    table.add_row(
        {one.value("function", ""), one.value("state", ""), fmt::format("{} %", one.value("width_percent", 0)),
         fmt::format("{} %", one.value("quota_percent", 0)), fmt::format("{:.1f}", one.value("rate_per_s", 0.0)),
         fmt::format("{}", one.value("seats", 0)), fmt::format("{}", one.value("ready", 0)),
         fmt::format("{:.2f}", one.value("gpus", 0.0)), late_part(one), over_bound(one), one.value("lacking", "")});
  }
  return table.text() + fmt::format("{:.2f} GPUs in all\n", gpus);
}

std::string notes_text(const Json& scaling) {
  std::string text;
  for (const Json& note : scaling.value("notes", Json::array())) {
    text += fmt::format("{}  saw {}\n", format_time(note.value("at_ms", std::int64_t{0})), note.value("saw", ""));
    for (const Json& did : note.value("did", Json::array())) text += "    did:      " + did.get<std::string>() + "\n";
    for (const Json& not_done : note.value("rejected", Json::array())) {
      text += "    rejected: " + not_done.get<std::string>() + "\n";
    }
    if (const auto repeats = note.value("repeats", std::uint64_t{0}); repeats > 0) {
      text += fmt::format("    then {} times nothing was to be done\n", repeats);
    }
  }
  return text.empty() ? "no decision yet\n" : text;
}

Result<Json> functions_of(Cli& cli, const Options& options) {
  if (options.name.empty()) {
    Result<Json> all = cli.node().call("GET", "/fairlead/v1/scaling");
    if (!all) return all;
    return all->value("functions", Json::array());
  }
  Result<Json> one = cli.node().call("GET", native_path(options.name, "/scaling"));
  if (!one) return one;
  return Json::array({*one});
}

// What a page is made of, beside the functions.
Result<ScalingReport> report_on(Cli& cli, const Json& functions) {
  const Result<Json> all = cli.node().call("GET", "/fairlead/v1/scaling");
  if (!all) return fail(all.error());
  Result<Json> status = cli.node().call("GET", "/fairlead/v1/status");
  if (!status) return fail(status.error());
  ScalingReport report{.functions = functions,
                       .placements = all->value("placements", Json::array()),
                       .status = *std::move(status),
                       .profiles = {},
                       .now_ms = wall_clock_ms()};
  for (const Json& function : functions) {
    const std::string name = function.value("function", "");
    const Result<Json> known = cli.node().call("GET", native_path(name, "/profile"));
    if (!known) continue;  // it was deleted meanwhile
    const Json profiles = known->value("profiles", Json::array());
    if (profiles.empty()) continue;
    if (auto read = profile_from_json(profiles.front().dump())) report.profiles[name] = *std::move(read);
  }
  return report;
}

int write_report(Cli& cli, const Options& options, const Json& functions) {
  const Result<ScalingReport> report = report_on(cli, functions);
  if (!report) return cli.report(report.error());
  std::ofstream file(options.report);
  file << scaling_page(*report) << std::flush;
  if (!file) {
    return cli.report({Errc::kInvalidArgument, fmt::format("--report: {} cannot be written", options.report)});
  }
  cli.err() << fmt::format("{}: what was measured, chosen, placed and scaled of {} functions\n", options.report,
                           functions.size());
  return kOk;
}

int run_autoscale(Cli& cli, const Options& options) {
  Result<Json> functions = functions_of(cli, options);
  if (!functions) return cli.report(functions.error());
  if ((options.explain || !options.report.empty()) && options.name.empty()) {  // the list has no notes
    for (Json& function : *functions) {
      Result<Json> one = cli.node().call("GET", native_path(function.value("function", ""), "/scaling"));
      if (one) function = *std::move(one);
    }
  }
  if (!options.report.empty()) {
    if (const int written = write_report(cli, options, *functions); written != kOk) return written;
  }
  if (cli.json()) return cli.out() << functions->dump(2) << "\n", kOk;
  cli.out() << scaling_table(*functions);
  if (!options.explain) return kOk;
  for (const Json& function : *functions) {
    cli.out() << "\n" << function.value("function", "") << ", the newest first\n" << notes_text(function);
  }
  return kOk;
}

int set_tag(Cli& cli, const Options& options, const char* value) {
  const auto tagged =
      cli.node().call("POST", tags_path(options.name), Json{{"Tags", {{std::string(kAutoscaleTag), value}}}});
  if (!tagged) return cli.report(tagged.error());
  cli.out() << fmt::format("{} is {}\n", options.name,
                           std::string_view(value) == "true" ? "scaled" : "pinned as it is");
  return kOk;
}

}  // namespace

void add_autoscale(Cli& cli) {
  const auto options = std::make_shared<Options>();
  CLI::App& autoscale = cli.add_command("autoscale", "Show functions that the node scales, what each costs, and why",
                                        [&cli, options] { return run_autoscale(cli, *options); });
  autoscale.add_option("NAME", options->name, "Only this function");
  autoscale.add_option(
      "--report", options->report,
      "Write one page to this file: what was measured, chosen, placed, moved and scaled, and its cost");
  autoscale.add_flag("--explain", options->explain, "Each decision with what it saw and what it rejected");
  const auto add = [&](const char* name, const char* what, const char* value) {
    cli.add_command(autoscale, name, what, [&cli, options, value] { return set_tag(cli, *options, value); })
        .add_option("NAME", options->name, "Function")
        ->required();
  };
  add("pin", "Keep what was found: nothing is scaled any more", "pinned");
  add("unpin", "Scale it again", "true");
}

}  // namespace fairlead::cli
