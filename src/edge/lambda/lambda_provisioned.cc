#include "edge/lambda/lambda_provisioned.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "edge/error_document.h"
#include "edge/function_in_path.h"
#include "edge/json_body.h"
#include "edge/lambda/lambda_json.h"
#include "model/provisioned_tag.h"
#include "model/version.h"
#include "model/warmth_tags.h"

namespace fairlead {

using nlohmann::json;

namespace {

// A function, and the version or the alias of it that is named; "": $LATEST.
struct Named {
  FunctionRecord record;
  std::string qualifier;

  // What the requests here set and take away.
  int instances() const {
    if (qualifier.empty()) return instances_kept(record.config.tags);
    const Provisioned all = provisioned_in(record.config.tags).value_or(Provisioned());
    const auto found = all.find(qualifier);
    return found == all.end() ? 0 : found->second;
  }
  Result<Tags> with_instances(int wanted) const {
    return qualifier.empty() ? with_instances_kept(record.config.tags, wanted)
                             : with_provisioned(record.config.tags, qualifier, wanted);
  }
};

// kNotFound: there is no such function.
Result<Named> named_in(NodeService& node, const RouteCall& call) {
  auto named = qualified_from(call);
  if (!named) return fail(named.error());
  if (Status seen = check_seen(node, call.principal, named->name); !seen) return fail(seen.error());
  auto record = node.get_function(named->name);
  if (!record) return fail(record.error());
  if (named->qualifier == kLatestVersion) named->qualifier.clear();
  return Named{.record = *std::move(record), .qualifier = std::move(named->qualifier)};
}

// kNotFound: or no such version or alias.
Result<Named> find_named(NodeService& node, const RouteCall& call) {
  auto named = named_in(node, call);
  if (!named || named->qualifier.empty()) return named;
  if (const auto version = node.versions().find(named->record.name, named->qualifier); !version) {
    return fail(version.error());
  }
  return named;
}

std::string of_latest(const std::string& alias) {
  return fmt::format(
      "Qualifier is '{}', an alias that leads to $LATEST: let it lead to a published version, or keep "
      "instances of $LATEST (Qualifier=$LATEST)",
      alias);
}

struct Kept {
  std::size_t ready = 0;
  std::size_t of = 0;  // are kept, by all that lead there
  std::string lacking;
};

Kept kept_of(NodeService& node, const Named& named) {
  const auto version = node.versions().find(named.record.name, named.qualifier);
  if (!version) return {};
  if (version->version == 0 && !named.qualifier.empty())
    return {.ready = 0, .of = 0, .lacking = of_latest(named.qualifier)};
  const std::string flow = version->version == 0 ? version->name : version->name + ":" + version_name(version->version);
  const NodeStatus status = node.status();
  for (const FunctionStatus& known : status.functions) {
    if (known.name != flow) continue;
    const auto is_ready = [&](const InstanceView& instance) {
      return instance.flow == known.flow.flow && instance.seated && instance.state != InstanceState::kStarting;
    };
    const auto ready = std::count_if(status.instances.begin(), status.instances.end(), is_ready);
    Kept kept{
        .ready = static_cast<std::size_t>(ready), .of = known.settings.replicas.least, .lacking = known.share.lacking};
    if (kept.lacking.empty() && !known.start_failure.empty()) {  // the words of AWS, and then ours
      kept.lacking = "FUNCTION_ERROR_INIT_FAILURE: the last instance did not get ready: " + known.start_failure;
    }
    return kept;
  }
  return {};
}

json config_json(NodeService& node, const Named& named) {
  const Kept kept = kept_of(node, named);
  const auto wanted = static_cast<std::size_t>(named.instances());
  const std::size_t ready = std::min(kept.ready, wanted);
  // Nobody says which of them are whose: each is ready once all are.
  const bool is_ready = ready == wanted && kept.ready >= kept.of;
  json body{{"RequestedProvisionedConcurrentExecutions", wanted},
            {"AvailableProvisionedConcurrentExecutions", ready},
            {"AllocatedProvisionedConcurrentExecutions", ready},
            {"Status", is_ready               ? "READY"
                       : kept.lacking.empty() ? "IN_PROGRESS"
                                              : "FAILED"},
            {"LastModified", lambda_timestamp(named.record.last_modified_ms)}};
  if (!is_ready && !kept.lacking.empty()) body["StatusReason"] = kept.lacking;
  return body;
}

void respond_none(RouteCall call, const Named& named) {
  const std::string what = named.qualifier.empty() ? named.record.name : named.record.name + ":" + named.qualifier;
  respond_error(std::move(call.exchange),
                ErrorDocument{.status = 404,
                              .type = "ProvisionedConcurrencyConfigNotFoundException",
                              .message = "No Provisioned Concurrency Config found for function " + what});
}

Result<int> read_wanted(std::string_view text) {
  const auto body = parse_object(text);
  if (!body) return fail(body.error());
  Status status;
  const auto instances = JsonFields(*body, status).integer("ProvisionedConcurrentExecutions");
  if (status && instances && *instances >= 1 && *instances <= kMaxReplicas) return static_cast<int>(*instances);
  return fail(Errc::kInvalidArgument, "ProvisionedConcurrentExecutions must be a number between 1 and {}",
              kMaxReplicas);
}

void keep(NodeService& node, const Named& named, int instances, NodeService::Callback<FunctionRecord> done) {
  FunctionConfig config = named.record.config;
  auto tags = named.with_instances(instances);
  if (!tags) return done(fail(tags.error()));
  config.tags = *std::move(tags);
  node.update_config(named.record.name, std::move(config), std::move(done));
}

void put(NodeService& node, RouteCall call) {
  const auto named = find_named(node, call);
  if (!named) return respond_error(std::move(call.exchange), named.error());
  const auto wanted = read_wanted(call.exchange.request().body());
  if (!wanted) return respond_error(std::move(call.exchange), wanted.error());
  const auto version = node.versions().find(named->record.name, named->qualifier);
  if (!named->qualifier.empty() && version && version->version == 0) {
    return respond_error(std::move(call.exchange), Error{Errc::kInvalidArgument, of_latest(named->qualifier)});
  }
  auto answer = std::make_shared<net::HttpExchange>(std::move(call.exchange));
  keep(node, *named, *wanted, [&node, answer, qualifier = named->qualifier](Result<FunctionRecord> changed) {
    if (!changed) return respond_error(std::move(*answer), changed.error());
    respond_json(std::move(*answer), 202, config_json(node, {.record = *std::move(changed), .qualifier = qualifier}));
  });
}

void get(NodeService& node, RouteCall call) {
  const auto named = find_named(node, call);
  if (!named) return respond_error(std::move(call.exchange), named.error());
  if (named->instances() == 0) return respond_none(std::move(call), *named);
  respond_json(std::move(call.exchange), 200, config_json(node, *named));
}

// Also of what is not there any more: the node may have ended while the version was deleted, and left its entry in the tag.
void remove(NodeService& node, RouteCall call) {
  const auto named = named_in(node, call);
  if (!named) return respond_error(std::move(call.exchange), named.error());
  if (named->instances() == 0) return respond_none(std::move(call), *named);
  auto answer = std::make_shared<net::HttpExchange>(std::move(call.exchange));
  keep(node, *named, 0, [answer](Result<FunctionRecord> changed) {
    if (!changed) return respond_error(std::move(*answer), changed.error());
    answer->respond({.status = 204});
  });
}

// A tag holds so few that there is never a second page.
void list(NodeService& node, RouteCall call, const FunctionRecord& record) {
  std::vector<std::string> qualifiers;
  if (instances_kept(record.config.tags) > 0) qualifiers.emplace_back();
  for (const auto& [qualifier, count] : provisioned_in(record.config.tags).value_or(Provisioned())) {
    if (node.versions().find(record.name, qualifier)) qualifiers.push_back(qualifier);
  }
  json configs = json::array();
  for (const std::string& qualifier : qualifiers) {
    configs.push_back(config_json(node, {.record = record, .qualifier = qualifier}));
    configs.back()["FunctionArn"] =
        function_arn(record.name) + ":" + (qualifier.empty() ? std::string(kLatestVersion) : qualifier);
  }
  respond_json(std::move(call.exchange), 200, {{"ProvisionedConcurrencyConfigs", std::move(configs)}});
}

// Lambda has one path for both.
void get_or_list(NodeService& node, RouteCall call) {
  if (call.target.query_value("List") != "ALL") return get(node, std::move(call));
  const auto record = find_function(node, call);
  if (!record) return respond_error(std::move(call.exchange), record.error());
  list(node, std::move(call), *record);
}

}  // namespace

void end_provisioned(NodeService& node, const std::string& function, const std::string& qualifier,
                     std::function<void(Status)> done) {
  auto record = node.get_function(function);
  if (!record) return done({});
  const Named named{.record = *std::move(record), .qualifier = qualifier};
  if (named.instances() == 0) return done({});
  keep(node, named, 0, [done = std::move(done)](const Result<FunctionRecord>& changed) {
    done(changed ? Status() : Status(fail(changed.error())));
  });
}

void add_provisioned_routes(Routes& routes, NodeService& node) {
  const auto add = [&](Permission permission, std::string_view method, void (*handle)(NodeService&, RouteCall)) {
    routes.add(
        method, "/2019-09-30/functions/{function}/provisioned-concurrency",
        [&node, handle](RouteCall call) { handle(node, std::move(call)); }, permission);
  };
  add(Permission::kDeploy, "PUT", put);
  add(Permission::kRead, "GET", get_or_list);
  add(Permission::kDeploy, "DELETE", remove);
}

}  // namespace fairlead
