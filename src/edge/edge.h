// An edge: one public API of the node. It owns the paths below its prefixes, the JSON it speaks there, and how it says that
// something is wrong. It turns requests into calls of NodeService and results into answers, and decides nothing. Below the edges
// there is no protocol: an edge more touches no other file than its own and the one that wires the node.
//
// Example: an edge with the prefix "/v2" and the route GET /v2/models/{model}. The router hands it GET /v2/models/m with the
// parameter model = "m"; DELETE /v2/models/m and GET /v2/nothing go to its `unknown`, and no other edge hears of them.
//
// Plain values; handlers run on the io_context's thread.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "base/result.h"
#include "edge/permission.h"
#include "edge/route_pattern.h"
#include "model/function.h"
#include "model/principal.h"
#include "net/http_server.h"

namespace fairlead {

// Where no guard stands before the router, everybody.
inline Principal unguarded() {
  return {.name = "anyone", .role = Role::kOperator};
}

// A request that has found its handler.
struct RouteCall {
  net::HttpExchange exchange;
  net::Target target;
  PathParameters parameters;
  Principal principal = unguarded();

  // What is in the place of {name} or {name*}. REQUIRES: the route's pattern has it.
  const std::string& parameter(std::string_view name) const {
    for (const auto& [key, value] : parameters) {
      if (key == name) return value;
    }
    FL_CHECK(false, "the route has no parameter {}", name);
    std::abort();
  }
};

using RouteHandler = std::function<void(RouteCall)>;

// A request whose body is about to arrive.
struct RouteHead {
  net::HttpRequest& request;
  const net::Target& target;
  const PathParameters& parameters;
  const Principal& principal;
};
// Where the body goes; null: it is collected. What is wrong with the request is for the handler to say.
using RouteSink = std::function<std::shared_ptr<net::BodySink>(const RouteHead&)>;

struct Route {
  std::string method;  // GET also serves HEAD
  std::string pattern;
  RouteHandler handler;
  Permission permission;
  RouteSink sink = {};  // none: bodies are collected
};

class Routes {
 public:
  // Who forgets the permission keeps everybody but the operator out.
  void add(std::string_view method, std::string_view pattern, RouteHandler handler,
           Permission permission = Permission::kOperate, RouteSink sink = {}) {
    routes_.push_back({std::string(method), std::string(pattern), std::move(handler), permission, std::move(sink)});
  }
  std::vector<Route> take() { return std::move(routes_); }

 private:
  std::vector<Route> routes_;
};

// How an edge answers what never reaches a handler.
struct EdgeErrors {
  // The target cannot be read.
  std::function<void(net::HttpExchange, const Error&)> error;
  // There is nothing at the path; or, where `allowed_methods` is not empty ("GET, DELETE"), not for this method.
  std::function<void(net::HttpExchange, std::string allowed_methods)> unknown;
};

// What the HTTP server must let through for the largest legal request: zipped code, base64 (4 bytes for 3) in JSON.
inline constexpr std::size_t kMaxRequestBytes = kMaxZippedCodeBytes / 3 * 4 + (1 << 20);

struct Edge {
  std::string name;                   // for people: "lambda"
  std::vector<std::string> prefixes;  // "/v1": all paths at and below are the edge's, but those of a longer prefix
  Routes routes;
  EdgeErrors errors;
};

}  // namespace fairlead
