#include "decide/cluster/cluster_view.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace fairlead {
namespace {

const std::string kGpuClass = "gpu";  // functions ask for no class yet

Status check_number(const char* field, std::uint64_t value) {
  if (value <= kMostNumber) return {};
  return fail(Errc::kInvalidArgument, "{} is {}, it must be at most {}", field, value, kMostNumber);
}

Status check_amount(const char* field, double value, double most) {
  if (std::isfinite(value) && value >= 0 && value <= most) return {};
  return fail(Errc::kInvalidArgument, "{} is {}, it must be from 0 to {}", field, value, most);
}

Status check_tenants(const std::vector<TenantService>& tenants) {
  if (tenants.size() > kMostTenantsSaid) {
    return fail(Errc::kInvalidArgument, "tenants are {}, at most {} may be listed", tenants.size(), kMostTenantsSaid);
  }
  for (std::size_t i = 0; i < tenants.size(); ++i) {
    if (i > 0 && tenants[i - 1].tenant >= tenants[i].tenant)
      return fail(Errc::kInvalidArgument, "tenants are not in ascending order of their keys, each once");
    if (Status s = check_amount("a tenant's service", tenants[i].seconds, kMostServedSeconds); !s) return s;
  }
  return {};
}

}  // namespace

Status validate_node_name(std::string_view name) {
  const auto is_plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' ||
           c == '-';
  };
  if (!name.empty() && name.size() <= kMaxNodeNameLength && std::all_of(name.begin(), name.end(), is_plain)) return {};
  return fail(Errc::kInvalidArgument,
              "a node's name has 1 to {} letters, digits, '.', '_' or '-'; this one has {} bytes", kMaxNodeNameLength,
              name.size());
}

Status validate(const NodeWord& word) {
  if (Status named = validate_node_name(word.name); !named) return named;
  if (Status status = check_number("incarnation", word.incarnation); !status) return status;
  if (Status status = check_number("number", word.number); !status) return status;
  if (Status status = check_amount("tokens", word.tokens, kMostTokens); !status) return status;
  if (Status status = check_amount("backlog", word.backlog_s, kMostBacklogSeconds); !status) return status;
  if (word.warm && word.warm->size() > kMostWarmFunctions) {
    return fail(Errc::kInvalidArgument, "warm functions are {}, at most {} may be listed", word.warm->size(),
                kMostWarmFunctions);
  }
  if (word.warm && !std::is_sorted(word.warm->begin(), word.warm->end())) {
    return fail(Errc::kInvalidArgument, "warm functions are not in ascending order");
  }
  return check_tenants(word.tenants);
}

ClusterView::ClusterView(std::string own_name, const ClusterSettings& settings, Instant now)
    : settings_(settings),
      members_(settings.times),
      loads_(settings.bound),
      clocks_(settings.tenants),
      advanced_at_(now) {
  ids_.emplace(own_name, NodeId(1));
  nodes_.push_back({.word = {.name = std::move(own_name)}});
  members_.add(now, self());
}

std::optional<NodeId> ClusterView::find(std::string_view name) const {
  const auto known = ids_.find(name);
  return known == ids_.end() ? std::nullopt : std::optional(known->second);
}

Result<NodeId> ClusterView::meet(Instant now, const std::string& name) {
  if (Status valid = validate_node_name(name); !valid) return fail(valid.error());
  if (name == nodes_.front().word.name) {
    return fail(Errc::kConflict,
                "a peer calls itself '{}', which is this node's own name: give each node one with --node-name", name);
  }
  if (const auto known = find(name)) return *known;
  if (nodes_.size() >= kMostNodes) {
    return fail(Errc::kResourceExhausted, "'{}' would be node {}; a cluster of static peers has at most {}", name,
                nodes_.size() + 1, kMostNodes);
  }
  nodes_.push_back({.word = {.name = name}});
  const NodeId node(nodes_.size());
  ids_.emplace(name, node);
  members_.add(now, node);
  return node;
}

Heard ClusterView::take(Instant now, NodeId node, NodeWord word) {
  const Heard heard = members_.heard(
      now, node, {.incarnation = word.incarnation, .number = word.number, .is_draining = word.is_draining});
  if (heard != Heard::kNews) return heard;
  Node& known = nodes_[node.value() - 1];
  LoadReport report{.node = node,
                    .incarnation = word.incarnation,
                    .number = word.number,
                    .measured_at = now,
                    .tokens = word.tokens,
                    .backlog_s = word.backlog_s,
                    .is_draining = word.is_draining,
                    .warm = word.warm,
                    .tenants = word.tenants};
  clocks_.report(now, report);
  report.tenants.clear();  // of no use to loads, which keep the report
  loads_.report(std::move(report));
  const bool is_home = word.tokens > 0;
  if (is_home && !known.is_home) orders_.add(node, node_key(word.name), kGpuClass);
  if (!is_home && known.is_home) orders_.remove(node);
  known.is_home = is_home;
  known.word = std::move(word);
  return heard;
}

Result<Heard> ClusterView::hear(Instant now, NodeWord word) {
  if (Status valid = validate(word); !valid) return fail(valid.error());
  const auto node = find(word.name);
  FL_CHECK(node, "nobody met {}", word.name);
  if (*node == self()) return fail(Errc::kConflict, "a peer speaks for '{}', which is this node", word.name);
  return take(now, *node, std::move(word));
}

void ClusterView::say(Instant now, NodeWord own) {
  take(now, self(), std::move(own));
}

std::vector<NodeId> ClusterView::advance(Instant now) {
  if (now - advanced_at_ > settings_.times.suspect_after) deaf_until_ = now + settings_.times.suspect_after;
  advanced_at_ = now;
  std::vector<NodeId> changed;
  if (now >= deaf_until_) changed = members_.advance(now);
  for (const NodeId node : changed) {
    if (members_.state(node) != MemberState::kDead) continue;
    loads_.forget(node);
    clocks_.forget(node);
  }
  clocks_.advance(now);
  loads_.settle(now, [this](NodeId node) { return members_.takes_calls(node); });
  return changed;
}

std::optional<HomeChoice> ClusterView::choose(std::uint64_t function, const std::vector<NodeId>& tried) {
  const auto chosen =
      choose_home({.orders = orders_, .members = members_, .loads = loads_}, function, kGpuClass, settings_.choice);
  const auto was_tried = [&](NodeId node) { return std::find(tried.begin(), tried.end(), node) != tried.end(); };
  if (!chosen || !was_tried(chosen->node)) return chosen;
  // Whoever is next in the order and takes calls; the bound is for those who have a choice.
  for (std::size_t place = 0;; ++place) {
    const auto node = orders_.at(function, kGpuClass, place);
    if (!node) return std::nullopt;
    if (!was_tried(*node) && members_.takes_calls(*node)) return HomeChoice{*node, HomeReason::kOverflow, place};
  }
}

}  // namespace fairlead
