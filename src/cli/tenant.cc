// fairlead tenant: who may use the node (docs/how-to/identity.md).
#include <charconv>
#include <memory>
#include <optional>
#include <ostream>

#include "cli/commands.h"
#include "cli/format.h"
#include "cli/table.h"

namespace fairlead::cli {
namespace {

constexpr const char* kKeysPath = "/fairlead/v1/keys";

constexpr std::int64_t kMostSeconds = std::int64_t{10} * 365 * 86'400;  // as the node has it (edge/native/keys.cc)

// 0: none
std::int64_t seconds_of_unit(char unit) {
  switch (unit) {
    case 's': return 1;
    case 'm': return 60;
    case 'h': return 3'600;
    case 'd': return 86'400;
    default: return 0;
  }
}

// "90s", "15m", "12h", "30d"
Result<std::int64_t> seconds_from(const std::string& option, const std::string& text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool has_unit = error != std::errc::invalid_argument && end + 1 == text.data() + text.size() && number >= 0;
  const std::int64_t unit = has_unit ? seconds_of_unit(text.back()) : 0;
  if (unit == 0) {
    return fail(Errc::kInvalidArgument, "{} is '{}'; it must be a whole number and s, m, h or d, for example 30d",
                option, text);
  }
  // Divided, because the product may not fit.
  if (error == std::errc() && number <= kMostSeconds / unit) return number * unit;
  return fail(Errc::kInvalidArgument, "{} is '{}'; it must be between 0 and {} seconds, which are {}d", option, text,
              kMostSeconds, kMostSeconds / 86'400);
}

std::string key_path(const std::string& key) {
  return std::string(kKeysPath) + "/" + net::percent_encode(key);
}

// The one time that the secret is to be seen.
int show_issued(Cli& cli, const Result<Json>& answer) {
  if (!answer) return cli.report(answer.error());
  if (cli.json()) {
    cli.out() << answer->dump(2) << "\n";
    return kOk;
  }
  const std::string id = answer->value("id", ""), secret = answer->value("secret", "");
  cli.out() << "export AWS_ACCESS_KEY_ID=" << id << "\n"
            << "export AWS_SECRET_ACCESS_KEY=" << secret << "\n"
            << "export FAIRLEAD_TOKEN=" << id << "." << secret << "\n";
  cli.err()
      << "the secret is shown this once: the AWS variables are for AWS SDKs, the token for fairlead and its SDK\n";
  return kOk;
}

struct NewKey {
  std::string tenant, role = "deployer", note;
  std::optional<std::string> expires;  // none: never
};

int run_add(Cli& cli, const NewKey& wanted) {
  Json body{{"role", wanted.role}, {"tenant", wanted.tenant}};
  if (!wanted.note.empty()) body["note"] = wanted.note;
  if (wanted.expires) {
    const auto seconds = seconds_from("--expires", *wanted.expires);
    if (!seconds) return cli.report(seconds.error());
    body["expires_seconds"] = *seconds;
  }
  return show_issued(cli, cli.node().call("POST", kKeysPath, body));
}

int run_rotate(Cli& cli, const std::string& key, const std::string& grace) {
  const auto seconds = seconds_from("--grace", grace);
  if (!seconds) return cli.report(seconds.error());
  return show_issued(cli, cli.node().call("POST", key_path(key) + "/rotate", {{"grace_seconds", *seconds}}));
}

int run_revoke(Cli& cli, const std::string& key) {
  const auto answer = cli.node().call("DELETE", key_path(key));
  return answer ? kOk : cli.report(answer.error());
}

std::string time_or(const Json& key, const char* field, const char* otherwise) {
  const Json& value = key.value(field, Json());
  return value.is_number() ? format_time(value.get<std::int64_t>()) : otherwise;
}

int run_keys(Cli& cli) {
  const auto answer = cli.node().call("GET", kKeysPath);
  if (!answer) return cli.report(answer.error());
  if (cli.json()) {
    cli.out() << answer->dump(2) << "\n";
    return kOk;
  }
  Table table({{"KEY"}, {"TENANT"}, {"ROLE"}, {"MADE"}, {"EXPIRES"}, {"NODES"}, {"NOTE"}});
  for (const Json& key : answer->value("keys", Json::array())) {
    const Json tenant = key.value("tenant", Json());
    table.add_row({key.value("id", ""), tenant.is_string() ? tenant.get<std::string>() : "*", key.value("role", ""),
                   time_or(key, "created_ms", "-"), time_or(key, "expires_ms", "never"), key.value("nodes", "this"),
                   key.value("note", "")});
  }
  cli.out() << table.text();
  return kOk;
}

}  // namespace

void add_tenant(Cli& cli) {
  CLI::App& group = cli.add_group("tenant", "Make, list and revoke the API keys of tenants");
  const auto wanted = std::make_shared<NewKey>();
  CLI::App& add = cli.add_command(group, "add", "Make a key for a tenant and print it: the secret is shown this once",
                                  [&cli, wanted] { return run_add(cli, *wanted); });
  add.add_option("NAME", wanted->tenant, "The tenant, 1 to 64 letters, digits, - or _; * for all tenants")->required();
  add.add_option("--role", wanted->role,
                 "What the key may do: reader, invoker (and run functions), deployer (and change them), operator "
                 "(everything; with NAME *)")
      ->capture_default_str();
  add.add_option("--expires", wanted->expires, "After how long it ends, for example 12h or 30d [never]");
  add.add_option("--note", wanted->note, "For people, for example who has it");
  cli.add_command(group, "keys", "List the keys of all tenants", [&cli] { return run_keys(cli); });
  const auto key = std::make_shared<std::string>();
  const auto grace = std::make_shared<std::string>("24h");
  CLI::App& rotate = cli.add_command(group, "rotate", "Make a new key like an old one, which goes on for a while",
                                     [&cli, key, grace] { return run_rotate(cli, *key, *grace); });
  rotate.add_option("KEY", *key, "Id of the old key")->required();
  rotate.add_option("--grace", *grace, "For how long the old one goes on")->capture_default_str();
  cli.add_command(group, "revoke", "End a key at once", [&cli, key] { return run_revoke(cli, *key); })
      .add_option("KEY", *key, "Id of the key")
      ->required();
}

}  // namespace fairlead::cli
