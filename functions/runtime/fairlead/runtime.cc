#include "fairlead/runtime.h"

#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <optional>

#include "fairlead/http.h"
#include "fairlead/json.h"

namespace fairlead {
namespace {

constexpr std::string_view kNextRequest = "GET /2018-06-01/runtime/invocation/next HTTP/1.1\r\nHost: runtime\r\n\r\n";

iovec part(std::string_view text) {
  return {const_cast<char*>(text.data()), text.size()};
}

std::string post_headers(std::string_view path, std::string_view content_type, std::size_t length,
                         std::string_view error_type) {
  std::string head;
  head.reserve(256);
  head.append("POST /2018-06-01/runtime/").append(path).append(" HTTP/1.1\r\nHost: runtime\r\nContent-Type: ");
  head.append(content_type).append("\r\nContent-Length: ").append(std::to_string(length)).append("\r\n");
  if (!error_type.empty()) head.append("Lambda-Runtime-Function-Error-Type: ").append(error_type).append("\r\n");
  return head.append("\r\n");
}

std::string error_body(std::string_view type, std::string_view message) {
  std::string body = JsonObject().add("errorMessage", message).add("errorType", type).str();
  body.insert(body.size() - 1, ",\"stackTrace\":[]");
  return body;
}

// A POST that stays here until it is acknowledged, so that it can be sent again on a new connection.
struct Post {
  std::string head;
  std::string body;
};

Post make_error_post(std::string_view path, std::string_view type, std::string_view message) {
  Post post;
  post.body = error_body(type, message);
  post.head = post_headers(path, "application/json", post.body.size(), type);
  return post;
}

Event make_event(const HttpResponse& next) {
  Event event;
  event.payload = next.body;
  event.request_id = next.header("Lambda-Runtime-Aws-Request-Id");
  event.function_arn = next.header("Lambda-Runtime-Invoked-Function-Arn");
  event.trace_id = next.header("Lambda-Runtime-Trace-Id");
  event.client_context = next.header("Lambda-Runtime-Client-Context");
  event.content_type = next.header("Content-Type");
  const std::string_view deadline = next.header("Lambda-Runtime-Deadline-Ms");
  std::from_chars(deadline.data(), deadline.data() + deadline.size(), event.deadline_ms);
  return event;
}

// The conversation with the Runtime API over one connection at a time.
class Client {
 public:
  explicit Client(const Endpoint& endpoint) : endpoint_(endpoint) {}

  // Serves until the handler is terminal; throws when the Runtime API is gone or speaks nonsense.
  void serve(const Handler& handler) {
    send({}, kWithNext);
    while (true) {
      const HttpResponse next = receive_next();
      const bool go_on = handle(handler, make_event(next));
      send(std::move(handled_), go_on ? kWithNext : kAlone);
      if (!go_on) return await_acknowledgement();
    }
  }

  void report_init_error(std::string_view type, std::string_view message) {
    send(make_error_post("init/error", type, message), kAlone);
    await_acknowledgement();
  }

 private:
  enum Follow { kAlone, kWithNext };

  // Leaves the answer in handled_. False when the function must not be used again.
  bool handle(const Handler& handler, const Event& event) {
    const std::string path = "invocation/" + std::string(event.request_id);
    bool usable = true;
    try {
      Response response = handler(event);
      handled_ = {post_headers(path + "/response", response.content_type, response.body.size(), {}),
                  std::move(response.body)};
    } catch (const Error& error) {
      handled_ = make_error_post(path + "/error", error.type(), error.what());
      usable = !error.terminal();
    } catch (const std::exception& error) {
      handled_ = make_error_post(path + "/error", "Runtime.HandlerFailed", error.what());
    }
    return usable;
  }

  void send(std::optional<Post> post, Follow follow) {
    unacknowledged_ = std::move(post);
    follow_ = follow;
    try {
      write_pending();
    } catch (const ConnectionLost& lost) {
      reconnect(lost);
    }
  }

  void write_pending() {
    if (!connection_) connection_.emplace(endpoint_);
    iovec parts[3];
    std::size_t count = 0;
    if (unacknowledged_) {
      parts[count++] = part(unacknowledged_->head);
      parts[count++] = part(unacknowledged_->body);
    }
    if (follow_ == kWithNext) parts[count++] = part(kNextRequest);
    if (count > 0) connection_->write({parts, count});
  }

  // A second loss before anything was received means that the Runtime API is gone.
  void reconnect(const ConnectionLost& lost) {
    if (retried_) throw lost;
    retried_ = true;
    connection_.reset();
    write_pending();
  }

  HttpResponse receive() {
    try {
      const HttpResponse response = connection_->read();
      retried_ = false;
      return response;
    } catch (const ConnectionLost& lost) {
      reconnect(lost);
      return receive();
    }
  }

  void await_acknowledgement() {
    if (!unacknowledged_) return;
    const HttpResponse ack = receive();
    unacknowledged_.reset();
    if (ack.status != 202) {
      log_line("fairlead: the Runtime API refused an answer: status " + std::to_string(ack.status) + " " +
               std::string(ack.body));
    }
  }

  // A connection lost between the two reads sends only what is still missing, see write_pending().
  HttpResponse receive_next() {
    await_acknowledgement();
    const HttpResponse next = receive();
    if (next.status != 200 || next.header("Lambda-Runtime-Aws-Request-Id").empty()) {
      throw Error("Runtime.Protocol", "invocation/next answered status " + std::to_string(next.status) +
                                          (next.status == 200 ? " without Lambda-Runtime-Aws-Request-Id" : ""));
    }
    return next;
  }

  const Endpoint& endpoint_;
  std::optional<HttpConnection> connection_;
  std::optional<Post> unacknowledged_;
  Follow follow_ = kAlone;
  bool retried_ = false;
  Post handled_;
};

// Runs `body`, which ends normally only when the process must not go on.
template <class Body>
int run_logged(const Body& body) {
  try {
    body();
  } catch (const std::exception& error) {
    log_line(std::string("fairlead: stopped: ") + error.what());
  }
  return EXIT_FAILURE;
}

Handler initialise(const std::function<Handler()>& make_handler, const Endpoint& endpoint) {
  try {
    return make_handler();
  } catch (const Error& error) {
    log_line(std::string("fairlead: initialisation failed: ") + error.what());
    Client(endpoint).report_init_error(error.type(), error.what());
  } catch (const std::exception& error) {
    log_line(std::string("fairlead: initialisation failed: ") + error.what());
    Client(endpoint).report_init_error("Runtime.InitFailed", error.what());
  }
  return nullptr;
}

}  // namespace

Endpoint Endpoint::from_environment() {
  Endpoint endpoint;
  if (const char* path = std::getenv("FAIRLEAD_RUNTIME_SOCKET"); path != nullptr && *path != '\0') {
    endpoint.socket_path = path;
    return endpoint;
  }
  const char* api = std::getenv("AWS_LAMBDA_RUNTIME_API");
  const std::string_view address = api == nullptr ? "" : api;
  const std::size_t colon = address.rfind(':');
  if (colon == std::string_view::npos || colon == 0) {
    throw Error("Runtime.Configuration",
                "AWS_LAMBDA_RUNTIME_API is \"" + std::string(address) +
                    "\"; it must be host:port, or FAIRLEAD_RUNTIME_SOCKET a socket's path. The platform sets them: " +
                    "deploy this program instead of starting it by hand");
  }
  endpoint.host = address.substr(0, colon);
  if (endpoint.host.front() == '[' && endpoint.host.back() == ']') {
    endpoint.host = endpoint.host.substr(1, endpoint.host.size() - 2);
  }
  endpoint.port = address.substr(colon + 1);
  return endpoint;
}

int run(const Handler& handler, const Endpoint& endpoint) {
  return run_logged([&] { Client(endpoint).serve(handler); });
}

int run(const Handler& handler) {
  return run_logged([&] { Client(Endpoint::from_environment()).serve(handler); });
}

int run_with_init(const std::function<Handler()>& make_handler, const Endpoint& endpoint) {
  return run_logged([&] {
    if (const Handler handler = initialise(make_handler, endpoint)) Client(endpoint).serve(handler);
  });
}

int run_with_init(const std::function<Handler()>& make_handler) {
  return run_logged([&] { run_with_init(make_handler, Endpoint::from_environment()); });
}

void log_line(std::string_view text) {
  std::fprintf(stderr, "%.*s\n", static_cast<int>(text.size()), text.data());
}

}  // namespace fairlead
