#include "edge/router.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "base/log.h"
#include "edge/guard.h"

namespace fairlead {
namespace {

// Of a target that could not be decoded: enough to tell whose it is.
std::vector<std::string> raw_segments(std::string_view target) {
  std::vector<std::string> segments;
  std::string_view path = target.substr(0, target.find('?'));
  while (!path.empty()) {
    path.remove_prefix(path.front() == '/' ? 1 : 0);
    const std::size_t slash = std::min(path.find('/'), path.size());
    segments.emplace_back(path.substr(0, slash));
    path.remove_prefix(slash);
  }
  return segments;
}

bool begins_with(const std::vector<std::string>& segments, const std::vector<std::string>& prefix) {
  return segments.size() >= prefix.size() && std::equal(prefix.begin(), prefix.end(), segments.begin());
}

}  // namespace

Status Router::add(Edge edge) {
  Router with = *this;  // so that an edge is added as a whole or not at all
  if (Status added = with.add_owners(edge); !added) return added;
  for (Route& route : edge.routes.take()) {
    if (Status added = with.add_route(std::move(route), edge.prefixes); !added) return added;
  }
  with.errors_.push_back(std::move(edge.errors));
  *this = std::move(with);
  return {};
}

Status Router::add_owners(const Edge& edge) {
  for (const std::string& text : edge.prefixes) {
    const auto target = net::parse_target(text);
    if (!target) return fail(target.error());
    const auto is_it = [&](const Owner& owner) { return owner.prefix == target->segments; };
    if (std::any_of(owners_.begin(), owners_.end(), is_it)) {
      return fail(Errc::kConflict, "edge {}: the prefix '{}' has an owner already", edge.name, text);
    }
    const auto is_shorter = [&](const Owner& owner) { return owner.prefix.size() < target->segments.size(); };
    owners_.insert(std::find_if(owners_.begin(), owners_.end(), is_shorter), {target->segments, errors_.size()});
  }
  return {};
}

Status Router::add_route(Route route, const std::vector<std::string>& prefixes) {
  auto pattern = RoutePattern::parse(route.pattern);
  if (!pattern) return fail(pattern.error());
  const auto holds_it = [&](const std::string& text) {
    return pattern->begins_with(net::parse_target(text)->segments);
  };
  if (std::none_of(prefixes.begin(), prefixes.end(), holds_it)) {
    return fail(Errc::kInvalidArgument, "route '{}' lies outside of its edge's prefixes", route.pattern);
  }
  auto place = entries_.end();
  for (auto it = entries_.begin(); it != entries_.end(); ++it) {
    const PatternOrder order = pattern->compare(it->pattern);
    if (it->method == route.method && (order == PatternOrder::kSame || order == PatternOrder::kCrossing)) {
      return fail(Errc::kConflict, "{} '{}' is in the way of '{}': paths match both, and neither is narrower",
                  route.method, it->pattern.text(), route.pattern);
    }
    if (order == PatternOrder::kNarrower && place == entries_.end()) place = it;
  }
  entries_.insert(place, {std::move(route.method), *std::move(pattern), std::move(route.handler), route.permission,
                          std::move(route.sink), entries_.size()});
  return {};
}

const Router::Entry* Router::find(std::string_view method, const std::vector<std::string>& segments) const {
  const std::string_view wanted = method == "HEAD" ? "GET" : method;
  for (const Entry& entry : entries_) {
    if (entry.method == wanted && entry.pattern.matches(segments)) return &entry;
  }
  return nullptr;
}

const EdgeErrors& Router::errors_of(const std::vector<std::string>& segments) const {
  for (const Owner& owner : owners_) {
    if (begins_with(segments, owner.prefix)) return errors_[owner.edge];
  }
  return fallback_;
}

std::string Router::allowed_methods(const std::vector<std::string>& segments) const {
  std::vector<const Entry*> matching;
  for (const Entry& entry : entries_) {
    if (entry.pattern.matches(segments)) matching.push_back(&entry);
  }
  std::sort(matching.begin(), matching.end(), [](const Entry* a, const Entry* b) { return a->number < b->number; });
  std::vector<std::string_view> methods;
  for (const Entry* entry : matching) {
    if (std::find(methods.begin(), methods.end(), entry->method) == methods.end()) methods.push_back(entry->method);
  }
  std::string text;
  for (const std::string_view method : methods) (text += text.empty() ? "" : ", ") += method;
  return text;
}

std::shared_ptr<net::BodySink> Router::sink_for(net::HttpRequest& head) const {
  // Asked before every body, and few routes have any: a warm call's target is read once.
  const auto may_be_it = [&](const Entry& entry) { return entry.sink && entry.method == head.method(); };
  if (std::none_of(entries_.begin(), entries_.end(), may_be_it)) return nullptr;
  const auto target = net::parse_target(head.target());
  const Entry* entry = target ? find(head.method(), target->segments) : nullptr;
  if (entry == nullptr || !entry->sink) return nullptr;
  const std::optional<Principal> who = guard_ == nullptr ? unguarded() : guard_->admit_head(head, entry->permission);
  if (!who) return nullptr;  // collected, and refused, or its signature checked, when it is there
  return entry->sink({head, *target, entry->pattern.parameters(target->segments), *who});
}

void Router::dispatch(net::HttpExchange exchange) const {
  const std::string_view method = exchange.request().method();
  auto target = net::parse_target(exchange.request().target());
  if (!target) {
    const EdgeErrors& errors = errors_of(raw_segments(exchange.request().target()));
    return errors.error(std::move(exchange), target.error());
  }
  const EdgeErrors& errors = errors_of(target->segments);
  if (const Error* refused = exchange.request().refusal()) {
    const Error error = *refused;  // which goes with the exchange
    return errors.error(std::move(exchange), error);
  }
  const Entry* entry = find(method, target->segments);
  if (entry == nullptr) {
    return errors.unknown(std::move(exchange), allowed_methods(target->segments));
  }
  if (guard_ == nullptr) return handle(*entry, std::move(exchange), *std::move(target), unguarded());
  if (Guard::takes_long(exchange.request())) {
    return guard_->admit_later(
        std::move(exchange), entry->permission,
        [entry, &errors, target = *std::move(target)](net::HttpExchange admitted, Result<Principal> who) {
          if (!who) return errors.error(std::move(admitted), who.error());
          handle(*entry, std::move(admitted), target, *std::move(who));
        });
  }
  auto who = guard_->admit(exchange, entry->permission);
  if (!who) return errors.error(std::move(exchange), who.error());
  handle(*entry, std::move(exchange), *std::move(target), *std::move(who));
}

void Router::handle(const Entry& entry, net::HttpExchange exchange, net::Target target, Principal who) {
  RouteCall call{std::move(exchange), std::move(target), {}, std::move(who)};
  call.parameters = entry.pattern.parameters(std::move(call.target.segments));
  try {
    entry.handler(std::move(call));
  } catch (const std::exception& error) {  // the exchange went with the call: dropped unanswered, it is a 500
    spdlog::error("edge: {} {}: {}", entry.method, entry.pattern.text(), error.what());
  }
}

}  // namespace fairlead
