#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <set>

#include "edge/router.h"
#include "edge/testing/edge_fixture.h"

namespace fairlead {
namespace {

// Patterns of up to three segments over two literals; what they match among all paths of up to five over three.
constexpr std::size_t kMostSegments = 3;

std::set<std::string> all_paths() {
  std::set<std::string> all{""};
  std::set<std::string> longest = all;
  for (std::size_t i = 0; i < kMostSegments + 2; ++i) {
    std::set<std::string> longer;
    for (const std::string& path : longest) {
      for (const char* segment : {"/a", "/b", "/c"}) longer.insert(path + segment);
    }
    all.insert(longer.begin(), longer.end());
    longest = std::move(longer);
  }
  all.erase("");
  return all;
}

std::string random_pattern() {
  std::string text = "/a";
  const auto more = *rc::gen::inRange<std::size_t>(0, kMostSegments);
  for (std::size_t i = 0; i < more; ++i) {
    const bool may_be_rest = i + 1 == more;
    const std::string name = std::string(1, static_cast<char>('x' + i));
    switch (*rc::gen::inRange(0, may_be_rest ? 4 : 3)) {
      case 0: text += "/a"; break;
      case 1: text += "/b"; break;
      case 2: text += "/{" + name + "}"; break;
      default: text += "/{" + name + "*}";
    }
  }
  return text;
}

std::set<std::string> matched_by(const RoutePattern& pattern) {
  static const std::set<std::string> kAll = all_paths();
  std::set<std::string> matched;
  for (const std::string& path : kAll) {
    if (pattern.matches(net::parse_target(path)->segments)) matched.insert(path);
  }
  return matched;
}

bool holds(const std::set<std::string>& all, const std::set<std::string>& part) {
  return std::includes(all.begin(), all.end(), part.begin(), part.end());
}

RC_GTEST_PROP(RouterProp, PatternsAreOrderedAsTheSetsOfPathsThatTheyMatch, ()) {
  const auto a = RoutePattern::parse(random_pattern()).value();
  const auto b = RoutePattern::parse(random_pattern()).value();
  const auto in_a = matched_by(a), in_b = matched_by(b);
  std::set<std::string> both;
  std::set_intersection(in_a.begin(), in_a.end(), in_b.begin(), in_b.end(), std::inserter(both, both.end()));
  const PatternOrder expected = both.empty()        ? PatternOrder::kApart
                                : in_a == in_b      ? PatternOrder::kSame
                                : holds(in_b, in_a) ? PatternOrder::kNarrower
                                : holds(in_a, in_b) ? PatternOrder::kWider
                                                    : PatternOrder::kCrossing;
  RC_LOG() << a.text() << " " << b.text();
  RC_ASSERT(a.compare(b) == expected);
}

// A route, and the paths that it matches.
struct Sample {
  std::string method;
  RoutePattern pattern;
  std::set<std::string> paths;
};

// Notes the route of each request in `taken`; what has none is answered by 404, or 400 where the target is none.
Result<Router> router_of(const std::vector<Sample>& samples, std::string& taken) {
  const EdgeErrors errors{
      .error = [](net::HttpExchange exchange, const Error&) { exchange.respond({.status = 400}); },
      .unknown = [](net::HttpExchange exchange, const std::string&) { exchange.respond({.status = 404}); }};
  Edge edge{.name = "edge", .prefixes = {"/a"}, .errors = errors};
  for (const auto& [method, pattern, paths] : samples) {
    edge.routes.add(method, pattern.text(), [&taken, name = method + pattern.text()](RouteCall call) {
      taken = name;
      call.exchange.respond({});
    });
  }
  Router router(errors);
  if (Status added = router.add(std::move(edge)); !added) return fail(added.error());
  return router;
}

std::shared_ptr<FakeExchange> send(const Router& router, const std::string& method, const std::string& target) {
  auto exchange = std::make_shared<FakeExchange>();
  exchange->method_text = method;
  exchange->target_text = target;
  router.dispatch(net::HttpExchange(exchange));
  return exchange;
}

// Whether a route could be meant as well as another: both match something, and neither's paths are all the other's too.
bool is_in_the_way(const Sample& a, const Sample& b) {
  const bool meet =
      std::any_of(a.paths.begin(), a.paths.end(), [&](const auto& path) { return b.paths.contains(path); });
  return a.method == b.method && meet && (a.paths == b.paths || (!holds(a.paths, b.paths) && !holds(b.paths, a.paths)));
}

// The routes that the router should have taken of these, one after the other.
std::vector<Sample> accepted_of(std::size_t count, std::string& taken) {
  std::vector<Sample> accepted;
  for (std::size_t i = 0; i < count; ++i) {
    const auto pattern = RoutePattern::parse(random_pattern()).value();
    const Sample next{*rc::gen::element<std::string>("GET", "PUT"), pattern, matched_by(pattern)};
    const bool clashes =
        std::any_of(accepted.begin(), accepted.end(), [&](const Sample& other) { return is_in_the_way(next, other); });
    accepted.push_back(next);
    RC_ASSERT(router_of(accepted, taken).has_value() == !clashes);
    if (clashes) accepted.pop_back();
  }
  return accepted;
}

// The router against a look at every route: of those that match, the one that matches the fewest paths.
RC_GTEST_PROP(RouterProp, ARequestGetsTheNarrowestOfItsRoutesAndClashesAreRefused, ()) {
  std::string taken;
  const std::vector<Sample> samples = accepted_of(*rc::gen::inRange<std::size_t>(1, 8), taken);
  const Router router = router_of(samples, taken).value();
  for (const std::string& path : all_paths()) {
    for (const std::string method : {"GET", "PUT"}) {
      const Sample* best = nullptr;
      for (const Sample& sample : samples) {
        if (sample.method != method || !sample.paths.contains(path)) continue;
        if (best == nullptr || sample.paths.size() < best->paths.size()) best = &sample;
      }
      taken.clear();
      send(router, method, path);
      RC_ASSERT(taken == (best == nullptr ? "" : best->method + best->pattern.text()));
    }
  }
}

RC_GTEST_PROP(RouterProp, AnyTargetIsAnsweredOnce, ()) {
  std::string taken;
  const Router router = router_of(accepted_of(4, taken), taken).value();
  const auto piece =
      rc::gen::element<std::string>("/", "a", "b", "%", "%2F", "%61", "%00", "?", "&", "=", "\xff", "{x}", "*");
  std::string target = "/a/";
  for (const std::string& part : *rc::gen::container<std::vector<std::string>>(piece)) target += part;
  const auto exchange = send(router, *rc::gen::element<std::string>("GET", "HEAD", "", "P\xff"), target);
  RC_ASSERT(exchange->response.has_value());
  const bool is_readable = net::parse_target(target).has_value();
  RC_ASSERT((exchange->response->status == 400) == !is_readable);
}

}  // namespace
}  // namespace fairlead
