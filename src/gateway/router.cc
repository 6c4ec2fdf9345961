#include "gateway/router.h"

#include <fmt/ranges.h>

#include <exception>
#include <utility>

#include "base/log.h"
#include "gateway/lambda_error.h"

namespace fairlead {

namespace {

constexpr std::string_view kParameter = "{}";

constexpr std::string_view kRest = "{*}";

bool takes_rest(const std::vector<std::string>& pattern) {
  return !pattern.empty() && pattern.back() == kRest;
}

bool matches(const std::vector<std::string>& pattern, const std::vector<std::string>& segments) {
  const bool rest = takes_rest(pattern);
  if (rest ? segments.size() < pattern.size() : segments.size() != pattern.size()) return false;
  for (std::size_t i = 0; i < pattern.size() - (rest ? 1 : 0); ++i) {
    if (pattern[i] != kParameter && pattern[i] != segments[i]) return false;
  }
  return true;
}

std::string parameter_of(const std::vector<std::string>& pattern, std::vector<std::string>& segments) {
  if (takes_rest(pattern))
    return fmt::format("{}", fmt::join(segments.begin() + pattern.size() - 1, segments.end(), "/"));
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] == kParameter) return std::move(segments[i]);
  }
  return {};
}

}  // namespace

void Router::add(std::string_view method, std::string_view pattern, Handler handler) {
  routes_.push_back({std::string(method), net::parse_target(pattern)->segments, std::move(handler)});
}

const Router::Route* Router::find(std::string_view method, const std::vector<std::string>& segments) const {
  const std::string_view wanted = method == "HEAD" ? "GET" : method;
  for (const Route& route : routes_) {
    if (route.method == wanted && matches(route.segments, segments)) return &route;
  }
  return nullptr;
}

std::string Router::allowed_methods(const std::vector<std::string>& segments) const {
  std::string methods;
  for (const Route& route : routes_) {
    if (!matches(route.segments, segments)) continue;
    if (!methods.empty()) methods += ", ";
    methods += route.method;
  }
  return methods;
}

void Router::dispatch(net::HttpExchange exchange) const {
  const std::string_view method = exchange.request().method();
  auto target = net::parse_target(exchange.request().target());
  if (!target) return respond_error(std::move(exchange), target.error());
  const Route* route = find(method, target->segments);
  if (route == nullptr) {
    std::string allowed = allowed_methods(target->segments);
    return respond_unknown_operation(std::move(exchange), std::move(allowed));
  }
  RouteCall call{std::move(exchange), std::move(*target), {}};
  call.parameter = parameter_of(route->segments, call.target.segments);
  try {
    route->handler(std::move(call));
  } catch (const std::exception& error) {  // the exchange went with the call: dropped unanswered, it is a 500
    spdlog::error("gateway: {} /{}: {}", route->method, fmt::join(route->segments, "/"), error.what());
  }
}

}  // namespace fairlead
