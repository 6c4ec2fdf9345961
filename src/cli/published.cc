#include "cli/published.h"

#include <charconv>
#include <memory>
#include <ostream>
#include <utility>

#include "cli/exit_status.h"
#include "cli/table.h"
#include "model/version.h"

namespace fairlead::cli {
namespace {

using enum Table::Align;

std::string path_of(const std::string& function, const std::string& alias) {
  return function_path(function, "/aliases") + (alias.empty() ? "" : "/" + net::percent_encode(alias));
}

// All pages of what is listed under `field`.
Result<Json> list_all(Cli& cli, const std::string& path, const char* field) {
  Json all = Json::array();
  std::string marker;
  do {
    const std::string query = "?MaxItems=50" + (marker.empty() ? "" : "&Marker=" + net::percent_encode(marker));
    Result<Json> page = cli.node().call("GET", path + query);
    if (!page) return page;
    for (Json& item : (*page)[field]) all.push_back(std::move(item));
    marker = page->value("NextMarker", "");
  } while (!marker.empty());
  return all;
}

std::string weights_text(const Json& alias) {
  const Json routing = alias.value("RoutingConfig", Json::object());
  const Json weights = routing.value("AdditionalVersionWeights", Json::object());
  std::string text;
  for (const auto& [version, weight] : weights.items()) {
    text += fmt::format("{}{}: {:g}%", text.empty() ? "" : ", ", version, weight.get<double>() * 100);
  }
  return text.empty() ? "-" : text;
}

int print(Cli& cli, const Result<Json>& answer, const std::function<std::string(const Json&)>& sentence) {
  if (!answer) return cli.report(answer.error());
  cli.out() << (cli.json() ? answer->dump(2) : sentence(*answer)) << "\n";
  return kOk;
}

// ---- versions

struct PublishOptions {
  std::string function;
  std::string description;
};

int run_publish(Cli& cli, const PublishOptions& options) {
  Json body = Json::object();
  if (!options.description.empty()) body["Description"] = options.description;
  return print(cli, cli.node().call("POST", function_path(options.function, "/versions"), body), [&](const Json& made) {
    return fmt::format("{} has version {}", options.function, made.value("Version", ""));
  });
}

int run_list_versions(Cli& cli, const std::string& function) {
  const auto versions = list_all(cli, function_path(function, "/versions"), "Versions");
  if (!versions) return cli.report(versions.error());
  if (cli.json()) return cli.out() << versions->dump(2) << "\n", kOk;
  const auto aliases = list_all(cli, path_of(function, ""), "Aliases");
  if (!aliases) return cli.report(aliases.error());
  Table table(
      {{"VERSION"}, {"MODIFIED"}, {"CODE"}, {"MEMORY", kRight}, {"TIMEOUT", kRight}, {"ALIASES"}, {"DESCRIPTION"}});
  for (const Json& version : *versions) {
    const std::string number = version.value("Version", "");
    std::string leading;
    for (const Json& alias : *aliases) {
      const Json routing = alias.value("RoutingConfig", Json::object());
      const bool has_part = routing.value("AdditionalVersionWeights", Json::object()).contains(number);
      if (alias.value("FunctionVersion", "") != number && !has_part) continue;
      leading += (leading.empty() ? "" : ", ") + alias.value("Name", "");
    }
    table.add_row({number, version.value("LastModified", "").substr(0, 19),
                   version.value("CodeSha256", "").substr(0, 12), fmt::format("{} MiB", version.value("MemorySize", 0)),
                   fmt::format("{} s", version.value("Timeout", 0)), leading.empty() ? "-" : leading,
                   version.value("Description", "")});
  }
  cli.out() << table.text();
  return kOk;
}

struct Named {
  std::string function;
  std::string name;
};

int run_delete_version(Cli& cli, const Named& which) {
  if (version_number(which.name) == 0) {
    return cli.report(
        {Errc::kInvalidArgument, fmt::format("VERSION is '{}'; it must be a number: 'fairlead remove' deletes a "
                                             "function with all its versions",
                                             which.name)});
  }
  const auto answer = cli.node().call("DELETE", function_path(which.function) + "?Qualifier=" + which.name);
  return print(cli, answer ? Result<Json>(Json{{"deleted", which.name}}) : answer,
               [&](const Json&) { return fmt::format("version {} of {} is deleted", which.name, which.function); });
}

// ---- aliases

struct SetOptions {
  std::string function, name, version, description;
  std::vector<std::string> weights;  // "4=10": per cent
  bool has_description = false;
};

// "4=10" -> {"4": 0.1}. What is wrong with a version or a sum is for the node to say.
Result<Json> read_weights(const std::vector<std::string>& texts) {
  Json weights = Json::object();
  for (const std::string& text : texts) {
    const std::size_t equals = text.find('=');
    double percent = -1;
    if (equals != std::string::npos) {
      const char* const end = text.data() + text.size();
      const auto [read, error] = std::from_chars(text.data() + equals + 1, end, percent);
      if (error != std::errc() || read != end) percent = -1;
    }
    if (!(percent > 0 && percent <= 100)) {
      return fail(Errc::kInvalidArgument,
                  "--weight is '{}'; it must be VERSION=PERCENT, such as 4=10, with a part above 0 and at most 100",
                  text);
    }
    weights[text.substr(0, equals)] = percent / 100;
  }
  return weights;
}

std::string leads_to(const Json& alias) {
  const std::string weights = weights_text(alias);
  return fmt::format("{} leads to version {}{}", alias.value("Name", ""), alias.value("FunctionVersion", ""),
                     weights == "-" ? "" : ", and in part to " + weights);
}

// Made where it is not there.
int run_set(Cli& cli, const SetOptions& options) {
  const auto weights = read_weights(options.weights);
  if (!weights) return cli.report(weights.error());
  Json body{{"FunctionVersion", options.version}, {"RoutingConfig", {{"AdditionalVersionWeights", *weights}}}};
  if (options.has_description) body["Description"] = options.description;
  Result<Json> answer = cli.node().call("PUT", path_of(options.function, options.name), body);
  if (!answer && answer.error().code == Errc::kNotFound) {
    body["Name"] = options.name;
    answer = cli.node().call("POST", path_of(options.function, ""), body);
  }
  return print(cli, answer, leads_to);
}

int run_list_aliases(Cli& cli, const std::string& function) {
  const auto aliases = list_all(cli, path_of(function, ""), "Aliases");
  if (!aliases) return cli.report(aliases.error());
  if (cli.json()) return cli.out() << aliases->dump(2) << "\n", kOk;
  if (aliases->empty()) return cli.err() << function << " has no aliases\n", kOk;
  Table table({{"ALIAS"}, {"VERSION"}, {"IN PART"}, {"DESCRIPTION"}});
  for (const Json& alias : *aliases) {
    table.add_row({alias.value("Name", ""), alias.value("FunctionVersion", ""), weights_text(alias),
                   alias.value("Description", "")});
  }
  cli.out() << table.text();
  return kOk;
}

int run_delete_alias(Cli& cli, const Named& which) {
  const auto answer = cli.node().call("DELETE", path_of(which.function, which.name));
  return print(cli, answer ? Result<Json>(Json{{"deleted", which.name}}) : answer,
               [&](const Json&) { return fmt::format("alias {} of {} is deleted", which.name, which.function); });
}

// The version before the one that the alias leads to, of those that are there; nothing goes in part elsewhere then. The revision is sent
// along, so that of two who roll back at once one does.
int run_rollback(Cli& cli, const Named& which) {
  const auto alias = cli.node().call("GET", path_of(which.function, which.name));
  if (!alias) return cli.report(alias.error());
  const auto versions = list_all(cli, function_path(which.function, "/versions"), "Versions");
  if (!versions) return cli.report(versions.error());
  const std::string now = alias->value("FunctionVersion", "");
  std::uint64_t before = 0;
  for (const Json& version : *versions) {
    const std::uint64_t number = version_number(version.value("Version", ""));
    if (now == kLatestVersion || number < version_number(now)) before = std::max(before, number);
  }
  if (before == 0) {
    return cli.report({Errc::kNotFound, fmt::format("{} of {} leads to version {}, and there is none before it",
                                                    which.name, which.function, now)});
  }
  const Json body{{"FunctionVersion", version_name(before)},
                  {"RoutingConfig", {{"AdditionalVersionWeights", Json::object()}}},
                  {"RevisionId", alias->value("RevisionId", "")}};
  return print(cli, cli.node().call("PUT", path_of(which.function, which.name), body),
               [&](const Json& set) { return fmt::format("{} (it led to {})", leads_to(set), now); });
}

void add_named(CLI::App& command, Named& which, const char* name, const char* what) {
  command.add_option("FUNCTION", which.function, "Function")->required();
  command.add_option(name, which.name, what)->required();
}

}  // namespace

void add_published_versions(Cli& cli, CLI::App& version) {
  auto publish = std::make_shared<PublishOptions>();
  CLI::App& made =
      cli.add_command(version, "publish", "Keep a function's code and configuration as they are now, under a number",
                      [&cli, publish] { return run_publish(cli, *publish); });
  made.add_option("NAME", publish->function, "Function")->required();
  made.add_option("--description", publish->description, "Of the version");
  auto function = std::make_shared<std::string>();
  CLI::App& list = cli.add_command(version, "list", "List the versions of a function",
                                   [&cli, function] { return run_list_versions(cli, *function); });
  list.add_option("NAME", *function, "Function")->required();
  auto gone = std::make_shared<Named>();
  CLI::App& remove = cli.add_command(version, "delete", "Delete a version that no alias leads to",
                                     [&cli, gone] { return run_delete_version(cli, *gone); });
  add_named(remove, *gone, "VERSION", "Its number");
}

void add_alias(Cli& cli) {
  CLI::App& group = cli.add_group("alias", "Names that lead to versions of functions");
  auto set = std::make_shared<SetOptions>();
  CLI::App& put = cli.add_command(group, "set", "Let a name lead to a version, and in part to others",
                                  [&cli, set] { return run_set(cli, *set); });
  put.add_option("FUNCTION", set->function, "Function")->required();
  put.add_option("NAME", set->name, "Alias; made where there is none")->required();
  put.add_option("VERSION", set->version, "Number of a version, or $LATEST")->required();
  put.add_option("--weight", set->weights, "VERSION=PERCENT of the calls; may be given several times");
  put.add_option_function<std::string>(
      "--description",
      [set](const std::string& text) {
        set->description = text;
        set->has_description = true;
      },
      "Of the alias");
  auto function = std::make_shared<std::string>();
  CLI::App& list = cli.add_command(group, "list", "List the aliases of a function",
                                   [&cli, function] { return run_list_aliases(cli, *function); });
  list.add_option("FUNCTION", *function, "Function")->required();
  auto gone = std::make_shared<Named>();
  CLI::App& remove =
      cli.add_command(group, "delete", "Delete an alias", [&cli, gone] { return run_delete_alias(cli, *gone); });
  add_named(remove, *gone, "NAME", "Alias");
  auto back = std::make_shared<Named>();
  CLI::App& rollback = cli.add_command(group, "rollback", "Let an alias lead to the version before, with all calls",
                                       [&cli, back] { return run_rollback(cli, *back); });
  add_named(rollback, *back, "NAME", "Alias");
}

}  // namespace fairlead::cli
