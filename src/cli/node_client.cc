#include "cli/node_client.h"

#include <sys/socket.h>

#include <algorithm>
#include <cstdlib>

#include "base/base64.h"
#include "base/unique_fd.h"
#include "cli/patience.h"
#include "cli/places.h"
#include "identity/key_file.h"
#include "net/http_listener.h"

namespace fairlead::cli {
namespace {

Errc errc_of(unsigned status) {
  switch (status) {
    case 400: return Errc::kInvalidArgument;
    case 401: return Errc::kUnauthenticated;
    case 403: return Errc::kForbidden;
    case 404: return Errc::kNotFound;
    case 409: return Errc::kConflict;
    case 413: return Errc::kTooLarge;
    case 429: return Errc::kResourceExhausted;
    case 502: return Errc::kInternal;
    case 503: return Errc::kUnavailable;
    case 504: return Errc::kDeadlineExceeded;
    default: return status < 500 ? Errc::kInvalidArgument : Errc::kInternal;
  }
}

Json parse(const std::string& text) {
  return Json::parse(text, nullptr, /*allow_exceptions=*/false);
}

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string state_folder() {
  std::string state = variable("FAIRLEAD_SERVE_STATE");
  return state.empty() ? default_state_dir() : state;
}

// At a Unix socket the kernel says who asks: its node's user and root need no key, and one that has ended would keep them out.
bool takes_operator_key(std::string_view endpoint) {
  return is_local_endpoint(endpoint) && !endpoint.starts_with("unix:");
}

std::string qualifier_query(const std::string& qualifier) {
  return qualifier.empty() ? "" : "?Qualifier=" + net::percent_encode(qualifier);
}

// But for the payload.
NodeClient::InvokeAnswer answer_of(const net::ClientResponse& response) {
  const auto header = [&](std::string_view name) { return std::string(response.header(name)); };
  return {.content_type = header("Content-Type"),
          .function_error = header("X-Amz-Function-Error"),
          .log_tail = base64_decode("X-Amz-Log-Result", header("X-Amz-Log-Result")).value_or(""),
          .request_id = header("x-amzn-RequestId"),
          .start = header("X-Gpu-Start"),
          .queue_ms = header("X-Gpu-Queue-Ms"),
          .exec_ms = header("X-Gpu-Exec-Ms"),
          .first_byte_ms = header("X-Gpu-First-Byte-Ms"),
          .version = header("X-Amz-Executed-Version")};
}

}  // namespace

Error error_of(const net::ClientResponse& response) {
  Json body = parse(response.body);
  std::string message;
  if (body.is_object()) {
    for (const char* key : {"Message", "message", "error"}) {
      if (message.empty() && body.contains(key) && body[key].is_string()) message = body[key].get<std::string>();
    }
  }
  if (message.empty()) message = fmt::format("the node answered {}: {}", response.status, response.body.substr(0, 200));
  return Error{errc_of(response.status), std::move(message)};
}

Result<net::ClientResponse> NodeClient::send(net::ClientRequest request) {
  if (!token_.empty()) request.headers.push_back({"Authorization", "Bearer " + token_});
  return checked(http_.send(request));
}

Result<net::ClientResponse> NodeClient::checked(Result<net::ClientResponse> response) const {
  if (!response && response.error().code == Errc::kUnavailable) {
    return fail(Errc::kUnavailable,
                "no node answers at {} ({}): start one with 'fairlead serve', or name another with --endpoint or "
                "FAIRLEAD_ENDPOINT",
                endpoint_, response.error().message);
  }
  if (!response && response.error().code == Errc::kUnauthenticated) {
    return fail(Errc::kUnauthenticated,
                "{}: name the file with the node's certificate, or its authority's, in FAIRLEAD_CA",
                response.error().message);
  }
  if (!response) return fail(response.error());
  if (response->status < 400) return response;
  Error error = error_of(*response);
  if (response->status == 401 && token_of_environment().empty() && takes_operator_key(endpoint_)) {
    error.message += fmt::format(
        "; without FAIRLEAD_TOKEN the key is that of {}: if the node's state folder is another, its operator's way in "
        "is --endpoint unix:STATE/operator.sock",
        state_folder());
  }
  return fail(std::move(error));
}

namespace {

bool is_served(const std::string& socket) {
  const auto address = net::parse_socket_address(socket);
  if (!address) return false;
  const UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  return fd && ::connect(fd.get(), reinterpret_cast<const sockaddr*>(address->storage), address->size) == 0;
}

}  // namespace

namespace {

net::TlsTrustFiles trust_of_environment() {
  return {.ca = variable("FAIRLEAD_CA"),
          .certificate = variable("FAIRLEAD_CLIENT_CERTIFICATE"),
          .key = variable("FAIRLEAD_CLIENT_KEY")};
}

}  // namespace

NodeClient::NodeClient(const std::string& endpoint, std::string token)
    : endpoint_(endpoint), token_(std::move(token)), http_(endpoint, {.trust = trust_of_environment()}) {}

net::HttpClient impatient_client(const std::string& endpoint, Duration timeout) {
  return net::HttpClient(endpoint, {.timeout = timeout, .trust = trust_of_environment()});
}

std::string nearest_endpoint(const std::string& otherwise) {
  const std::string socket = "unix:" + state_folder() + "/operator.sock";
  return token_of_environment().empty() && is_served(socket) ? socket : otherwise;
}

std::string token_of_environment() {
  return variable("FAIRLEAD_TOKEN");
}

bool NodeClient::may_name_folders() const {
  return is_local_endpoint(endpoint_) && token_of_environment().empty();
}

std::string token_for(const std::string& endpoint) {
  if (std::string token = token_of_environment(); !token.empty()) return token;
  if (!takes_operator_key(endpoint)) return "";
  return identity::read_token(identity::KeyFile(state_folder()).operator_key_path()).value_or("");
}

bool is_local_endpoint(std::string_view endpoint) {
  if (endpoint.starts_with("unix:")) return true;
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (endpoint.starts_with(scheme)) endpoint.remove_prefix(scheme.size());
  }
  return net::is_loopback_host(endpoint);
}

Result<Json> NodeClient::call(const std::string& method, const std::string& path, const Json& body) {
  net::ClientRequest request{.method = method, .target = path};
  if (!body.is_null()) {
    request.headers.push_back({"Content-Type", "application/json"});
    try {
      request.body = body.dump();
    } catch (const Json::exception&) {
      return fail(Errc::kInvalidArgument, "arguments must be valid UTF-8");
    }
  }
  Result<net::ClientResponse> response = send(std::move(request));
  if (!response) return fail(response.error());
  if (response->body.empty()) return Json();
  Json answer = parse(response->body);
  if (answer.is_discarded()) return fail(Errc::kCorrupt, "{} at {} did not answer with JSON", path, endpoint_);
  return answer;
}

Result<std::string> NodeClient::get_text(const std::string& path) {
  Result<net::ClientResponse> response = get(path);
  if (!response) return fail(response.error());
  return std::move(response->body);
}

Result<NodeClient::InvokeAnswer> NodeClient::invoke(const std::string& function, std::string payload,
                                                    const InvokeOptions& options) {
  net::ClientRequest request{.method = "POST",
                             .target = function_path(function, "/invocations") + qualifier_query(options.qualifier)};
  request.headers.push_back({"X-Amz-Invocation-Type", options.event ? "Event" : "RequestResponse"});
  if (options.log_tail) request.headers.push_back({"X-Amz-Log-Type", "Tail"});
  if (!options.client_context.empty()) {
    request.headers.push_back({"X-Amz-Client-Context", base64_encode(options.client_context)});
  }
  request.body = std::move(payload);
  Result<net::ClientResponse> response = send(std::move(request));
  if (!response) return fail(response.error());
  InvokeAnswer answer = answer_of(*response);
  answer.payload = std::move(response->body);
  return answer;
}

Result<NodeClient::InvokeAnswer> NodeClient::stream(const std::string& function, std::string payload,
                                                    const InvokeOptions& options, const TakePart& take) {
  net::ClientRequest request{.method = "POST",
                             .target = "/fairlead/v1/functions/" + net::percent_encode(function) + "/stream" +
                                       qualifier_query(options.qualifier)};
  if (!token_.empty()) request.headers.push_back({"Authorization", "Bearer " + token_});
  request.body = std::move(payload);
  std::string refusal;  // what the node says instead of an answer
  auto response = http_.stream(request, [&](const net::ClientResponse& head, std::string_view part) {
    if (head.header("x-amzn-ErrorType").empty()) return take(answer_of(head), part);
    constexpr std::size_t kMostBytes = 1 << 20;
    refusal += part.substr(0, kMostBytes - std::min(kMostBytes, refusal.size()));
  });
  if (response && !response->header("x-amzn-ErrorType").empty()) {
    response->body = std::move(refusal);
    return fail(error_of(*response));
  }
  // Of a function that is an HTTP answer, its own status is no error of the node's.
  if (!response) return fail(checked(std::move(response)).error());
  return answer_of(*response);
}

std::string function_path(const std::string& name, const std::string& suffix) {
  return "/2015-03-31/functions/" + net::percent_encode(name) + suffix;
}

}  // namespace fairlead::cli
