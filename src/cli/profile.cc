// `fairlead profile`: what a function does on parts of a GPU, measured on the live node; shown, exported, imported.
#include <fstream>
#include <ostream>

#include "cli/commands.h"
#include "cli/payload.h"
#include "cli/profile_page.h"
#include "cli/profile_runs.h"
#include "model/function.h"
#include "net/http_client.h"

namespace fairlead::cli {
namespace {

struct Options {
  std::string name, sample, html, file = "-";
  bool grid = false, alone = false, yes = false;
  double trial_seconds = 0;
};

Status write_page(const std::string& path, const Json& profile) {
  const auto read = profile_from_json(profile.dump());
  if (!read) return fail(read.error());
  std::ofstream file(path);
  file << profile_page(*read) << std::flush;
  if (!file) return fail(Errc::kInvalidArgument, "--html: {} cannot be written", path);
  return {};
}

int tell(Cli& cli, const Options& options, const Json& profile) {
  if (!options.html.empty()) {
    if (Status written = write_page(options.html, profile); !written) return cli.report(written.error());
  }
  cli.out() << (cli.json() ? profile.dump(2) + "\n" : profile_text(profile));
  return kOk;
}

int run_profile(Cli& cli, const Options& options) {
  if (options.name.empty()) return cli.report({Errc::kInvalidArgument, "NAME is missing: which function?"});
  const bool is_generated = options.sample.empty();
  const auto known = cli.node().call("GET", native_path(options.name, "/profile"));
  if (!known) return cli.report(known.error());
  const bool is_pipeline = known->contains("components");
  if (is_pipeline && (!options.html.empty() || options.grid || options.alone)) {
    return cli.report({Errc::kInvalidArgument,
                       fmt::format("--grid, --alone, --html: {} is a pipeline; its stages have slices of their own, so "
                                   "there are no rectangles to measure",
                                   options.name)});
  }
  if (is_generated) {  // before anybody is asked: only of what says what it takes
    if (!cli.node().call("GET", "/v2/models/" + net::percent_encode(options.name))) {
      return cli.report(
          {Errc::kInvalidArgument,
           "--sample is missing: a file with the payload that trials send (of a kernel task or a pipeline "
           "the node makes it up)"});
    }
  }
  auto payload =
      is_generated ? Result<std::string>("") : read_payload({.file = options.sample}, cli.in(), kMaxSyncPayloadBytes);
  if (!payload) return cli.report(payload.error());
  const Payloads payloads = is_generated ? Payloads::kMadeUp : Payloads::kOfAuthor;
  const Experiment experiment = is_pipeline    ? Experiment::kPipeline
                                : options.grid ? Experiment::kGrid
                                               : Experiment::kRectangles;
  if (!agrees_to_calls(cli, options.name, payloads, experiment, options.yes)) {
    return cli.report({Errc::kInvalidArgument, "nothing was measured: say --yes"});
  }
  const auto profile = run_experiment(cli, {.function = options.name,
                                            .payload = *std::move(payload),
                                            .is_generated = is_generated,
                                            .is_grid = options.grid,
                                            .trial_seconds = options.trial_seconds,
                                            .is_alone = options.alone});
  if (!profile) return cli.report(profile.error());
  return tell(cli, options, *profile);
}

// The newest.
Result<Json> kept_profile(Cli& cli, const std::string& function) {
  Result<Json> known = cli.node().call("GET", native_path(function, "/profile"));
  if (!known) return known;
  const Json profiles = known->value("profiles", Json::array());
  if (profiles.empty()) {
    return fail(Errc::kNotFound, "nothing was measured of {}: fairlead profile {} --sample FILE", function, function);
  }
  return profiles.front();
}

// Of a pipeline: as plans count on it now, which every call makes better.
int run_show(Cli& cli, const Options& options) {
  const auto known = cli.node().call("GET", native_path(options.name, "/profile"));
  if (!known) return cli.report(known.error());
  if (const Json now = known->value("components", Json()); now.is_array()) {
    if (!options.html.empty())
      return cli.report({Errc::kInvalidArgument,
                         fmt::format("--html: {} is a pipeline, and has no rectangles to draw", options.name)});
    cli.out() << (cli.json() ? known->dump(2) + "\n" : component_times_text(now));
    return kOk;
  }
  const auto profile = kept_profile(cli, options.name);
  if (!profile) return cli.report(profile.error());
  return tell(cli, options, *profile);
}

int run_export(Cli& cli, const Options& options) {
  const auto profile = kept_profile(cli, options.name);
  if (!profile) return cli.report(profile.error());
  if (options.file == "-") return cli.out() << profile->dump(2) << "\n", kOk;
  std::ofstream file(options.file);
  file << profile->dump(2) << "\n" << std::flush;
  if (!file) return cli.report({Errc::kInvalidArgument, fmt::format("FILE: {} cannot be written", options.file)});
  return kOk;
}

int run_import(Cli& cli, const Options& options) {
  auto text = read_payload({.file = options.file}, cli.in(), kMaxProfileBytes);
  if (!text) return cli.report(text.error());
  const auto read = profile_from_json(*text);
  if (!read) return cli.report(read.error());
  const auto kept = cli.node().send(
      {.method = "PUT", .target = native_path(options.name, "/profile"), .headers = {}, .body = *std::move(text)});
  if (!kept) return cli.report(kept.error());
  cli.out() << fmt::format("{} has a profile of {} trials on {}\n", options.name, read->trials.size(), read->device);
  return kOk;
}

int run_stop(Cli& cli, const Options& options) {
  const auto stopped = cli.node().call("DELETE", native_path(options.name, "/profile"));
  return stopped ? kOk : cli.report(stopped.error());
}

}  // namespace

void add_profile(Cli& cli) {
  const auto options = std::make_shared<Options>();
  CLI::App& profile = cli.add_command(
      "profile", "Measure what a function does on parts of a GPU: it is called again and again on this node",
      [&cli, options] { return run_profile(cli, *options); });
  profile.add_option("NAME", options->name, "Function");
  profile.add_option("--sample", options->sample,
                     "File with the payload that trials send; -: standard input [of a kernel task or a pipeline: made "
                     "up by the node]");
  profile.add_flag("--grid", options->grid, "Measure the paper's 35 rectangles, not only those that tell most");
  profile.add_flag("--alone", options->alone,
                   "No trial at the end beside a copy of the function [one, with --sharing mps]");
  profile.add_flag("--yes,-y", options->yes, "Do not ask");
  profile.add_option("--trial-seconds", options->trial_seconds, "How long a trial measures [as long as it has to]")
      ->check(CLI::Range(0.1, 600.0));
  profile.add_option("--html", options->html, "Write a page with a heat map to this file");
  const auto add = [&](const char* name, const char* what, int (*run)(Cli&, const Options&)) -> CLI::App& {
    CLI::App& command = cli.add_command(profile, name, what, [&cli, options, run] { return run(cli, *options); });
    command.add_option("NAME", options->name, "Function")->required();
    return command;
  };
  add("show", "Show what was measured last", run_show)
      .add_option("--html", options->html, "Write a page with a heat map to this file");
  add("export", "Write what was measured last, for another node", run_export)
      .add_option("FILE", options->file, "File [standard output]");
  add("import", "Take what another node measured of the same code", run_import)
      .add_option("FILE", options->file, "File; -: standard input");
  add("stop", "End the experiment that goes on", run_stop);
}

}  // namespace fairlead::cli
