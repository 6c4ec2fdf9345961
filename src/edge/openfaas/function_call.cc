#include "edge/openfaas/function_call.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <string>
#include <utility>

#include "base/clock.h"
#include "edge/deadline_header.h"
#include "edge/openfaas/function_name.h"
#include "edge/openfaas/openfaas_error.h"
#include "edge/session_cookie.h"
#include "edge/stream_prelude.h"
#include "edge/streamed_answer.h"
#include "edge/trace_header.h"

namespace fairlead::openfaas {
namespace {

constexpr const char* kCallId = "X-Call-Id";
constexpr const char* kStartTime = "X-Start-Time";
constexpr const char* kCallbackUrl = "X-Callback-Url";
// A page that a function answers with has the node's address, and is nobody whom the node knows: without this its scripts could do what
// the console may, and on an open node everything.
constexpr const char* kOriginOfItsOwn = "sandbox allow-downloads allow-forms allow-modals allow-popups allow-scripts";
constexpr std::size_t kMostCallIdBytes = 128;
constexpr std::size_t kMostFailureBytes = 1000;
constexpr const char* kMethods[] = {"GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"};  // GET takes HEAD

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return result;
}

bool is_one_of(const std::string& name, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Of the connection, or of the node: not the function's to see. Host is that of the node.
bool stays_here(const std::string& name, const std::string& connection) {
  if (is_one_of(name, {"connection", "keep-alive", "proxy-connection", "proxy-authorization", "te", "trailer",
                       "transfer-encoding", "upgrade", "expect", "content-length", "host", "x-forwarded-for",
                       "x-forwarded-host", "x-start-time"}) ||
      name.starts_with("x-fairlead-")) {
    return true;
  }
  // What Connection names is of the connection, too.
  for (std::size_t at = connection.find(name); at != std::string::npos; at = connection.find(name, at + 1)) {
    const auto is_edge = [&](std::size_t i) {
      return i >= connection.size() || connection[i] == ',' || connection[i] == ' ';
    };
    if ((at == 0 || is_edge(at - 1)) && is_edge(at + name.size())) return true;
  }
  return false;
}

std::string_view header_of(const HttpPart& http, std::string_view wanted) {
  for (const auto& [name, value] : http.headers) {
    if (lower(name) == wanted) return value;
  }
  return {};
}

// "/function/NAME/a%2Fb?c" -> "/a%2Fb?c": as it was sent, since what a function reads out of it is its own.
std::string path_behind_name(std::string_view target) {
  for (int i = 0; i < 2; ++i) {
    target.remove_prefix(std::min<std::size_t>(1, target.size()));
    target.remove_prefix(std::min(target.find_first_of("/?"), target.size()));
  }
  return target.starts_with('/') ? std::string(target) : "/" + std::string(target);
}

std::int64_t now_ns() {
  return wall_clock_ms() * 1'000'000;
}

// What the caller called it; a name that is too long is none.
std::string call_id_of(net::HttpRequest& request) {
  const std::string_view id = request.header(kCallId);
  return id.size() <= kMostCallIdBytes ? std::string(id) : std::string();
}

// But for the console's session, which browsers send to every path of the node.
std::string cookies_for_function(std::string_view cookies) {
  std::string kept;
  while (!cookies.empty()) {
    const std::size_t end = std::min(cookies.find(';'), cookies.size());
    std::string_view one = cookies.substr(0, end);
    cookies.remove_prefix(std::min(end + 1, cookies.size()));
    one.remove_prefix(std::min(one.find_first_not_of(" \t"), one.size()));
    if (!one.empty() && !one.starts_with(kSessionCookie)) kept.append(kept.empty() ? "" : "; ").append(one);
  }
  return kept;
}

HttpPart http_part_of(net::HttpRequest& request, bool may_authorize) {
  HttpPart http{.method = std::string(request.method()), .path = path_behind_name(request.target()), .headers = {}};
  const std::string connection = lower(request.header("Connection"));
  for (net::Header& header : request.all_headers()) {
    const std::string name = lower(header.name);
    if (stays_here(name, connection) || (name == "authorization" && !may_authorize)) continue;
    if (name == "x-call-id" && call_id_of(request).empty()) continue;
    if (name == "cookie") header.value = cookies_for_function(header.value);
    if (name == "cookie" && header.value.empty()) continue;
    http.headers.emplace_back(std::move(header.name), std::move(header.value));
  }
  http.headers.emplace_back(kStartTime, std::to_string(now_ns()));
  const std::string_view before = request.header("X-Forwarded-For");
  const std::string peer = request.peer_address();
  const std::string chain =
      before.empty() || peer.empty() ? std::string(before) + peer : fmt::format("{}, {}", before, peer);
  if (!chain.empty()) http.headers.emplace_back("X-Forwarded-For", chain);
  std::string_view host = request.header("X-Forwarded-Host");
  if (host.empty()) host = request.header("Host");
  if (!host.empty()) http.headers.emplace_back("X-Forwarded-Host", host);
  return http;
}

std::string failure_text(const Outcome& outcome) {
  const std::string_view said = outcome.failure.text.empty() ? std::string_view(outcome.payload) : outcome.failure.text;
  return fmt::format("{}{}{}\n", outcome.failure.type.empty() ? outcome_name(outcome.kind) : outcome.failure.type,
                     said.empty() ? "" : ": ", said.substr(0, kMostFailureBytes));
}

unsigned status_of(OutcomeKind kind) {
  switch (kind) {
    case OutcomeKind::kSuccess: return 200;
    case OutcomeKind::kTimeout:
    case OutcomeKind::kExpired: return 504;
    case OutcomeKind::kCrashed:
    case OutcomeKind::kStartFailed: return 502;
    case OutcomeKind::kRemoved: return 404;
    case OutcomeKind::kShutdown:
    case OutcomeKind::kCancelled: return 503;
    case OutcomeKind::kFunctionError: break;
  }
  return 500;
}

// An answer that is no HTTP answer.
net::HttpResponse plain_answer(Outcome& outcome) {
  net::HttpResponse response{.status = status_of(outcome.kind)};
  const bool is_said =
      !outcome.failed() || (outcome.kind == OutcomeKind::kFunctionError && outcome.failure.type.empty());
  const char* otherwise = outcome.failed() ? "text/plain; charset=utf-8" : "application/octet-stream";
  const bool has_type = is_said && !outcome.content_type.empty();
  response.headers.push_back({"Content-Type", has_type ? outcome.content_type : otherwise});
  response.body = is_said ? std::move(outcome.payload) : failure_text(outcome);
  return response;
}

class CallFraming final : public AnswerFraming {
 public:
  explicit CallFraming(std::string call_id) : call_id_(std::move(call_id)) {}

  net::HttpResponse head(const AnswerHead& head) override {
    net::HttpResponse response;
    if (!head.content_type.empty()) response.headers.push_back({"Content-Type", std::string(head.content_type)});
    add_call_headers(head.request_id, response);
    return response;
  }
  bool reads_preludes() const override { return true; }
  std::string part(std::string_view bytes) override { return std::string(bytes); }
  std::optional<net::HttpResponse> whole(Outcome& outcome) override {
    net::HttpResponse response = plain_answer(outcome);
    add_call_headers(outcome.request_id, response);
    return response;
  }
  std::optional<std::string> last(const Outcome& outcome) override {
    return outcome.failed() ? std::nullopt : std::optional<std::string>("");
  }
  void refused(net::HttpExchange exchange, const Error& error) override {
    net::HttpResponse response = refusal(error);
    add_call_headers("", response);
    exchange.respond(std::move(response));
  }

 private:
  void add_call_headers(std::string_view request_id, net::HttpResponse& response) const {
    const std::string id = call_id_.empty() ? std::string(request_id) : call_id_;
    if (!id.empty()) response.headers.push_back({kCallId, id});
    response.headers.push_back({kStartTime, std::to_string(start_ns_)});
    response.headers.push_back({"X-Duration-Seconds", fmt::format("{:.6f}", to_seconds(monotonic_now() - arrived_))});
    response.headers.push_back({"X-Served-By", "fairlead"});
    response.headers.push_back({"Content-Security-Policy", kOriginOfItsOwn});
  }

  const std::string call_id_;  // "": the node's
  const std::int64_t start_ns_ = now_ns();
  const Instant arrived_ = monotonic_now();
};

Result<InvokeRequest> read_call(NodeService& node, RouteCall& call, std::size_t most_bytes, bool is_open) {
  net::HttpRequest& http = call.exchange.request();
  const auto record = find_function(node, call.principal, split_name(call.parameter("name")));
  if (!record) return fail(record.error());
  if (http.body().size() > most_bytes) {
    return fail(Errc::kTooLarge, "the body has {} bytes; it may have at most {}", http.body().size(), most_bytes);
  }
  const auto deadline = deadline_of(http);
  if (!deadline) return fail(deadline.error());
  InvokeRequest request;
  request.invocation.function = record->name;
  request.invocation.deadline_ms = *deadline;
  request.invocation.trace_id = trace_id_of(http);
  request.invocation.http = http_part_of(http, is_open);
  request.invocation.payload = http.take_body();
  return request;
}

void call_and_wait(NodeService& node, RouteCall call, bool is_open) {
  auto framing = std::make_unique<CallFraming>(call_id_of(call.exchange.request()));
  auto request = read_call(node, call, kMostBodyBytes, is_open);
  if (!request) return framing->refused(std::move(call.exchange), request.error());
  StreamedAnswer::invoke(node, std::move(call.exchange), std::move(framing), *std::move(request));
}

void call_later(NodeService& node, RouteCall call, const CallOptions& options) {
  net::HttpRequest& http = call.exchange.request();
  if (const std::string_view url = http.header(kCallbackUrl); !url.empty()) {
    auto parsed = parse_callback_url(url, options.callbacks);
    if (!parsed) return refuse(std::move(call.exchange), Error{Errc::kInvalidArgument, parsed.error().message});
  }
  std::string call_id = call_id_of(http);
  auto request = read_call(node, call, kMaxAsyncPayloadBytes, options.is_open);
  if (!request) return refuse(std::move(call.exchange), request.error());
  const auto answer = std::make_shared<net::HttpExchange>(std::move(call.exchange));
  node.invoke_event(*std::move(request), [answer, call_id = std::move(call_id)](Result<std::string> accepted) {
    if (!accepted) return refuse(std::move(*answer), accepted.error());
    answer->respond(
        {.status = 202,
         .headers = {{kCallId, call_id.empty() ? *accepted : call_id}, {kStartTime, std::to_string(now_ns())}}});
  });
}

// How long ago the call came; 0 where that cannot be told.
double seconds_since(std::string_view start_ns) {
  std::int64_t start = 0;
  const auto [end, error] = std::from_chars(start_ns.data(), start_ns.data() + start_ns.size(), start);
  return error == std::errc() ? std::max(0.0, static_cast<double>(now_ns() - start) / 1e9) : 0;
}

// The function's own answer, where it is one of HTTP, else what is said of it.
net::HttpResponse answer_of(const Outcome& outcome) {
  if (!outcome.failed() && outcome.content_type == kPreludeType) {
    PreludeReader reader;
    auto prelude = reader.feed(outcome.payload);
    if (prelude && *prelude) {
      return {.status = (*prelude)->status, .headers = std::move((*prelude)->headers), .body = reader.take_rest()};
    }
  }
  Outcome copy = outcome;
  return plain_answer(copy);
}

}  // namespace

std::optional<Callback> callback_of(const Invocation& invocation, const Outcome& outcome, const RegistryRules& rules) {
  if (!invocation.http) return std::nullopt;
  const std::string_view url = header_of(*invocation.http, "x-callback-url");
  auto parsed = url.empty() ? Result<CallbackUrl>(fail(Errc::kNotFound, "none")) : parse_callback_url(url, rules);
  if (!parsed) return std::nullopt;
  net::HttpResponse answer = answer_of(outcome);
  std::erase_if(answer.headers, [](const net::Header& header) {
    return is_one_of(lower(header.name), {"host", "expect"});
  });
  const std::string_view call_id = header_of(*invocation.http, "x-call-id"),
                         start = header_of(*invocation.http, "x-start-time");
  Callback callback{.url = *std::move(parsed), .request = {.method = "POST", .headers = std::move(answer.headers)}};
  auto& headers = callback.request.headers;
  headers.push_back({kCallId, std::string(call_id.empty() ? std::string_view(invocation.request_id) : call_id)});
  headers.push_back({"X-Function-Name", invocation.function});
  headers.push_back({"X-Function-Status", std::to_string(answer.status)});
  headers.push_back({"X-Duration-Seconds", fmt::format("{:.6f}", seconds_since(start))});
  headers.push_back({"User-Agent", "fairlead"});
  callback.request.target = callback.url.target;
  callback.request.body = std::move(answer.body);
  return callback;
}

void add_call_routes(Routes& routes, NodeService& node, std::shared_ptr<Callbacks> callbacks, CallOptions options) {
  const auto shared = std::make_shared<const CallOptions>(std::move(options));
  const Permission permission = shared->is_open ? Permission::kAnyone : Permission::kInvoke;
  for (const char* const method : kMethods) {
    for (const char* const pattern : {"/function/{name}", "/function/{name}/{path*}"}) {
      routes.add(
          method, pattern, [&node, shared](RouteCall call) { call_and_wait(node, std::move(call), shared->is_open); },
          permission);
    }
  }
  for (const char* const pattern : {"/async-function/{name}", "/async-function/{name}/{path*}"}) {
    routes.add(
        "POST", pattern, [&node, shared](RouteCall call) { call_later(node, std::move(call), *shared); }, permission);
  }
  node.event_service().when_over([&node, callbacks, shared](const Invocation& invocation, const Outcome& outcome) {
    auto callback = callback_of(invocation, outcome, shared->callbacks);
    if (!callback) return;
    if (const auto function = node.get_function(invocation.function)) {
      callback->tenant = tenant_of(function->config.tags);
    }
    callbacks->post(*std::move(callback));
  });
}

}  // namespace fairlead::openfaas
