#include "edge/lambda/lambda_versions.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "edge/error_document.h"
#include "edge/function_in_path.h"
#include "edge/json_body.h"
#include "edge/lambda/lambda_json.h"
#include "edge/lambda/lambda_provisioned.h"
#include "edge/lambda/page_size.h"

namespace fairlead {

using nlohmann::json;

namespace {

json alias_json(const std::string& function, const FunctionAlias& alias) {
  json body{{"AliasArn", function_arn(function) + ":" + alias.name},
            {"Name", alias.name},
            {"FunctionVersion", version_name(alias.version)},
            {"Description", alias.description},
            {"RevisionId", alias.revision_id}};
  json weights = json::object();
  for (const auto& [version, weight] : alias.weights) weights[version_name(version)] = weight;
  if (!weights.empty()) body["RoutingConfig"] = {{"AdditionalVersionWeights", std::move(weights)}};
  return body;
}

ErrorDocument other_revision(std::string_view asked, std::string_view is) {
  return {
      .status = 412,
      .type = "PreconditionFailedException",
      .message = fmt::format("RevisionId is '{}', but it is '{}' now; read it again and repeat the change", asked, is)};
}

// ---- versions

void publish(NodeService& node, RouteCall call) {
  const auto record = find_function(node, call);
  if (!record) return respond_error(std::move(call.exchange), record.error());
  const auto body = parse_object(call.exchange.request().body());
  if (!body) return respond_error(std::move(call.exchange), body.error());
  Status status;
  JsonFields fields(*body, status);
  PublishRequest request{.function = record->name, .description = {}, .code_sha256 = {}};
  if (const auto text = fields.string("Description"); text && !text->empty()) request.description = *text;
  if (const auto digest = fields.string("CodeSha256")) request.code_sha256 = *digest;
  const auto revision = fields.string("RevisionId");
  if (!status) return respond_error(std::move(call.exchange), status.error());
  if (revision && !revision->empty() && *revision != record->revision_id) {
    return respond_error(std::move(call.exchange), other_revision(*revision, record->revision_id));
  }
  auto answer = std::make_shared<net::HttpExchange>(std::move(call.exchange));
  node.versions().publish(std::move(request), [answer](Result<FunctionRecord> version) {
    if (!version) return respond_error(std::move(*answer), version.error());
    respond_json(std::move(*answer), 201, configuration_json(*version));
  });
}

// $LATEST first. Marker is the last version of the page before.
void list_versions(NodeService& node, RouteCall call) {
  const auto record = find_function(node, call);
  if (!record) return respond_error(std::move(call.exchange), record.error());
  const auto size = page_size(call.target.query_value("MaxItems"));
  if (!size) return respond_error(std::move(call.exchange), size.error());
  const auto published = node.versions().versions(record->name);
  if (!published) return respond_error(std::move(call.exchange), published.error());
  const std::string_view marker = call.target.query_value("Marker");
  json versions = json::array();
  if (marker.empty()) {
    versions.push_back(configuration_json(*record));
    versions.back()["FunctionArn"] = function_arn(record->name) + ":" + std::string(kLatestVersion);
  }
  const std::uint64_t after = version_number(marker);
  auto it = std::find_if(published->begin(), published->end(),
                         [&](const FunctionRecord& version) { return version.version > after; });
  std::uint64_t last = after;
  for (; versions.size() < static_cast<std::size_t>(*size) && it != published->end(); ++it) {
    versions.push_back(configuration_json(*it));
    last = it->version;
  }
  json result{{"Versions", std::move(versions)}};
  if (it != published->end()) result["NextMarker"] = version_name(last);
  respond_json(std::move(call.exchange), 200, result);
}

// ---- aliases

Result<std::uint64_t> read_version(std::string_view text) {
  if (text == kLatestVersion) return 0;
  if (const std::uint64_t number = version_number(text); number > 0) return number;
  return fail(Errc::kInvalidArgument, "FunctionVersion is '{}'; it must be {} or the number of a version",
              text.substr(0, 64), kLatestVersion);
}

Status read_weights(const json& said, FunctionAlias& alias) {
  alias.weights.clear();
  if (said.is_null()) return {};
  if (!said.is_object()) return fail(Errc::kInvalidArgument, "RoutingConfig.AdditionalVersionWeights is no object");
  for (const auto& [name, weight] : said.items()) {
    const std::uint64_t version = version_number(name);
    if (version == 0 || !weight.is_number()) {
      return fail(
          Errc::kInvalidArgument,
          "RoutingConfig.AdditionalVersionWeights has '{}': {}; it must have numbers of versions, and of each a "
          "weight from 0 to 1",
          name.substr(0, 64), to_text(weight).substr(0, 64));
    }
    alias.weights[version] = weight.get<double>();
  }
  return {};
}

// What the body says, else what `alias` has.
Status read_alias(const json& body, FunctionAlias& alias) {
  Status status;
  JsonFields fields(body, status);
  if (const auto description = fields.string("Description")) alias.description = *description;
  if (const auto text = fields.string("FunctionVersion")) {
    const auto version = read_version(*text);
    if (!version) return fail(version.error());
    alias.version = *version;
  }
  if (const auto routing = fields.object("RoutingConfig"); routing && status) {
    const json& config = body.at("RoutingConfig");
    const auto weights = config.find("AdditionalVersionWeights");
    if (Status read = read_weights(weights == config.end() ? json() : *weights, alias); !read) return read;
  }
  return status;
}

void put(NodeService& node, RouteCall call, const std::string& function, FunctionAlias alias, bool is_new) {
  auto answer = std::make_shared<net::HttpExchange>(std::move(call.exchange));
  node.versions().put_alias(function, std::move(alias), is_new, [answer, function, is_new](Result<FunctionAlias> put) {
    if (!put) return respond_error(std::move(*answer), put.error());
    respond_json(std::move(*answer), is_new ? 201 : 200, alias_json(function, *put));
  });
}

void create_alias(NodeService& node, RouteCall call) {
  const auto record = find_function(node, call);
  if (!record) return respond_error(std::move(call.exchange), record.error());
  const auto body = parse_object(call.exchange.request().body());
  if (!body) return respond_error(std::move(call.exchange), body.error());
  Status status;
  JsonFields fields(*body, status);
  const auto name = fields.string("Name");
  const auto version = fields.string("FunctionVersion");
  FunctionAlias alias{.name = std::string(name.value_or(""))};
  if (status && !version) status = fail(Errc::kInvalidArgument, "FunctionVersion is missing");
  if (status) status = read_alias(*body, alias);
  if (!status) return respond_error(std::move(call.exchange), status.error());
  put(node, std::move(call), record->name, std::move(alias), /*is_new=*/true);
}

void update_alias(NodeService& node, RouteCall call) {
  const auto record = find_function(node, call);
  if (!record) return respond_error(std::move(call.exchange), record.error());
  auto alias = node.versions().alias(record->name, call.parameter("alias"));
  if (!alias) return respond_error(std::move(call.exchange), alias.error());
  const auto body = parse_object(call.exchange.request().body());
  if (!body) return respond_error(std::move(call.exchange), body.error());
  Status status;
  const auto revision = JsonFields(*body, status).string("RevisionId");
  if (status && revision && !revision->empty() && *revision != alias->revision_id) {
    return respond_error(std::move(call.exchange), other_revision(*revision, alias->revision_id));
  }
  if (status) status = read_alias(*body, *alias);
  if (!status) return respond_error(std::move(call.exchange), status.error());
  put(node, std::move(call), record->name, *std::move(alias), /*is_new=*/false);
}

void get_alias(NodeService& node, RouteCall call) {
  const auto record = find_function(node, call);
  if (!record) return respond_error(std::move(call.exchange), record.error());
  const auto alias = node.versions().alias(record->name, call.parameter("alias"));
  if (!alias) return respond_error(std::move(call.exchange), alias.error());
  respond_json(std::move(call.exchange), 200, alias_json(record->name, *alias));
}

// Of one version with FunctionVersion. Marker is the name of the last one of the page before.
void list_aliases(NodeService& node, RouteCall call) {
  const auto record = find_function(node, call);
  if (!record) return respond_error(std::move(call.exchange), record.error());
  const auto size = page_size(call.target.query_value("MaxItems"));
  if (!size) return respond_error(std::move(call.exchange), size.error());
  auto all = node.versions().aliases(record->name);
  if (!all) return respond_error(std::move(call.exchange), all.error());
  if (const std::string_view text = call.target.query_value("FunctionVersion"); !text.empty()) {
    const auto version = read_version(text);
    if (!version) return respond_error(std::move(call.exchange), version.error());
    std::erase_if(*all, [&](const FunctionAlias& alias) { return alias.version != *version; });
  }
  const std::string_view marker = call.target.query_value("Marker");
  json aliases = json::array();
  auto it = std::find_if(all->begin(), all->end(), [&](const FunctionAlias& alias) { return alias.name > marker; });
  for (int i = 0; i < *size && it != all->end(); ++i, ++it) aliases.push_back(alias_json(record->name, *it));
  json result{{"Aliases", std::move(aliases)}};
  if (it != all->end()) result["NextMarker"] = std::prev(it)->name;
  respond_json(std::move(call.exchange), 200, result);
}

void delete_alias(NodeService& node, RouteCall call) {
  const auto record = find_function(node, call);
  if (!record) return respond_error(std::move(call.exchange), record.error());
  const std::string name = call.parameter("alias");
  auto answer = std::make_shared<net::HttpExchange>(std::move(call.exchange));
  const auto respond = [answer](const Status& done) {
    if (!done) return respond_error(std::move(*answer), done.error());
    answer->respond({.status = 204});
  };
  node.versions().remove_alias(record->name, name, [&node, function = record->name, name, respond](Status removed) {
    if (!removed) return respond(removed);
    end_provisioned(node, function, name, respond);
  });
}

}  // namespace

void add_version_routes(Routes& routes, NodeService& node) {
  const auto add = [&](Permission permission, std::string_view method, std::string_view pattern,
                       void (*handle)(NodeService&, RouteCall)) {
    routes.add(
        method, pattern, [&node, handle](RouteCall call) { handle(node, std::move(call)); }, permission);
  };
  constexpr std::string_view kVersions = "/2015-03-31/functions/{function}/versions";
  constexpr std::string_view kAliases = "/2015-03-31/functions/{function}/aliases";
  constexpr std::string_view kAlias = "/2015-03-31/functions/{function}/aliases/{alias}";
  add(Permission::kDeploy, "POST", kVersions, publish);
  add(Permission::kRead, "GET", kVersions, list_versions);
  add(Permission::kDeploy, "POST", kAliases, create_alias);
  add(Permission::kRead, "GET", kAliases, list_aliases);
  add(Permission::kRead, "GET", kAlias, get_alias);
  add(Permission::kDeploy, "PUT", kAlias, update_alias);
  add(Permission::kDeploy, "DELETE", kAlias, delete_alias);
}

}  // namespace fairlead
