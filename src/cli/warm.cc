// fairlead warm, fairlead unload: instances that are kept started, and instances that go now (docs/how-to/warm.md).
#include "cli/warm.h"

#include <memory>
#include <ostream>

#include "base/clock.h"
#include "cli/format.h"
#include "cli/profile_runs.h"
#include "model/function.h"
#include "model/warmth_tags.h"

namespace fairlead::cli {
namespace {

struct Options {
  std::string function;
  int instances = 1;
};

std::string provisioned_path(const std::string& function) {
  return "/2019-09-30/functions/" + net::percent_encode(function) + "/provisioned-concurrency?Qualifier=%24LATEST";
}

Result<Json> keep(Cli& cli, const Options& options) {
  if (options.instances > 0) {
    return cli.node().call("PUT", provisioned_path(options.function),
                           Json{{"ProvisionedConcurrentExecutions", options.instances}});
  }
  Result<Json> ended = cli.node().call("DELETE", provisioned_path(options.function));
  if (ended || ended.error().code != Errc::kNotFound) return ended;
  // None was kept, which is what is asked for; or there is no such function.
  const Result<Json> known = cli.node().call("GET", function_path(options.function, "/configuration"));
  return known ? Result<Json>(Json::object()) : Result<Json>(fail(known.error()));
}

int run_warm(Cli& cli, const Options& options) {
  const Result<Json> said = keep(cli, options);
  if (!said) return cli.report(said.error());
  if (cli.json()) {
    cli.out() << (said->is_object() ? *said : Json::object()).dump(2) << "\n";
    return kOk;
  }
  if (options.instances == 0) {
    cli.out() << fmt::format("{}: no instance is kept started\n", options.function);
    return kOk;
  }
  cli.out() << fmt::format("{}: {} of {} kept instances {} ready\n", options.function,
                           said->value("AvailableProvisionedConcurrentExecutions", 0), options.instances,
                           options.instances == 1 ? "is" : "are");
  cli.err() << fmt::format("next: fairlead describe {0}   fairlead warm {0} --instances 0\n", options.function);
  return kOk;
}

// A change of tags replaces a function's instances: that the tag is another one is all that counts.
int run_unload(Cli& cli, const std::string& function) {
  const Result<Json> known = cli.node().call("GET", function_path(function));
  if (!known) return cli.report(known.error());
  if (const int kept = instances_kept(known->value("Tags", Json::object()).get<Tags>()); kept > 0) {
    return cli.report({Errc::kConflict, fmt::format("{} of {}'s instances are kept started and would start again: "
                                                    "fairlead warm {} --instances 0",
                                                    kept, function, function)});
  }
  const Json tags{{std::string(kUnloadedAtTag), std::to_string(wall_clock_ms())}};
  const Result<Json> said =
      cli.node().call("POST", "/2017-03-31/tags/" + net::percent_encode(function_arn(function)), Json{{"Tags", tags}});
  if (!said) return cli.report(said.error());
  if (cli.json()) {
    cli.out() << tags.dump(2) << "\n";
  } else {
    cli.out() << function << ": idle instances ended, and busy ones end after what they run\n";
  }
  return kOk;
}

}  // namespace

void add_warm(Cli& cli) {
  auto options = std::make_shared<Options>();
  CLI::App& command = cli.add_command("warm", "Keep instances of a function started, so that no call waits for a start",
                                      [&cli, options] { return run_warm(cli, *options); });
  command.add_option("NAME", options->function, "Function")->required();
  command.add_option("--instances", options->instances, "How many; 0: none is kept any more")
      ->check(CLI::Range(0, kMaxReplicas))
      ->capture_default_str();
}

void add_unload(Cli& cli) {
  auto function = std::make_shared<std::string>();
  cli.add_command("unload", "End a function's idle instances now; busy ones end after what they run",
                  [&cli, function] { return run_unload(cli, *function); })
      .add_option("NAME", *function, "Function")
      ->required();
}

}  // namespace fairlead::cli
