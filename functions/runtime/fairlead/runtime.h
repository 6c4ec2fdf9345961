// The Lambda Runtime API for C++ functions: fetch an event, handle it, send the response, for ever.
//
// Example, a whole function:
//   #include "fairlead/runtime.h"
//   int main() {
//     return fairlead::run([](const fairlead::Event& event) { return fairlead::Response(std::string(event.payload)); });
//   }
//
// The response and the request for the next event travel in one write, so a warm invocation costs the function one
// sendmsg and one or two recv. Needs nothing but libc and libstdc++.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "fairlead/error.h"

namespace fairlead {

// One invocation. The views are valid until the handler returns.
struct Event {
  std::string_view payload;
  std::string_view request_id;
  std::string_view function_arn;  // empty where the platform sent none; so are the next three
  std::string_view trace_id;
  std::string_view client_context;  // JSON
  std::string_view content_type;
  std::int64_t deadline_ms = 0;  // Unix time in milliseconds; 0: no deadline
};

struct Response {
  explicit Response(std::string response_body, std::string response_type = "application/json")
      : body(std::move(response_body)), content_type(std::move(response_type)) {}

  std::string body;
  std::string content_type;  // "application/octet-stream" for bytes
};

// May throw; any std::exception becomes a function error, an Error with its own type. Called from run()'s thread only.
using Handler = std::function<Response(const Event&)>;

// Where the Runtime API listens: a Unix-domain socket when `socket_path` is set, else TCP.
struct Endpoint {
  std::string socket_path;
  std::string host;
  std::string port;

  // FAIRLEAD_RUNTIME_SOCKET (a path), else AWS_LAMBDA_RUNTIME_API (host:port). Throws Error when neither is usable.
  static Endpoint from_environment();
};

// Serves invocations until the Runtime API goes away or the handler throws a terminal Error. A connection that the
// server closed is opened again once, and what it had not acknowledged is sent again. Returns the exit status for
// main(), always a failure, since a function is expected to run until it is killed; the reason is on stderr.
int run(const Handler& handler);
int run(const Handler& handler, const Endpoint& endpoint);

// The same with an initialisation that may fail: what `make_handler` throws is reported as an initialisation error.
int run_with_init(const std::function<Handler()>& make_handler);
int run_with_init(const std::function<Handler()>& make_handler, const Endpoint& endpoint);

// Writes one line to stderr, which the platform keeps as the function's log.
void log_line(std::string_view text);

}  // namespace fairlead
