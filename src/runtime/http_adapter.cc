#include "runtime/http_adapter.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/unique_fd.h"
#include "model/answer_stream.h"
#include "model/function.h"
#include "net/http_client.h"
#include "net/http_listener.h"
#include "net/http_request.h"

namespace fairlead {
namespace {

constexpr int kFirstWaitMs = 2;
constexpr int kLongestWaitMs = 50;
// A program that ends breaks its connections first. Its sandbox, this process included, follows at once, and the node
// then says how it ended, which is worth more than that the connection broke.
constexpr int kEndGraceMs = 200;
constexpr std::string_view kPreludeType = "application/vnd.awslambda.http-integration-response";
constexpr std::size_t kQuotedBytes = 4096;  // of an answer that is an error
constexpr Duration kHealthPatience = std::chrono::seconds(5);
constexpr Duration kPatienceBeyondDeadline = std::chrono::seconds(5);  // the node ends the program at its deadline
constexpr std::size_t kMostPayloadBytes = 80 << 20;                    // what the node's server takes, and more
constexpr std::string_view kInvocations = "/2018-06-01/runtime/invocation/";

bool accepts_connections(std::uint16_t port) {
  const UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return socket && ::connect(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
}

bool is_healthy(std::uint16_t port, const std::string& path) {
  if (path.empty()) return true;
  const auto answer = net::HttpClient(fmt::format("127.0.0.1:{}", port), {.timeout = kHealthPatience})
                          .send({.method = "GET", .target = path});
  return answer && answer->status == 200;
}

// The node's limit on start-up ends the wait for a program that never listens.
void wait_until_ready(const HttpAdapterOptions& options) {
  const auto is_ready = [&] { return accepts_connections(options.port) && is_healthy(options.port, options.health); };
  for (int wait_ms = kFirstWaitMs; !is_ready(); wait_ms = std::min(2 * wait_ms, kLongestWaitMs)) {
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

// What a streamed answer begins with, where it is an HTTP answer.
std::string prelude_of(const net::ClientResponse& head) {
  nlohmann::json headers = nlohmann::json::object(), cookies = nlohmann::json::array();
  for (const net::Header& header : head.headers) {
    if (net::equals_ignoring_case(header.name, "Set-Cookie")) {
      cookies.push_back(header.value);
    } else if (headers.contains(header.name)) {
      headers[header.name] = headers[header.name].get<std::string>() + ", " + header.value;
    } else {
      headers[header.name] = header.value;
    }
  }
  const nlohmann::json said{
      {"statusCode", head.status}, {"headers", std::move(headers)}, {"cookies", std::move(cookies)}};
  return said.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + std::string(8, '\0');
}

// One answer on its way to the Runtime API, a chunk for each part: HttpClient sends no body that is not whole. A part that cannot be
// sent, because its caller has left, is thrown away, as are those behind it. Destroyed before end(): the answer is cut.
class AnswerPost {
 public:
  AnswerPost(const std::string& runtime_api, std::string target)
      : address_(net::parse_socket_address(runtime_api)), target_(std::move(target)) {}

  bool has_begun() const { return has_begun_; }

  void part(const net::ClientResponse& head, std::string_view bytes) {
    if (!has_begun_) begin(head);
    send_chunk(bytes);
  }

  void end(const net::ClientResponse& head) {
    if (!has_begun_) begin(head);
    send("0\r\n\r\n");
    char said[512];
    while (socket_ && ::recv(socket_.get(), said, sizeof said, 0) < 0 && errno == EINTR) {
    }
  }

 private:
  void begin(const net::ClientResponse& head) {
    has_begun_ = true;
    if (!address_) return;
    socket_.reset(::socket(address_->family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (!socket_ ||
        ::connect(socket_.get(), reinterpret_cast<const sockaddr*>(address_->storage), address_->size) != 0) {
      return socket_.reset();
    }
    const int on = 1;
    ::setsockopt(socket_.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    send(
        fmt::format("POST {} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {}\r\nTransfer-Encoding: chunked\r\n"
                    "Lambda-Runtime-Function-Response-Mode: streaming\r\nConnection: close\r\n\r\n",
                    target_, kPreludeType));
    send_chunk(prelude_of(head));
  }

  void send_chunk(std::string_view bytes) {
    if (bytes.empty()) return;
    send(fmt::format("{:x}\r\n", bytes.size()));
    send(bytes);
    send("\r\n");
  }

  void send(std::string_view bytes) {
    while (socket_ && !bytes.empty()) {
      const ssize_t count = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (count >= 0) {
        bytes.remove_prefix(static_cast<std::size_t>(count));
      } else if (errno != EINTR) {
        socket_.reset();
      }
    }
  }

  const Result<net::SocketAddress> address_;
  const std::string target_;
  UniqueFd socket_;  // none: not begun, or broken
  bool has_begun_ = false;
};

class Adapter {
 public:
  explicit Adapter(const HttpAdapterOptions& options)
      : program_(fmt::format("127.0.0.1:{}", options.port)),
        api_(options.runtime_api, {.timeout = std::chrono::hours(24 * 365), .response_bytes = kMostPayloadBytes}),
        runtime_api_(options.runtime_api) {}

  // False: there is no next one; `status` says why.
  bool serve_one(unsigned& status) {
    Result<net::ClientResponse> next = api_.send({.target = std::string(kInvocations) + "next"});
    status = next ? next->status : 0;
    if (status != 200) return false;
    const std::string id(next->header("Lambda-Runtime-Aws-Request-Id"));
    if (!next->header("Fairlead-Http-Method").empty()) return serve_http(id, *std::move(next), status);
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
    for (const char* name : {"Content-Type", "Lambda-Runtime-Aws-Request-Id", "Lambda-Runtime-Deadline-Ms",
                             "Lambda-Runtime-Invoked-Function-Arn", "Lambda-Runtime-Trace-Id", "traceparent",
                             "Lambda-Runtime-Client-Context"}) {
      const std::string_view value = next.header(name);
      if (!value.empty()) request.headers.push_back({name, std::string(value)});
    }
    request.body = std::move(next.body);
    return net::HttpClient(program_, {.response_bytes = 2 * kMaxResponseBytes}).send(request);
  }

  // As its caller asked. `status`: of what the Runtime API says to the answer.
  bool serve_http(const std::string& id, net::ClientResponse next, unsigned& status) {
    const net::ClientRequest request = as_asked(id, next);
    AnswerPost post(runtime_api_, fmt::format("{}{}/response", kInvocations, id));
    const auto answer = net::HttpClient(program_, {.timeout = time_left(next), .response_bytes = kMaxStreamedBytes})
                            .stream(request, [&post](const net::ClientResponse& head, std::string_view part) {
                              post.part(head, part);
                            });
    if (!answer && !post.has_begun()) {
      ::poll(nullptr, 0, kEndGraceMs);
      const Result<net::ClientResponse> taken = api_.send(error(id, answer));
      status = taken ? taken->status : 0;
      return taken.has_value();
    }
    if (answer) post.end(*answer);
    status = 200;  // whatever was said to that answer: the next call tells whether there is more to do
    return true;
  }

  static net::ClientRequest as_asked(const std::string& id, net::ClientResponse& next) {
    net::ClientRequest request{.method = std::string(next.header("Fairlead-Http-Method")),
                               .target = std::string(next.header("Fairlead-Http-Target")),
                               .headers = {},
                               .body = std::move(next.body)};
    bool has_call_id = false;
    for (const net::Header& header : next.headers) {
      if (!net::equals_ignoring_case(header.name, "Fairlead-Http-Header")) continue;
      const std::size_t colon = std::min(header.value.find(": "), header.value.size());
      request.headers.push_back(
          {header.value.substr(0, colon), header.value.substr(std::min(colon + 2, header.value.size()))});
      has_call_id = has_call_id || net::equals_ignoring_case(request.headers.back().name, "X-Call-Id");
    }
    if (!has_call_id) request.headers.push_back({"X-Call-Id", id});
    return request;
  }

  static Duration time_left(const net::ClientResponse& next) {
    const std::string_view text = next.header("Lambda-Runtime-Deadline-Ms");
    std::int64_t deadline_ms = 0;
    std::from_chars(text.data(), text.data() + text.size(), deadline_ms);
    const std::int64_t left = std::max<std::int64_t>(deadline_ms - wall_clock_ms(), 0);
    return std::chrono::milliseconds(left) + kPatienceBeyondDeadline;
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
  const std::string runtime_api_;
};

}  // namespace

int run_http_adapter(const HttpAdapterOptions& options) {
  wait_until_ready(options);
  Adapter adapter(options);
  unsigned status = 0;
  while (adapter.serve_one(status)) {
  }
  return status == 403 ? 0 : 1;
}

}  // namespace fairlead
