#include "decide/cluster/tenant_clocks.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include "base/check.h"

namespace fairlead {
namespace {

constexpr std::size_t kMostTenants = 10'000;  // names come from others
constexpr std::size_t kMostOfNode = 1'000;
constexpr double kLeastHalf = 1e-3;  // s

double tokens_of(const LoadReport& report) {
  return std::isfinite(report.tokens) ? std::clamp(report.tokens, 0.0, 4096.0) : 0;
}

}  // namespace

void TenantClocks::set_weight(std::uint64_t tenant, double weight) {
  FL_CHECK(weight > 0, "weight is {}, it must be above 0", weight);
  tenants_[tenant].weight = weight;
}

double TenantClocks::plausible(const Seen& seen, Instant now, const LoadReport& report) const {
  return settings_.slack * tokens_of(report) * std::max(0.0, to_seconds(now - seen.at));
}

void TenantClocks::report(Instant now, const LoadReport& report) {
  const auto [found, is_new] = seen_.try_emplace(report.node);
  Seen& seen = found->second;
  if (is_new) seen = {report.incarnation, now, 0, {}};  // its past is not this gateway's to judge
  if (report.incarnation != seen.incarnation) seen = {report.incarnation, seen.at, 0, {}};
  double left = plausible(seen, now, report);
  seen.at = now;
  seen.tokens = tokens_of(report);
  for (auto& [tenant, before] : seen.tenants) before.is_waiting = false;
  for (const TenantService& said : report.tenants) {
    if (tenants_.size() >= kMostTenants && tenants_.count(said.tenant) == 0) continue;
    if (seen.tenants.size() >= kMostOfNode && seen.tenants.count(said.tenant) == 0) continue;
    Said& before = seen.tenants[said.tenant];
    before.is_waiting = said.is_waiting;
    if (!std::isfinite(said.seconds) || said.seconds < before.seconds) {
      before.owed = 0;
      continue;
    }
    if (!is_new) before.owed += said.seconds - before.seconds;
    before.seconds = said.seconds;
    const double added = std::min(left, before.owed);
    before.owed -= added;
    left -= added;
    Tenant& of = tenants_[said.tenant];
    of.clock_s += added / of.weight;
  }
}

void TenantClocks::forget(NodeId node) {
  seen_.erase(node);
}

void TenantClocks::advance() {
  std::set<std::uint64_t> waiting;
  for (const auto& [node, seen] : seen_) {
    for (const auto& [tenant, said] : seen.tenants) {
      if (said.is_waiting) waiting.insert(tenant);
    }
  }
  // Who begins to wait joins at the least clock of those that waited already.
  std::optional<double> least;
  for (const std::uint64_t tenant : waiting) {
    const Tenant& of = tenants_[tenant];
    if (of.waits) least = least ? std::min(*least, of.clock_s) : of.clock_s;
  }
  double sum = 0;
  for (auto& [tenant, of] : tenants_) {
    const bool waits = waiting.count(tenant) > 0;
    if (least && !(of.waits && waits)) of.clock_s = std::max(of.clock_s, *least);
    of.waits = waits;
    if (waits) sum += of.clock_s;
  }
  if (waiting.empty()) return;
  double tokens = 0;
  for (const auto& [node, seen] : seen_) tokens += seen.tokens;
  part_ = tokens / static_cast<double>(waiting.size());
  for (auto& [tenant, of] : tenants_) {
    const double most = least.value_or(of.clock_s) + part_s(settings_.most_lead);
    if (of.waits) sum -= std::max(0.0, of.clock_s - most);
    of.clock_s = std::min(of.clock_s, most);
  }
  mean_s_ = sum / static_cast<double>(waiting.size());
}

double TenantClocks::part_s(Duration time) const {
  return std::max(kLeastHalf, to_seconds(time) * part_);
}

double TenantClocks::lead_s(std::uint64_t tenant) const {
  const auto found = tenants_.find(tenant);
  return found == tenants_.end() ? 0 : found->second.clock_s - mean_s_;
}

double TenantClocks::factor(std::uint64_t tenant) const {
  const auto found = tenants_.find(tenant);
  if (found == tenants_.end() || !found->second.waits) return 1;
  const double factor = std::exp2(-lead_s(tenant) / part_s(settings_.half_lead));
  return std::clamp(factor, 1 / settings_.most_factor, settings_.most_factor);
}

}  // namespace fairlead
