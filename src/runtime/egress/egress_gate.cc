#include "runtime/egress/egress_gate.h"

#include <algorithm>

namespace fairlead {

bool EgressGate::is_asked(const IpAddress& address, std::uint16_t port, Instant now) const {
  const IpAddress end = behind_translation(address);
  if (terms_.asked.has_block_of(end, port)) return true;
  if (terms_.asked.has_all(port) && is_global(end)) return true;
  for (auto known = known_.lower_bound({address, ""}); known != known_.end() && known->first.first == address;
       ++known) {
    if (known->second > now && terms_.asked.has_named(known->first.second, port)) return true;
  }
  return false;
}

// The tenant's list covers the function's, which the node checks; what is looked at here is the address.
bool EgressGate::is_granted(const IpAddress& address, std::uint16_t port) const {
  const IpAddress end = behind_translation(address);
  return is_global(end) || terms_.granted.has_block_of(end, port);
}

bool EgressGate::is_granted_at_some_port(const IpAddress& address) const {
  const IpAddress end = behind_translation(address);
  if (is_never_reached(address)) return false;
  if (is_global(end)) return true;
  return std::any_of(terms_.granted.entries().begin(), terms_.granted.entries().end(), [&](const EgressEntry& entry) {
    return entry.kind == EgressEntry::Kind::kBlock && entry.block.contains(end);
  });
}

void EgressGate::forget_some(Instant now) {
  std::erase_if(known_, [now](const auto& entry) { return entry.second <= now; });
  while (known_.size() >= kMostRemembered) {
    known_.erase(std::min_element(known_.begin(), known_.end(),
                                  [](const auto& a, const auto& b) { return a.second < b.second; }));
  }
}

std::vector<IpAddress> EgressGate::learn(const std::string& name, const std::vector<IpAddress>& addresses,
                                         Instant now) {
  std::vector<IpAddress> reachable;
  if (!may_resolve(name)) return reachable;
  for (const IpAddress& address : addresses) {
    if (!is_granted_at_some_port(address)) continue;
    reachable.push_back(address);
    if (known_.size() >= kMostRemembered) forget_some(now);
    known_[{address, name}] = now + kRemembered;
  }
  return reachable;
}

std::string EgressGate::refusal(const IpAddress& address, std::uint16_t port, bool is_this_machine, Instant now) const {
  if (is_this_machine || is_never_reached(address)) {
    return "no function reaches the node itself, or a cloud's service for machines";
  }
  if (!is_asked(address, port, now)) {
    return fmt::format("its tag {} does not allow it: {}", kEgressTag, terms_.asked.text());
  }
  if (!is_granted(address, port)) {
    return fmt::format("it is private, and no block of addresses that its tenant may reach has it: {}",
                       terms_.granted.text());
  }
  return "";
}

}  // namespace fairlead
