#include "runtime/http_adapter.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/unique_fd.h"
#include "model/function.h"
#include "net/http_client.h"

namespace fairlead {
namespace {

constexpr int kFirstWaitMs = 2;
constexpr int kLongestWaitMs = 50;
// A program that ends breaks its connections first. Its sandbox, this process included, follows at once, and the node
// then says how it ended, which is worth more than that the connection broke.
constexpr int kEndGraceMs = 200;
constexpr std::size_t kQuotedBytes = 4096;  // of an answer that is an error
constexpr std::string_view kInvocations = "/2018-06-01/runtime/invocation/";

bool accepts_connections(std::uint16_t port) {
  const UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return socket && ::connect(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
}

// The node's limit on start-up ends the wait for a program that never listens.
void wait_until_listening(std::uint16_t port) {
  for (int wait_ms = kFirstWaitMs; !accepts_connections(port); wait_ms = std::min(2 * wait_ms, kLongestWaitMs)) {
    ::poll(nullptr, 0, wait_ms);
  }
}

struct Failure {
  std::string type;
  std::string message;
};

Failure failure_of(const Result<net::ClientResponse>& answer) {
  if (!answer) return {"HTTP.NoAnswer", answer.error().message};
  return {fmt::format("HTTP.{}", answer->status),
          fmt::format("the container answered {}: {}", answer->status, answer->body.substr(0, kQuotedBytes))};
}

class Adapter {
 public:
  explicit Adapter(const HttpAdapterOptions& options)
      : program_(fmt::format("127.0.0.1:{}", options.port)),
        api_(options.runtime_api,
             {.timeout = std::chrono::hours(24 * 365), .response_bytes = kMaxSyncPayloadBytes * 2}) {}

  // False: there is no next one; `status` says why.
  bool serve_one(unsigned& status) {
    Result<net::ClientResponse> next = api_.send({.target = std::string(kInvocations) + "next"});
    status = next ? next->status : 0;
    if (status != 200) return false;
    const std::string id(next->header("Lambda-Runtime-Aws-Request-Id"));
    const Result<net::ClientResponse> answer = ask_program(std::move(*next));
    if (!answer) ::poll(nullptr, 0, kEndGraceMs);
    const bool fine = answer && answer->status < 400;
    const Result<net::ClientResponse> taken = fine ? api_.send(response(id, *answer)) : api_.send(error(id, answer));
    status = taken ? taken->status : 0;
    return taken.has_value();
  }

 private:
  // A connection for each: the program may close an idle one at any time, and a request cannot be sent twice.
  Result<net::ClientResponse> ask_program(net::ClientResponse next) {
    net::ClientRequest request{.method = "POST", .target = "/", .headers = {}, .body = {}};
    for (const char* name :
         {"Content-Type", "Lambda-Runtime-Aws-Request-Id", "Lambda-Runtime-Deadline-Ms",
          "Lambda-Runtime-Invoked-Function-Arn", "Lambda-Runtime-Trace-Id", "Lambda-Runtime-Client-Context"}) {
      const std::string_view value = next.header(name);
      if (!value.empty()) request.headers.push_back({name, std::string(value)});
    }
    request.body = std::move(next.body);
    return net::HttpClient(program_, {.response_bytes = 2 * kMaxResponseBytes}).send(request);
  }

  static net::ClientRequest response(const std::string& id, const net::ClientResponse& answer) {
    net::ClientRequest request{.method = "POST", .target = fmt::format("{}{}/response", kInvocations, id)};
    const std::string_view type = answer.header("Content-Type");
    if (!type.empty()) request.headers.push_back({"Content-Type", std::string(type)});
    request.body = answer.body;
    return request;
  }

  static net::ClientRequest error(const std::string& id, const Result<net::ClientResponse>& answer) {
    const Failure failure = failure_of(answer);
    net::ClientRequest request{.method = "POST", .target = fmt::format("{}{}/error", kInvocations, id)};
    request.headers = {{"Content-Type", "application/json"}, {"Lambda-Runtime-Function-Error-Type", failure.type}};
    request.body = nlohmann::json{{"errorType", failure.type}, {"errorMessage", failure.message}}.dump(
        -1, ' ', false, nlohmann::json::error_handler_t::replace);
    return request;
  }

  const std::string program_;
  net::HttpClient api_;
};

}  // namespace

int run_http_adapter(const HttpAdapterOptions& options) {
  wait_until_listening(options.port);
  Adapter adapter(options);
  unsigned status = 0;
  while (adapter.serve_one(status)) {
  }
  return status == 403 ? 0 : 1;
}

}  // namespace fairlead
