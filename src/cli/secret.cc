// fairlead secret: what functions need to know and nobody may read (docs/how-to/secrets.md).
#include <termios.h>
#include <unistd.h>

#include <iostream>
#include <memory>
#include <ostream>

#include "cli/commands.h"
#include "cli/format.h"
#include "cli/payload.h"
#include "cli/table.h"
#include "model/secret_reference.h"

namespace fairlead::cli {
namespace {

constexpr const char* kSecretsPath = "/fairlead/v1/secrets";

// Letters that are typed do not show, until this goes.
class Hidden {
 public:
  Hidden() {
    if (::tcgetattr(STDIN_FILENO, &before_) != 0) return;
    termios hidden = before_;
    hidden.c_lflag &= ~static_cast<tcflag_t>(ECHO);
    is_hidden_ = ::tcsetattr(STDIN_FILENO, TCSAFLUSH, &hidden) == 0;
  }
  Hidden(const Hidden&) = delete;
  Hidden& operator=(const Hidden&) = delete;
  ~Hidden() {
    if (is_hidden_) ::tcsetattr(STDIN_FILENO, TCSAFLUSH, &before_);
  }

 private:
  termios before_{};
  bool is_hidden_ = false;
};

// A line at a terminal; else all of standard input, as it is but for one newline at its end. Never an argument: those are seen by
// everybody on the machine and kept by the shell.
Result<std::string> read_secret(Cli& cli, const std::string& name) {
  if (::isatty(STDIN_FILENO) != 0) {
    cli.err() << "secret " << name << ": " << std::flush;
    std::string value;
    const Hidden hidden;
    std::getline(std::cin, value);
    cli.err() << "\n";
    return value;
  }
  auto value = read_payload({.file = "-"}, std::cin, kMaxSecretBytes + 1);
  if (value && value->ends_with('\n')) value->pop_back();
  return value;
}

struct Wanted {
  std::string name, tenant;
};

net::ClientRequest request_for(const Wanted& wanted, std::string method, std::string path) {
  net::ClientRequest request{.method = std::move(method), .target = std::move(path)};
  if (!wanted.tenant.empty()) request.headers.push_back({"X-Fairlead-Tenant", wanted.tenant});
  return request;
}

std::string path_of(const Wanted& wanted) {
  return std::string(kSecretsPath) + "/" + net::percent_encode(wanted.name);
}

int run_set(Cli& cli, const Wanted& wanted) {
  net::ClientRequest request = request_for(wanted, "PUT", path_of(wanted));
  auto value = read_secret(cli, wanted.name);
  if (!value) return cli.report(value.error());
  request.body = *std::move(value);
  const auto answer = cli.node().send(std::move(request));
  if (!answer) return cli.report(answer.error());
  if (!cli.json()) cli.out() << "use it as the value of a variable: {{resolve:secret:" << wanted.name << "}}\n";
  return kOk;
}

int run_remove(Cli& cli, const Wanted& wanted) {
  const auto answer = cli.node().send(request_for(wanted, "DELETE", path_of(wanted)));
  return answer ? kOk : cli.report(answer.error());
}

int run_list(Cli& cli, const Wanted& wanted) {
  const auto response = cli.node().send(request_for(wanted, "GET", kSecretsPath));
  if (!response) return cli.report(response.error());
  const Json answer = Json::parse(response->body, nullptr, false);
  if (!answer.is_object()) return cli.report({Errc::kCorrupt, "the node did not answer with JSON"});
  if (cli.json()) {
    cli.out() << answer.dump(2) << "\n";
    return kOk;
  }
  Table table({{"SECRET"}, {"TENANT"}, {"CHANGED"}, {"BYTES"}, {"NODES"}});
  for (const Json& secret : answer.value("secrets", Json::array())) {
    table.add_row({secret.value("name", ""), secret.value("tenant", ""),
                   format_time(secret.value("changed_ms", std::int64_t{0})), std::to_string(secret.value("bytes", 0)),
                   secret.value("nodes", "this")});
  }
  cli.out() << table.text();
  return kOk;
}

}  // namespace

void add_secret(Cli& cli) {
  CLI::App& group = cli.add_group("secret", "Keep passwords and tokens for functions; nobody reads them back");
  const auto wanted = std::make_shared<Wanted>();
  const auto add = [&](const char* name, const char* help, int (*run)(Cli&, const Wanted&)) -> CLI::App& {
    CLI::App& command = cli.add_command(group, name, help, [&cli, wanted, run] { return run(cli, *wanted); });
    command.add_option("--tenant", wanted->tenant, "Whose, with a key for all tenants [default]");
    return command;
  };
  add("set", "Take a secret from standard input, in place of one with that name", run_set)
      .add_option("NAME", wanted->name, "1 to 64 letters, digits, '.', '_' or '-'")
      ->required();
  add("remove", "Forget a secret; functions that refer to it do not start any more", run_remove)
      .add_option("NAME", wanted->name, "Which")
      ->required();
  add("list", "Names and sizes; never the secrets", run_list);
}

}  // namespace fairlead::cli
