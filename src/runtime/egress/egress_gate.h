// Decides which connections of a function may be made. Three questions, all of which must be answered with yes:
//   1. is the address one that somebody may reach at all? Not this machine's, not a cloud's for its machines (is_never_reached)
//   2. does the function's list allow it?  by a block; by "all", if it is public; by a name that had this address lately
//   3. does its tenant's list, too? A name does not make a private address reachable: a block of the tenant's must hold it
//
// Names: the gate is told what a name's addresses are, and remembers them for kRemembered. So a name counts as what the node found it
// to be, whatever the function says it is, and one that changes to 10.0.0.1 (DNS rebinding) leads nowhere.
//
//   asked pypi.org, granted all:   pypi.org has 151.101.0.223 ──> :443 allowed for ten minutes
//                                  pypi.org has 10.0.0.1      ──> refused, and not even told
// Two names with one address are one place: who may connect to the first may ask there for the second.
//
// Pure: no clock, no IO. Not thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/units.h"
#include "model/egress_list.h"

namespace fairlead {

class EgressGate {
 public:
  static constexpr Duration kRemembered = std::chrono::minutes(10);
  static constexpr std::size_t kMostRemembered = 4096;  // pairs of a name and an address

  explicit EgressGate(EgressTerms terms) : terms_(std::move(terms)) {}

  // Whether the function may learn what addresses it has. REQUIRES: in lower case, without a last dot
  bool may_resolve(std::string_view name) const { return terms_.asked.has_name(name); }
  // Of a name's addresses those that the function may reach at some port. They are remembered from now on.
  std::vector<IpAddress> learn(const std::string& name, const std::vector<IpAddress>& addresses, Instant now);

  // Why a connection may not be made; "": it may.
  std::string refusal(const IpAddress& address, std::uint16_t port, bool is_this_machine, Instant now) const;

 private:
  bool is_asked(const IpAddress& address, std::uint16_t port, Instant now) const;
  bool is_granted(const IpAddress& address, std::uint16_t port) const;
  bool is_granted_at_some_port(const IpAddress& address) const;
  void forget_some(Instant now);

  const EgressTerms terms_;
  std::map<std::pair<IpAddress, std::string>, Instant> known_;  // until when
};

}  // namespace fairlead
