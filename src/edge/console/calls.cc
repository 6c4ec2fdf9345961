#include "edge/console/calls.h"

#include <memory>
#include <utility>

#include "edge/console/kept_answers.h"
#include "edge/error_document.h"
#include "edge/json_body.h"
#include "edge/query.h"
#include "model/version.h"

namespace fairlead {

using nlohmann::json;

namespace {

constexpr std::size_t kDefaultCalls = 200, kMostCalls = 1000;
constexpr std::size_t kMostFunctionBytes = 512;  // longer than any name

json call_json(const RequestTrace& call) {
  return {{"id", call.request_id},
          {"function", call.function},
          {"version", version_name(call.version)},
          {"outcome", outcome_name(call.outcome)},
          {"failure", call.failure},
          {"at_ms", call.accepted_ms},
          {"start", call.gpu ? json(start_kind_name(call.start)) : json()},
          {"gpu", call.gpu.value()},
          {"queue_s", to_seconds(call.queue)},
          {"start_s", to_seconds(call.starting)},
          {"run_s", to_seconds(call.run)},
          {"memory_s", to_seconds(call.memory)},
          {"gpu_s", to_seconds(call.gpu_time)}};
}

std::string calls_text(const RecentCalls& calls, const RecentQuery& query) {
  json list = json::array();
  for (const RequestTrace& one : calls.recent(query)) list.push_back(call_json(one));
  return to_text({{"calls", std::move(list)}});
}

void list_calls(const RecentCalls& calls, KeptAnswers& kept, RouteCall call) {
  const auto limit = query_number<std::size_t>(call.target, "limit", kDefaultCalls, 1, kMostCalls);
  if (!limit) return respond_error(std::move(call.exchange), limit.error());
  const RecentQuery query{.tenant = call.principal.tenant.value_or(""),
                          .function = std::string(call.target.query_value("function").substr(0, kMostFunctionBytes)),
                          .most = *limit};
  const std::string question = fmt::format("{}\n{}\n{}", query.tenant, query.most, query.function);
  const std::string* text = kept.get(question, [&] { return calls_text(calls, query); });
  if (text == nullptr) {
    return respond_error(
        std::move(call.exchange),
        Error{Errc::kResourceExhausted, "lists of calls are asked for too often; ask again in a second"});
  }
  call.exchange.respond({.headers = {{"Content-Type", "application/json"}}, .body = *text});
}

}  // namespace

void add_recent_call_routes(Routes& routes, const RecentCalls& calls) {
  const auto kept = std::make_shared<KeptAnswers>();  // shared by the handler and its copies
  routes.add(
      "GET", "/fairlead/v1/recent", [&calls, kept](RouteCall call) { list_calls(calls, *kept, std::move(call)); },
      Permission::kRead);
}

}  // namespace fairlead
