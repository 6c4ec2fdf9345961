#include "edge/lambda/lambda_functions.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "edge/error_document.h"
#include "edge/function_in_path.h"
#include "edge/lambda/lambda_json.h"
#include "edge/lambda/lambda_provisioned.h"
#include "edge/lambda/page_size.h"
#include "model/tenant.h"

namespace fairlead {

using nlohmann::json;

namespace {

// What is larger is read on another thread: a package may have 64 MiB of base64 in JSON.
constexpr std::size_t kReadAtOnceBytes = 256 << 10;

// Gives the body to `read` and what that makes of it to `then`, with the exchange. `read` may run on another thread.
template <typename Read, typename Then>
void read_body(NodeService& node, net::HttpExchange exchange, Read read, Then then) {
  if (exchange.request().body().size() <= kReadAtOnceBytes) {
    auto value = read(exchange.request().body());
    return then(std::move(exchange), std::move(value));
  }
  // Shared by the job and what follows it: std::function wants copies.
  const auto body = std::make_shared<std::string>(exchange.request().take_body());
  const auto answer = std::make_shared<net::HttpExchange>(std::move(exchange));
  const Bytes held(std::ssize(*body));
  const Status accepted = node.run_elsewhere(std::string(kDefaultTenant), held, [answer, body, read, then] {
    const std::string text = std::move(*body);  // so that it is freed on this thread, too
    auto value = std::make_shared<decltype(read(text))>(read(text));
    return [answer, value, then] { then(std::move(*answer), std::move(*value)); };
  });
  if (!accepted) respond_error(std::move(*answer), accepted.error());
}

// An answer to be given once the node is done: the record as `to_json` renders it, or the error.
NodeService::Callback<FunctionRecord> answer_with(net::HttpExchange exchange, unsigned status,
                                                  json (*to_json)(const FunctionRecord&)) {
  auto answer = std::make_shared<net::HttpExchange>(std::move(exchange));
  return [answer, status, to_json](Result<FunctionRecord> record) {
    if (!record) return respond_error(std::move(*answer), record.error());
    if (status == 204) return answer->respond({.status = 204});
    respond_json(std::move(*answer), status, to_json(*record));
  };
}

// What was created or changed is published, and the answer is the version.
NodeService::Callback<FunctionRecord> and_publish(NodeService& node, NodeService::Callback<FunctionRecord> answer) {
  return [&node, answer = std::move(answer)](Result<FunctionRecord> record) {
    if (!record) return answer(std::move(record));
    node.versions().publish({.function = record->name, .description = {}, .code_sha256 = {}}, answer);
  };
}

json concurrency_json(const FunctionRecord& record) {
  if (!record.reserved_concurrency) return json::object();
  return {{"ReservedConcurrentExecutions", *record.reserved_concurrency}};
}

bool is_seen(const RouteCall& call, const FunctionRecord& record) {
  return call.principal.sees(tenant_of(record.config.tags));
}

// A tenant's key makes that tenant's functions.
Status give_to_tenant(const Principal& who, FunctionConfig& config) {
  if (!who.tenant) return {};
  const auto named = config.tags.try_emplace(kTenantTag, *who.tenant).first;
  if (named->second == *who.tenant) return {};
  return fail(Errc::kForbidden, "Tags: {} is '{}'; {} is a key of tenant '{}'", kTenantTag, named->second, who.name,
              *who.tenant);
}

Status check_revision(const std::optional<std::string>& revision, const FunctionRecord& record) {
  if (!revision || *revision == record.revision_id) return {};
  return fail(Errc::kConflict, "RevisionId is '{}', the function's is '{}'; read it again and repeat the change",
              *revision, record.revision_id);
}

Status check_revision(const json& body, const FunctionRecord& record) {
  Status status;
  const auto revision = JsonFields(body, status).string("RevisionId");
  if (!status) return status;
  return check_revision(revision ? std::optional<std::string>(*revision) : std::nullopt, record);
}

// ---- functions

// Before anything is done: a function that is made and not published would be half of what was asked for.
Status check_publishable(const CodeSource& code, bool is_published) {
  if (!code.in_place || !is_published) return {};
  return fail(Errc::kInvalidArgument,
              "Publish and InPlace are set: what runs in place may change, and a version never does; leave one of them "
              "out");
}

struct NewFunction {
  std::string name;
  FunctionConfig config;
  CodeSource code;
  bool is_published = false;  // as its first version, too
};

Result<NewFunction> read_new_function(std::string_view text, bool may_name_paths) {
  const auto parsed = parse_object(text);
  if (!parsed) return fail(parsed.error());
  const json& body = *parsed;
  NewFunction function;
  Status status;
  JsonFields fields(body, status);
  const auto name = fields.string("FunctionName");
  if (status && !name) status = fail(Errc::kInvalidArgument, "FunctionName is missing");
  if (!status) return fail(status.error());
  auto bare_name = function_name_from(std::string(*name));
  if (!bare_name) return fail(bare_name.error());
  function.name = std::move(*bare_name);
  if (auto tags = fields.strings("Tags")) function.config.tags = std::move(*tags);
  if (!status) return fail(status.error());
  const auto package_type = read_package_type(body);
  if (!package_type) return fail(package_type.error());
  function.config.package_type = *package_type;
  status = apply_configuration(body, function.config);
  if (!status) return fail(status.error());
  const auto code_object = body.find("Code");
  if (code_object == body.end() || !code_object->is_object()) {
    return fail(Errc::kInvalidArgument,
                "Code is missing: send the package as Code.ZipFile, a zip file in base64, or an image's reference as "
                "Code.ImageUri");
  }
  auto code = read_code(*code_object, "Code.", *package_type, may_name_paths);
  if (!code) return fail(code.error());
  function.code = std::move(*code);
  function.is_published = fields.is_set("Publish");
  if (Status whole = check_publishable(function.code, function.is_published); !whole) return fail(whole.error());
  return function;
}

// With whose rights folders of the node's machine are read for this request; empty: it may name none.
std::optional<std::uint32_t> reader_of_paths(RouteCall& call, const LambdaOptions& options) {
  net::HttpRequest& request = call.exchange.request();
  if (!options.allow_code_folder || !request.peer_is_local() || !call.principal.may(Role::kOperator)) return {};
  return request.caller_uid();
}

void create_function(NodeService& node, const LambdaOptions& options, RouteCall call) {
  const auto reader = reader_of_paths(call, options);
  const auto read = [reader](std::string_view text) {
    auto function = read_new_function(text, reader.has_value());
    if (function) function->code.reader = reader;
    return function;
  };
  const auto then = [&node, who = call.principal](net::HttpExchange exchange, Result<NewFunction> function) {
    if (!function) return respond_error(std::move(exchange), function.error());
    if (Status given = give_to_tenant(who, function->config); !given) {
      return respond_error(std::move(exchange), given.error());
    }
    auto answer = answer_with(std::move(exchange), 201, configuration_json);
    if (function->is_published) answer = and_publish(node, std::move(answer));
    node.create_function(std::move(function->name), std::move(function->config), std::move(function->code),
                         std::move(answer));
  };
  read_body(node, std::move(call.exchange), read, then);
}

void get_function(NodeService& node, RouteCall call, json (*to_json)(const FunctionRecord&)) {
  const auto record = find_function(node, call);
  if (!record) return respond_error(std::move(call.exchange), record.error());
  respond_json(std::move(call.exchange), 200, to_json(*record));
}

// Under the ARN that it was asked for by.
void get_version(NodeService& node, RouteCall call, json (*to_json)(const FunctionRecord&)) {
  const auto record = find_version(node, call);
  if (!record) return respond_error(std::move(call.exchange), record.error());
  json body = to_json(*record);
  json& configuration = body.contains("Configuration") ? body["Configuration"] : body;
  const std::string qualifier = qualified_from(call)->qualifier;
  if (!qualifier.empty()) configuration["FunctionArn"] = function_arn(record->name) + ":" + qualifier;
  respond_json(std::move(call.exchange), 200, body);
}

// Marker is the name of the last function of the page before: pages stay right when functions come and go.
void list_functions(NodeService& node, RouteCall call) {
  const auto size = page_size(call.target.query_value("MaxItems"));
  if (!size) return respond_error(std::move(call.exchange), size.error());
  std::vector<FunctionRecord> records = node.list_functions();
  std::erase_if(records, [&](const FunctionRecord& record) { return !is_seen(call, record); });
  const std::string_view marker = call.target.query_value("Marker");
  auto it = std::upper_bound(records.begin(), records.end(), marker,
                             [](std::string_view name, const FunctionRecord& record) { return name < record.name; });
  json functions = json::array();
  for (int i = 0; i < *size && it != records.end(); ++i, ++it) functions.push_back(configuration_json(*it));
  json result{{"Functions", std::move(functions)}};
  if (it != records.end()) result["NextMarker"] = std::prev(it)->name;
  respond_json(std::move(call.exchange), 200, result);
}

struct NewCode {
  CodeSource code;
  std::optional<std::string> revision;  // that it is for
  bool is_dry_run = false;
  bool is_published = false;  // as the next version, too
};

// Of the function as it is now; what may change while this reads is its revision.
Result<NewCode> read_new_code(std::string_view text, const FunctionRecord& record, bool may_name_paths) {
  const auto body = parse_object(text);
  if (!body) return fail(body.error());
  if (Status status = check_revision(*body, record); !status) return fail(status.error());
  if (Status status = check_supported(*body); !status) return fail(status.error());
  auto code = read_code(*body, "", record.config.package_type, may_name_paths);
  if (!code) return fail(code.error());
  NewCode result{.code = *std::move(code)};
  Status ignored;
  JsonFields fields(*body, ignored);
  if (const auto revision = fields.string("RevisionId")) result.revision = *revision;
  result.is_dry_run = fields.is_set("DryRun");
  result.is_published = fields.is_set("Publish");
  if (Status whole = check_publishable(result.code, result.is_published); !whole) return fail(whole.error());
  return result;
}

void update_read(NodeService& node, const std::string& name, net::HttpExchange exchange, Result<NewCode> read) {
  if (!read) return respond_error(std::move(exchange), read.error());
  const auto record = node.get_function(name);
  if (!record) return respond_error(std::move(exchange), record.error());
  if (Status status = check_revision(read->revision, *record); !status) {
    return respond_error(std::move(exchange), status.error());
  }
  if (read->is_dry_run) return respond_json(std::move(exchange), 200, configuration_json(*record));
  auto answer = answer_with(std::move(exchange), 200, configuration_json);
  if (read->is_published) answer = and_publish(node, std::move(answer));
  node.update_code(name, std::move(read->code), std::move(answer));
}

void update_code(NodeService& node, const LambdaOptions& options, RouteCall call) {
  const auto record = find_function(node, call);
  if (!record) return respond_error(std::move(call.exchange), record.error());
  const auto reader = reader_of_paths(call, options);
  const auto read = [record = *record, reader](std::string_view text) {
    auto code = read_new_code(text, record, reader.has_value());
    if (code) code->code.reader = reader;
    return code;
  };
  const auto then = [&node, name = record->name](net::HttpExchange exchange, Result<NewCode> code) {
    update_read(node, name, std::move(exchange), std::move(code));
  };
  read_body(node, std::move(call.exchange), read, then);
}

void update_configuration(NodeService& node, RouteCall call) {
  const auto record = find_function(node, call);
  if (!record) return respond_error(std::move(call.exchange), record.error());
  const auto body = parse_object(call.exchange.request().body());
  if (!body) return respond_error(std::move(call.exchange), body.error());
  FunctionConfig config = record->config;
  Status status = check_revision(*body, *record);
  if (status) status = apply_configuration(*body, config);
  if (!status) return respond_error(std::move(call.exchange), status.error());
  node.update_config(record->name, std::move(config), answer_with(std::move(call.exchange), 200, configuration_json));
}

// With the number of a version as the qualifier: that one.
void delete_function(NodeService& node, RouteCall call) {
  const auto named = qualified_from(call);
  if (!named) return respond_error(std::move(call.exchange), named.error());
  if (Status seen = check_seen(node, call.principal, named->name); !seen) {
    return respond_error(std::move(call.exchange), seen.error());
  }
  const std::uint64_t version = version_number(named->qualifier);
  if (!named->qualifier.empty() && version == 0) {
    return respond_error(
        std::move(call.exchange),
        Error{Errc::kInvalidArgument,
              fmt::format("Qualifier is '{}': without one the function is deleted, with the number of a "
                          "version that version; an alias is deleted by DeleteAlias",
                          named->qualifier)});
  }
  auto answer = std::make_shared<net::HttpExchange>(std::move(call.exchange));
  const auto deleted = [answer](Status status) {
    if (!status) return respond_error(std::move(*answer), status.error());
    answer->respond({.status = 204});
  };
  if (version == 0) return node.delete_function(named->name, deleted);
  node.versions().remove_version(named->name, version,
                                 [&node, name = named->name, version, deleted](const Status& removed) {
                                   if (!removed) return deleted(removed);
                                   end_provisioned(node, name, version_name(version), deleted);
                                 });
}

// ---- tags

json tags_json(const FunctionRecord& record) {
  return {{"Tags", record.config.tags}};
}

void tag_function(NodeService& node, RouteCall call) {
  const auto record = find_function(node, call);
  if (!record) return respond_error(std::move(call.exchange), record.error());
  const auto body = parse_object(call.exchange.request().body());
  if (!body) return respond_error(std::move(call.exchange), body.error());
  Status status;
  const auto tags = JsonFields(*body, status).strings("Tags");
  if (status && !tags) status = fail(Errc::kInvalidArgument, "Tags is missing");
  if (!status) return respond_error(std::move(call.exchange), status.error());
  FunctionConfig config = record->config;
  for (const auto& [key, value] : *tags) config.tags[key] = value;
  node.update_config(record->name, std::move(config), answer_with(std::move(call.exchange), 204, tags_json));
}

void untag_function(NodeService& node, RouteCall call) {
  const auto record = find_function(node, call);
  if (!record) return respond_error(std::move(call.exchange), record.error());
  FunctionConfig config = record->config;
  for (const auto& [name, value] : call.target.query) {
    if (name == "tagKeys") config.tags.erase(value);
  }
  node.update_config(record->name, std::move(config), answer_with(std::move(call.exchange), 204, tags_json));
}

// ---- concurrency

void put_concurrency(NodeService& node, RouteCall call) {
  const auto record = find_function(node, call);
  if (!record) return respond_error(std::move(call.exchange), record.error());
  const auto body = parse_object(call.exchange.request().body());
  if (!body) return respond_error(std::move(call.exchange), body.error());
  Status status;
  const auto limit = JsonFields(*body, status).integer("ReservedConcurrentExecutions");
  if (status && (!limit || *limit < 0)) {
    status = fail(Errc::kInvalidArgument, "ReservedConcurrentExecutions must be a number, 0 or more");
  }
  if (!status) return respond_error(std::move(call.exchange), status.error());
  node.set_reserved_concurrency(record->name, *limit, answer_with(std::move(call.exchange), 200, concurrency_json));
}

void delete_concurrency(NodeService& node, RouteCall call) {
  const auto record = find_function(node, call);
  if (!record) return respond_error(std::move(call.exchange), record.error());
  node.set_reserved_concurrency(record->name, std::nullopt,
                                answer_with(std::move(call.exchange), 204, concurrency_json));
}

// ---- account

void account_settings(NodeService& node, RouteCall call) {
  std::vector<FunctionRecord> records = node.list_functions();
  std::erase_if(records, [&](const FunctionRecord& record) { return !is_seen(call, record); });
  std::int64_t bytes = 0;
  for (const FunctionRecord& record : records) bytes += record.code_bytes;
  const std::size_t queue_limit = CoreOptions().queue_limit;
  respond_json(std::move(call.exchange), 200,
               {{"AccountLimit",
                 {{"CodeSizeUnzipped", kMaxUnzippedCodeBytes},
                  {"CodeSizeZipped", kMaxZippedCodeBytes},
                  {"ConcurrentExecutions", queue_limit},
                  {"UnreservedConcurrentExecutions", queue_limit}}},
                {"AccountUsage", {{"TotalCodeSize", bytes}, {"FunctionCount", records.size()}}}});
}

}  // namespace

void add_function_routes(Routes& routes, NodeService& node, LambdaOptions options) {
  using Handle = void (*)(NodeService&, RouteCall);
  const auto add = [&](Permission permission, std::string_view method, std::string_view pattern, Handle handle) {
    routes.add(
        method, pattern, [&node, handle](RouteCall call) { handle(node, std::move(call)); }, permission);
  };
  const auto add_version_getter = [&](std::string_view pattern, json (*to_json)(const FunctionRecord&)) {
    routes.add(
        "GET", pattern, [&node, to_json](RouteCall call) { get_version(node, std::move(call), to_json); },
        Permission::kRead);
  };
  const auto add_getter = [&](std::string_view pattern, json (*to_json)(const FunctionRecord&)) {
    routes.add(
        "GET", pattern, [&node, to_json](RouteCall call) { get_function(node, std::move(call), to_json); },
        Permission::kRead);
  };
  const auto add_with_code = [&](std::string_view method, std::string_view pattern,
                                 void (*handle)(NodeService&, const LambdaOptions&, RouteCall)) {
    routes.add(
        method, pattern, [&node, options, handle](RouteCall call) { handle(node, options, std::move(call)); },
        Permission::kDeploy);
  };
  add_with_code("POST", "/2015-03-31/functions", create_function);
  add(Permission::kRead, "GET", "/2015-03-31/functions", list_functions);
  add_version_getter("/2015-03-31/functions/{function}", function_json);
  add(Permission::kDeploy, "DELETE", "/2015-03-31/functions/{function}", delete_function);
  add_with_code("PUT", "/2015-03-31/functions/{function}/code", update_code);
  add_version_getter("/2015-03-31/functions/{function}/configuration", configuration_json);
  add(Permission::kDeploy, "PUT", "/2015-03-31/functions/{function}/configuration", update_configuration);
  add_getter("/2017-03-31/tags/{function}", tags_json);
  add(Permission::kDeploy, "POST", "/2017-03-31/tags/{function}", tag_function);
  add(Permission::kDeploy, "DELETE", "/2017-03-31/tags/{function}", untag_function);
  add_getter("/2019-09-30/functions/{function}/concurrency", concurrency_json);
  add(Permission::kDeploy, "PUT", "/2017-10-31/functions/{function}/concurrency", put_concurrency);
  add(Permission::kDeploy, "DELETE", "/2017-10-31/functions/{function}/concurrency", delete_concurrency);
  add(Permission::kRead, "GET", "/2016-08-19/account-settings", account_settings);
}

}  // namespace fairlead
