// Finds the handler of a request by method and path, among the routes of all edges.
//
// Of several routes that match, the narrowest is taken, whatever the order in which they were added: /a/b before /a/{x} before
// /{y*}. Two routes of one method of which neither is narrower, although a path matches both, are refused when they are added
// (/a/{x} and /{y}/b): nobody could say which of them /a/b means.
//
// Threads: const after the last add(); handlers run in the caller.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "edge/edge.h"

namespace fairlead {

class Guard;

class Router {
 public:
  // `fallback` answers for paths that are no edge's.
  explicit Router(EdgeErrors fallback) : fallback_(std::move(fallback)) {}

  // Asked before each handler from now on. Without one everybody is the operator.
  void set_guard(Guard* guard) { guard_ = guard; }

  // kInvalidArgument: a pattern that is none, or lies outside of the edge's prefixes. kConflict: a route or a prefix that another
  // one is in the way of. Nothing is added then.
  Status add(Edge edge);

  // Unknown path, or known with another method: the edge that owns the path says so. A third-party exception that escapes a
  // handler: 500, when the exchange is still unanswered. A request that was refused before it was whole (net::RequestMemory): the
  // edge that owns the path says why.
  void dispatch(net::HttpExchange exchange) const;

  // Where the body of the request goes that dispatch() will be given once it is there.
  std::shared_ptr<net::BodySink> sink_for(net::HttpRequest& head) const;

 private:
  struct Entry {
    std::string method;
    RoutePattern pattern;
    RouteHandler handler;
    Permission permission;
    RouteSink sink;
    std::size_t number;  // in the order of addition
  };
  struct Owner {
    std::vector<std::string> prefix;
    std::size_t edge;  // in errors_
  };

  Status add_owners(const Edge& edge);
  Status add_route(Route route, const std::vector<std::string>& prefixes);
  const Entry* find(std::string_view method, const std::vector<std::string>& segments) const;
  const EdgeErrors& errors_of(const std::vector<std::string>& segments) const;
  std::string allowed_methods(const std::vector<std::string>& segments) const;

  static void handle(const Entry& entry, net::HttpExchange exchange, net::Target target, Principal who);

  EdgeErrors fallback_;
  Guard* guard_ = nullptr;
  std::vector<EdgeErrors> errors_;  // of each edge
  std::vector<Owner> owners_;       // the longest prefix first
  std::vector<Entry> entries_;      // none is wider than one behind it
};

}  // namespace fairlead
