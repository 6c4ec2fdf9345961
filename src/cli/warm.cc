// fairlead warm, fairlead unload: instances that are kept started or held, what they take, and instances that go now
// (docs/how-to/warm.md).
#include "cli/warm.h"

#include <memory>
#include <optional>
#include <ostream>

#include "base/clock.h"
#include "cli/format.h"
#include "cli/profile_runs.h"
#include "cli/warmth_text.h"
#include "model/function.h"
#include "model/provisioned_tag.h"
#include "model/version.h"
#include "model/warmth_tags.h"

namespace fairlead::cli {
namespace {

struct Options {
  std::string function, qualifier;
  std::optional<int> instances;
  std::string keep, pin;

  bool holds() const { return !keep.empty() || !pin.empty(); }
  bool is_of_version() const { return !qualifier.empty() && qualifier != kLatestVersion; }
  // What is kept, as people write it: "f", "f:live".
  std::string named() const { return is_of_version() ? function + ":" + qualifier : function; }
};

constexpr const char* kUntilToldOtherwise = "none";

std::string provisioned_path(const Options& options) {
  const std::string qualifier = options.is_of_version() ? options.qualifier : std::string(kLatestVersion);
  return "/2019-09-30/functions/" + net::percent_encode(options.function) +
         "/provisioned-concurrency?Qualifier=" + net::percent_encode(qualifier);
}

Result<Json> keep_started(Cli& cli, const Options& options, int instances) {
  if (instances > 0) {
    return cli.node().call("PUT", provisioned_path(options), Json{{"ProvisionedConcurrentExecutions", instances}});
  }
  Result<Json> ended = cli.node().call("DELETE", provisioned_path(options));
  if (ended || ended.error().code != Errc::kNotFound) return ended;
  // None was kept, which is what is asked for; or there is no such function.
  const std::string query = options.is_of_version() ? "?Qualifier=" + net::percent_encode(options.qualifier) : "";
  const Result<Json> known = cli.node().call("GET", function_path(options.function, "/configuration") + query);
  return known ? Result<Json>(Json::object()) : Result<Json>(fail(known.error()));
}

// One tag after the other: what is to have none, then what is to have another.
Result<Json> hold(Cli& cli, const Options& options) {
  Json set = Json::object();
  if (options.keep == kUntilToldOtherwise) {
    const std::string path = tags_path(options.function) + "?tagKeys=" + net::percent_encode(std::string(kKeepTag));
    if (Result<Json> gone = cli.node().call("DELETE", path); !gone) return gone;
  } else if (!options.keep.empty()) {
    const auto time = read_keep("--keep", options.keep);
    if (!time) return fail(time.error());
    set[std::string(kKeepTag)] = keep_text(*time);
  }
  if (!options.pin.empty()) set[std::string(kPinTag)] = options.pin;
  if (set.empty()) return Json(Json::object());
  const Result<Json> said = cli.node().call("POST", tags_path(options.function), Json{{"Tags", set}});
  return said ? Result<Json>(set) : said;
}

int show(Cli& cli) {
  Result<Json> status = cli.node().call("GET", "/fairlead/v1/status");
  if (!status) return cli.report(status.error());
  status = with_holds(*std::move(status), cli.node().call("GET", "/fairlead/v1/warmth").value_or(Json()));
  if (cli.json()) {
    cli.out() << warmth_of(*status).dump(2) << "\n";
  } else {
    cli.out() << warmth_text(*status);
  }
  return kOk;
}

int run_warm(Cli& cli, const Options& options) {
  if (options.function.empty()) {
    if (!options.instances && !options.holds() && options.qualifier.empty()) return show(cli);
    return cli.report({Errc::kInvalidArgument,
                       "--instances, --qualifier, --keep and --pin are of a function: fairlead warm NAME ..."});
  }
  if (options.holds() && options.is_of_version()) {
    return cli.report(
        {Errc::kInvalidArgument,
         fmt::format("--qualifier is '{}': --keep and --pin hold instances of $LATEST; with --instances N "
                     "some of {} are kept started",
                     options.qualifier, options.named())});
  }
  Json all = Json::object();
  if (options.holds()) {
    const Result<Json> said = hold(cli, options);
    if (!said) return cli.report(said.error());
    all.update(*said);
    if (!cli.json()) {
      std::string words;
      if (!options.pin.empty()) words += "pinned: " + options.pin;
      if (!options.keep.empty()) words += (words.empty() ? "" : ", ") + ("kept after a call: " + options.keep);
      cli.out() << fmt::format("{}: {}\n", options.function, words);
    }
  }
  if (options.instances || !options.holds()) {
    const int wanted = options.instances.value_or(1);
    const Result<Json> said = keep_started(cli, options, wanted);
    if (!said) return cli.report(said.error());
    if (said->is_object()) all.update(*said);
    if (!cli.json() && wanted == 0) cli.out() << fmt::format("{}: no instance is kept started\n", options.named());
    if (!cli.json() && wanted > 0) {
      const std::string of = options.is_of_version() ? " --qualifier " + options.qualifier : "";
      cli.out() << fmt::format("{}: {} of {} kept instances {} ready\n", options.named(),
                               said->value("AvailableProvisionedConcurrentExecutions", 0), wanted,
                               wanted == 1 ? "is" : "are");
      cli.err() << fmt::format("next: fairlead {1}   fairlead warm {0}{2} --instances 0\n", options.function,
                               options.is_of_version() ? "warm" : "describe " + options.function, of);
    }
  }
  if (cli.json()) cli.out() << all.dump(2) << "\n";
  return kOk;
}

// A change of this tag replaces a function's instances: that it is another one is all that counts.
int run_unload(Cli& cli, const std::string& function) {
  const Result<Json> known = cli.node().call("GET", function_path(function));
  if (!known) return cli.report(known.error());
  const Tags tags = known->value("Tags", Json::object()).get<Tags>();
  if (const int kept = instances_kept(tags); kept > 0) {
    return cli.report({Errc::kConflict, fmt::format("{} of {}'s instances are kept started and would start again: "
                                                    "fairlead warm {} --instances 0",
                                                    kept, function, function)});
  }
  const Provisioned published = provisioned_in(tags).value_or(Provisioned());
  if (!published.empty()) {
    const auto& [qualifier, kept] = *published.begin();
    return cli.report({Errc::kConflict, fmt::format("{0} of {1}:{2}'s instances are kept started and would start "
                                                    "again: fairlead warm {1} --qualifier {2} --instances 0",
                                                    kept, function, qualifier)});
  }
  const auto pin = tags.find(std::string(kPinTag));
  if (pin != tags.end() && pin->second != pin_name(PinKind::kNone)) {
    return cli.report(
        {Errc::kConflict, fmt::format("{} is pinned ({} is {}) and would start again: fairlead warm {} --pin none",
                                      function, kPinTag, pin->second, function)});
  }
  const Json set{{std::string(kUnloadedAtTag), std::to_string(wall_clock_ms())}};
  const Result<Json> said = cli.node().call("POST", tags_path(function), Json{{"Tags", set}});
  if (!said) return cli.report(said.error());
  if (cli.json()) {
    cli.out() << set.dump(2) << "\n";
  } else {
    cli.out() << function << ": idle instances ended, and busy ones end after what they run\n";
  }
  return kOk;
}

}  // namespace

void add_warm(Cli& cli) {
  auto options = std::make_shared<Options>();
  CLI::App& command =
      cli.add_command("warm", "Keep instances of a function started or held; without NAME, show what is warm",
                      [&cli, options] { return run_warm(cli, *options); });
  command.add_option("NAME", options->function, "Function; none: shows every instance, where it is and what it takes");
  command
      .add_option("--instances", options->instances, "How many are kept started; 0: none [1, unless --keep or --pin]")
      ->check(CLI::Range(0, kMaxReplicas));
  command.add_option("-q,--qualifier", options->qualifier,
                     "Of which version or alias they are kept started; $LATEST unless told");
  command.add_option("--keep", options->keep,
                     "How long an idle instance stays after its last call, and then ends: 90s, 10m, 2h, 0; none: as "
                     "the node's policy has it");
  command.add_option("--pin", options->pin, "Where idle instances stay, whoever wants their room")
      ->check(CLI::IsMember({"device", "host", "none"}));
}

void add_unload(Cli& cli) {
  auto function = std::make_shared<std::string>();
  cli.add_command("unload", "End a function's idle instances now; busy ones end after what they run",
                  [&cli, function] { return run_unload(cli, *function); })
      .add_option("NAME", *function, "Function")
      ->required();
}

}  // namespace fairlead::cli
