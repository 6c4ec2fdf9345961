// Egress: where a function's own connections may lead, beside the node. A list says it; the operator gives each tenant one as a
// bound, and a function asks for a part of it with a tag.
//
//   none                   nothing
//   all                    every public address
//   pypi.org               this host, whatever public address it has
//   *.example.com          every host below example.com
//   10.1.0.0/16, fd00::/8  these addresses, also where they are private
//   ...:443, [fd00::1]:443 that TCP port alone; without it every port
//
// Example: serve --egress vision=all,10.1.0.0/16:5432
//   of tenant vision   gpu:egress = "pypi.org:443 10.1.2.3:5432"   given
//   of tenant vision   gpu:egress = "10.1.2.3"                     refused: every port of it is more than 5432
//   of tenant shop     gpu:egress = "pypi.org"                     refused: the operator gave it nothing
//
// Whatever a list says, some addresses are nobody's (is_never_reached): the node itself, and those at which clouds tell machines
// their secrets. Pure; thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/ip_address.h"

namespace fairlead {

inline constexpr const char* kEgressTag = "gpu:egress";
inline constexpr std::size_t kMaxEgressEntries = 64;
inline constexpr std::size_t kMaxEgressText = 4096;  // bytes

// Loopback, link-local, multicast and addresses of no host; what clouds have at 169.254.169.254, 168.63.129.16, 100.100.100.200,
// fd00:ec2::254 and fd20:ce::254. The node's other addresses are known only when a connection is made (runtime/egress).
bool is_never_reached(const IpAddress& address);

struct EgressEntry {
  enum class Kind { kAll, kName, kBelow, kBlock };
  Kind kind = Kind::kAll;
  std::string name = {};    // kName; kBelow: "example.com" of "*.example.com". In lower case, without a last dot
  AddressBlock block = {};  // kBlock
  std::uint16_t port = 0;   // 0: every port

  std::string text() const;
  bool has_port(std::uint16_t wanted) const { return port == 0 || port == wanted; }
  bool has_name(std::string_view wanted) const;  // REQUIRES: in lower case, without a last dot
  // Whether everything that `other` allows is allowed by this one.
  bool covers(const EgressEntry& other) const;
  bool operator==(const EgressEntry&) const = default;
};

class EgressList {
 public:
  // Entries with commas or spaces between. kInvalidArgument names the entry, and what it must be.
  static Result<EgressList> parse(std::string_view text);

  bool is_none() const { return entries_.empty(); }
  std::string text() const;  // what parse() reads
  const std::vector<EgressEntry>& entries() const { return entries_; }

  bool has_name(std::string_view name) const;                       // names it, at any port; or has "all"
  bool has_named(std::string_view name, std::uint16_t port) const;  // the same at this port, and "all" does not count
  bool has_block_of(const IpAddress& address, std::uint16_t port) const;
  bool has_all(std::uint16_t port) const;

  // The first entry that no entry of this list covers; nullptr: this list covers `other`.
  const EgressEntry* beyond(const EgressList& other) const;
  bool operator==(const EgressList&) const = default;

 private:
  std::vector<EgressEntry> entries_;
};

// What the operator gives a tenant at most.
struct EgressGrant {
  std::string tenant;
  EgressList list;
  bool operator==(const EgressGrant&) const = default;
};
// TENANT=LIST. kInvalidArgument: what is wrong.
Result<EgressGrant> parse_egress_grant(const std::string& text);

// What a function asked for and its tenant has; both none where it asked for nothing.
struct EgressTerms {
  EgressList asked;
  EgressList granted;
  bool operator==(const EgressTerms&) const = default;
};
// kInvalidArgument names the tag, what is beyond the grant, the grant, and what the operator does.
Result<EgressTerms> egress_of(const std::vector<EgressGrant>& grants, const std::map<std::string, std::string>& tags);

}  // namespace fairlead
