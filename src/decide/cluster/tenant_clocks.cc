#include "decide/cluster/tenant_clocks.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace fairlead {
namespace {

constexpr std::size_t kMostTenants = 10'000;  // names come from others
constexpr std::size_t kMostOfNode = 1'000;
constexpr double kLeastHalf = 1e-3;      // s
constexpr double kForgottenLead = 1e-6;  // s

double tokens_of(const LoadReport& report) {
  return std::isfinite(report.tokens) ? std::clamp(report.tokens, 0.0, 4096.0) : 0;
}

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

}  // namespace

void TenantClocks::set_weight(std::uint64_t tenant, double weight) {
  FL_CHECK(weight > 0, "weight is {}, it must be above 0", weight);
  weights_[tenant] = weight;
}

double TenantClocks::weight(std::uint64_t tenant) const {
  const auto found = weights_.find(tenant);
  return found == weights_.end() ? 1 : found->second;
}

double TenantClocks::plausible(const Seen& seen, Instant now, const LoadReport& report) const {
  return settings_.slack * tokens_of(report) * std::max(0.0, to_seconds(now - seen.at));
}

void TenantClocks::report(Instant now, const LoadReport& report) {
  const auto [found, is_first] = seen_.try_emplace(report.node);
  Seen& seen = found->second;
  if (is_first) seen = {.incarnation = report.incarnation, .at = now, .tenants = {}};
  if (report.incarnation != seen.incarnation) seen = {.incarnation = report.incarnation, .at = seen.at, .tenants = {}};
  const double most = plausible(seen, now, report);
  seen.at = now;
  seen.tokens = tokens_of(report);
  take(seen, report, is_first);
  double owed = 0;
  for (const auto& [tenant, said] : seen.tenants) owed += said.owed;
  if (!(owed > 0)) return;
  // All that it claims is served at the same pace, whatever the order of the names.
  const double paid = std::min(1.0, most / owed);
  for (auto& [tenant, said] : seen.tenants) {
    if (!(said.owed > 0) || (tenants_.size() >= kMostTenants && tenants_.count(tenant) == 0)) continue;
    tenants_[tenant].clock_s += said.owed * paid / weight(tenant);
    said.owed -= said.owed * paid;
  }
}

// What a node served before its first report is not this gateway's to judge. Nor is what a tenant was served before a report had room for it.
void TenantClocks::take(Seen& seen, const LoadReport& report, bool is_first) {
  const bool has_room = report.tenants.size() < kMostTenantsSaid;
  const double most_owed = seen.tokens * to_seconds(settings_.most_owed);
  for (auto& [tenant, said] : seen.tenants) said.is_waiting = false;
  if (seen.tenants.size() + report.tenants.size() > kMostOfNode) {
    std::set<std::uint64_t> named;
    for (const TenantService& word : report.tenants) named.insert(word.tenant);
    const auto is_out = [&](const auto& known) { return named.count(known.first) == 0; };
    if (std::erase_if(seen.tenants, is_out) > 0) seen.has_forgotten = true;
  }
  for (const TenantService& word : report.tenants) {
    if (seen.tenants.size() >= kMostOfNode && seen.tenants.count(word.tenant) == 0) continue;
    const auto [found, is_new] = seen.tenants.try_emplace(word.tenant);
    Said& said = found->second;
    said.is_waiting = word.is_waiting;
    if (!std::isfinite(word.seconds) || word.seconds < said.seconds) {
      said.owed = 0;
      continue;
    }
    const bool is_past = is_first || (is_new && (!has_room || seen.has_forgotten));
    if (!is_past) said.owed = std::min(most_owed, said.owed + word.seconds - said.seconds);
    said.seconds = word.seconds;
  }
}

void TenantClocks::forget(NodeId node) {
  seen_.erase(node);
}

std::set<std::uint64_t> TenantClocks::waiting_anywhere() const {
  std::set<std::uint64_t> waiting;
  for (const auto& [node, seen] : seen_) {
    for (const auto& [tenant, said] : seen.tenants) {
      if (said.is_waiting && waiting.size() < kMostTenants) waiting.insert(tenant);
    }
  }
  return waiting;
}

std::map<std::uint64_t, double> TenantClocks::joining() const {
  std::map<std::uint64_t, double> joins;
  const auto waited = [this](std::uint64_t tenant) {
    const auto found = tenants_.find(tenant);
    return found != tenants_.end() && found->second.waits;
  };
  for (const auto& [node, seen] : seen_) {
    std::optional<double> least;
    for (const auto& [tenant, said] : seen.tenants) {
      if (!said.is_waiting || !waited(tenant)) continue;
      const double clock = tenants_.at(tenant).clock_s;
      least = least ? std::min(*least, clock) : clock;
    }
    if (!least) continue;
    for (const auto& [tenant, said] : seen.tenants) {
      if (!said.is_waiting || waited(tenant)) continue;
      const auto [at, is_new] = joins.try_emplace(tenant, *least);
      at->second = std::min(at->second, *least);
    }
  }
  return joins;
}

void TenantClocks::advance(Instant now) {
  const Duration since = advanced_at_ ? std::max(Duration(0), now - *advanced_at_) : Duration(0);
  advanced_at_ = now;
  const double kept = std::exp(-to_seconds(since) / to_seconds(settings_.memory));
  std::set<std::uint64_t> waiting = waiting_anywhere();
  const std::map<std::uint64_t, double> joins = joining();
  for (const std::uint64_t tenant : waiting) tenants_[tenant].seen_waiting = now;
  for (const auto& [tenant, of] : tenants_) {
    if (of.seen_waiting && now - *of.seen_waiting < settings_.hold) waiting.insert(tenant);
  }
  // Idle tenants move with the least clock of those that waited already. Where nobody did, nobody is ahead.
  std::optional<double> least;
  double weights = 0;
  for (const std::uint64_t tenant : waiting) {
    const Tenant& of = tenants_[tenant];
    weights += weight(tenant);
    if (of.waits) least = least ? std::min(*least, of.clock_s) : of.clock_s;
  }
  if (!least) {
    for (auto& [node, seen] : seen_) {
      for (auto& [tenant, said] : seen.tenants) said.owed = 0;
    }
  }
  for (const auto& [tenant, clock] : joins) tenants_[tenant].clock_s = std::max(tenants_[tenant].clock_s, clock);
  for (auto& [tenant, of] : tenants_) {
    of.clock_s = least ? std::max(0.0, of.clock_s - *least) * kept : 0;
    of.waits = waiting.count(tenant) > 0;
  }
  std::erase_if(tenants_, [](const auto& one) { return !one.second.waits && one.second.clock_s < kForgottenLead; });
  if (waiting.empty()) return;
  double tokens = 0;
  for (const auto& [node, seen] : seen_) tokens += seen.tokens;
  part_ = tokens / weights;
}

double TenantClocks::part_s(Duration time) const {
  return std::max(kLeastHalf, to_seconds(time) * part_);
}

double TenantClocks::middle_s(const TenantKeys& among) const {
  std::vector<double> clocks;
  for (const std::uint64_t one : among) {
    const auto of = tenants_.find(one);
    if (of != tenants_.end() && of->second.waits) clocks.push_back(of->second.clock_s);
  }
  if (!clocks.empty()) return median(std::move(clocks));
  for (const auto& [tenant, of] : tenants_) {
    if (of.waits) clocks.push_back(of.clock_s);
  }
  return median(std::move(clocks));
}

double TenantClocks::lead_s(std::uint64_t tenant, double middle_s) const {
  const auto found = tenants_.find(tenant);
  if (found == tenants_.end()) return 0;
  const double lead = found->second.clock_s - middle_s;
  return found->second.waits ? lead : std::max(0.0, lead);
}

double TenantClocks::factor(std::uint64_t tenant, double middle_s) const {
  const double factor = std::exp2(-lead_s(tenant, middle_s) / part_s(settings_.half_lead));
  return std::clamp(factor, 1 / settings_.most_factor, settings_.most_factor);
}

}  // namespace fairlead
