// fairlead object: the data layer from the command line.
#include <fstream>
#include <functional>
#include <iostream>
#include <ostream>

#include "cli/commands.h"
#include "cli/format.h"
#include "cli/payload.h"
#include "cli/table.h"
#include "edge/native/objects.h"

namespace fairlead::cli {
namespace {

struct ObjectArguments {
  std::string tenant;
  std::string key;
  std::vector<std::string> keys;
  std::string file = "-";
  std::string prefix;
  double seconds = 0;  // put: lifetime; get: wait
};

// "/v1/objects/KEY" + query. Slashes of the key stay: they are part of the path.
std::string object_path(const std::string& key, const std::string& query = "") {
  std::string path = "/v1/objects";
  for (std::size_t begin = 0; begin <= key.size();) {
    const std::size_t end = std::min(key.find('/', begin), key.size());
    path += "/" + net::percent_encode(key.substr(begin, end - begin));
    begin = end + 1;
  }
  return path + query;
}

net::ClientRequest request_of(const ObjectArguments& arguments, std::string method, std::string target) {
  net::ClientRequest request{.method = std::move(method), .target = std::move(target)};
  if (!arguments.tenant.empty()) request.headers.push_back({"X-Fairlead-Tenant", arguments.tenant});
  return request;
}

Result<Json> json_of(Result<net::ClientResponse> response) {
  if (!response) return fail(response.error());
  Json answer = Json::parse(response->body, nullptr, /*allow_exceptions=*/false);
  if (answer.is_discarded()) return fail(Errc::kCorrupt, "the node did not answer with JSON");
  return answer;
}

int put(Cli& cli, const ObjectArguments& arguments) {
  Result<std::string> bytes = read_payload({.file = arguments.file}, cli.in(), kMaxHttpObjectBytes);
  if (!bytes) return cli.report(bytes.error());
  const std::string query = arguments.seconds > 0 ? fmt::format("?lifetime={}", arguments.seconds) : "";
  net::ClientRequest request = request_of(arguments, "PUT", object_path(arguments.key, query));
  request.body = *std::move(bytes);
  const Result<Json> info = json_of(cli.node().send(std::move(request)));
  if (!info) return cli.report(info.error());
  if (cli.json())
    cli.out() << info->dump(2) << "\n";
  else
    cli.out() << fmt::format("{}: {}, content {}\n", arguments.key, format_bytes(info->value("bytes", 0.0)),
                             info->value("content", ""));
  return kOk;
}

// A node sends kMaxHttpObjectBytes at once. Nothing is written where there is no such object.
Status read_parts(Cli& cli, const ObjectArguments& arguments, const std::function<void(std::string_view)>& write) {
  const std::string query = arguments.seconds > 0 ? fmt::format("?wait={}", arguments.seconds) : "";
  std::string content;
  for (std::uint64_t done = 0;;) {
    net::ClientRequest request = request_of(arguments, "GET", object_path(arguments.key, query));
    request.headers.push_back({"Range", fmt::format("bytes={}-", done)});
    const auto part = cli.node().send(std::move(request));
    if (!part) return fail(part.error());
    const std::string_view found = part->header("X-Fairlead-Object-Content");
    if (done > 0 && found != content) {
      return fail(Errc::kConflict, "object '{}' was replaced while it was read; read it again", arguments.key);
    }
    content = found;
    write(part->body);
    done += part->body.size();
    const std::string_view range = part->header("Content-Range");
    if (range.empty() || part->body.empty() || range.ends_with(fmt::format("/{}", done))) return {};
  }
}

int get(Cli& cli, const ObjectArguments& arguments) {
  std::ofstream file;
  const auto write = [&](std::string_view bytes) {
    if (arguments.file == "-") {
      cli.out() << bytes << std::flush;
      return;
    }
    if (!file.is_open()) file.open(arguments.file, std::ios::binary | std::ios::trunc);
    file << bytes;
  };
  if (Status got = read_parts(cli, arguments, write); !got) return cli.report(got.error());
  if (arguments.file == "-") return kOk;
  file.close();
  if (file) return kOk;
  return cli.report({Errc::kIo, fmt::format("cannot write {}", arguments.file)});
}

int list(Cli& cli, const ObjectArguments& arguments) {
  Json objects = Json::array();
  std::string after;
  do {
    const std::string query = fmt::format("/v1/objects?limit=1000&prefix={}&after={}",
                                          net::percent_encode(arguments.prefix), net::percent_encode(after));
    Result<Json> page = json_of(cli.node().send(request_of(arguments, "GET", query)));
    if (!page) return cli.report(page.error());
    for (Json& object : (*page)["objects"]) objects.push_back(std::move(object));
    after = page->value("next_after", "");
  } while (!after.empty());
  if (cli.json()) {
    cli.out() << objects.dump(2) << "\n";
    return kOk;
  }
  using enum Table::Align;
  Table table({{"KEY"}, {"SIZE", kRight}, {"STATE"}, {"CREATED"}, {"CONTENT"}});
  for (const Json& object : objects) {
    table.add_row({object.value("key", ""), format_bytes(object.value("bytes", 0.0)), object.value("state", ""),
                   format_time(object.value("created_ms", std::int64_t{0})),
                   object.value("content", "").substr(0, 12)});
  }
  cli.out() << table.text();
  return kOk;
}

int info(Cli& cli, const ObjectArguments& arguments) {
  const Result<Json> info = json_of(cli.node().send(request_of(arguments, "GET", object_path(arguments.key, "?info"))));
  if (!info) return cli.report(info.error());
  if (cli.json()) {
    cli.out() << info->dump(2) << "\n";
    return kOk;
  }
  for (const auto& [name, value] : info->items()) {
    cli.out() << fmt::format("{:<14}{}\n", name, value.is_string() ? value.get<std::string>() : value.dump());
  }
  return kOk;
}

int remove(Cli& cli, const ObjectArguments& arguments) {
  int worst = kOk;
  for (const std::string& key : arguments.keys) {
    const auto response = cli.node().send(request_of(arguments, "DELETE", object_path(key)));
    if (!response)
      worst = cli.report(response.error());
    else
      cli.out() << (cli.json() ? Json{{"removed", key}}.dump() : "removed " + key) << "\n";
  }
  return worst;
}

using Run = int (*)(Cli&, const ObjectArguments&);

}  // namespace

void add_object(Cli& cli) {
  // Shared: the parser writes them, the command reads them.
  auto arguments = std::make_shared<ObjectArguments>();
  CLI::App& command = cli.add_group("object", "Put, get, list and delete objects of the data layer");
  command.fallthrough();
  command.add_option("--tenant", arguments->tenant, "Whose objects [default]");
  const auto add = [&](const char* name, const char* description, Run action) {
    return &cli.add_command(command, name, description, [&cli, arguments, action] { return action(cli, *arguments); });
  };
  CLI::App* put_command = add("put", "Store a file, or what comes on standard input; prints its digest", &put);
  put_command->add_option("KEY", arguments->key, "Name of the new object")->required();
  put_command->add_option("FILE", arguments->file, "File; - or nothing: standard input");
  put_command->add_option("--lifetime", arguments->seconds, "Seconds after which it is deleted")
      ->check(CLI::Range(0.0, 1e9));
  CLI::App* get_command = add("get", "Write an object to standard output or to a file", &get);
  get_command->add_option("KEY", arguments->key, "Object")->required();
  get_command->add_option("-o,--output", arguments->file, "File to write");
  get_command->add_option("--wait", arguments->seconds, "Seconds to wait for one that is not written yet")
      ->check(CLI::Range(0.0, 900.0));
  add("list", "List objects by key", &list)->add_option("PREFIX", arguments->prefix, "Only keys that begin so");
  add("info", "Size, state, digest and file of an object", &info)
      ->add_option("KEY", arguments->key, "Object")
      ->required();
  add("delete", "Delete objects", &remove)->add_option("KEY", arguments->keys, "Objects")->required();
}

}  // namespace fairlead::cli
