// Finds the handler of a request by method and path. A pattern is a path with at most one parameter:
// "/2015-03-31/functions/{}/invocations". Segments are compared after percent-decoding, so an ARN fits into one. "{*}" as
// the last segment takes all that follow, at least one: the parameter is their text with "/" between.
//
// Threads: const after the last add(); handlers run in the caller.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "net/http_server.h"

namespace fairlead {

// A request that has found its handler.
struct RouteCall {
  net::HttpExchange exchange;
  net::Target target;
  std::string parameter;  // decoded, what is in the place of "{}" or "{*}"
};

class Router {
 public:
  using Handler = std::function<void(RouteCall)>;

  // GET also serves HEAD. Routes are tried in the order of addition.
  void add(std::string_view method, std::string_view pattern, Handler handler);

  // Unknown path: 404 UnknownOperationException. Known path, other method: 405 with Allow. A third-party exception that
  // escapes a handler: 500, when the exchange is still unanswered.
  void dispatch(net::HttpExchange exchange) const;

 private:
  struct Route {
    std::string method;
    std::vector<std::string> segments;
    Handler handler;
  };

  const Route* find(std::string_view method, const std::vector<std::string>& segments) const;
  std::string allowed_methods(const std::vector<std::string>& segments) const;

  std::vector<Route> routes_;
};

}  // namespace fairlead
