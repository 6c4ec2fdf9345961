// Which image registries a node may speak with. An image's reference comes from whoever may deploy; without rules a node would
// send requests for them to services that only it can reach.
//
//   public            any host, over TLS at port 443, all of whose addresses are global
//   ghcr.io           this host at port 443, wherever it is
//   localhost:5000    this host at that port
//   *.example.com     every host below example.com at port 443
//   none              no registry
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace fairlead {

inline constexpr std::uint16_t kHttpsPort = 443;

struct HostPort {
  std::string host;  // lower case, an IPv6 address without its brackets
  std::uint16_t port = kHttpsPort;
  bool operator==(const HostPort&) const = default;
};
// "ghcr.io", "localhost:5000", "[::1]:443". Port 0: what stands there is none.
HostPort split_host_port(std::string_view text);

// The registry of "localhost:5000/team/app", "ubuntu", "team/app": the first component where it has a dot or a port, or is
// localhost; else docker.io.
std::string registry_of(std::string_view repository);

// Whether an address is one of the public internet: not private, loopback, link-local, shared (RFC 6598), for documentation,
// multicast or reserved, nor an IPv6 form of such an IPv4 address. Source: IANA's special-purpose address registries.
bool is_global(const sockaddr& address);

class RegistryRules {
 public:
  // kInvalidArgument names the entry.
  static Result<RegistryRules> parse(const std::vector<std::string>& entries);
  static RegistryRules everything_public();

  // By its name alone. What is refused here is refused whatever its addresses are.
  bool allows(const HostPort& target) const;
  // The same, where all addresses of the host are known.
  bool needs_global_addresses(const HostPort& target) const { return !names(target); }
  // What an operator does to allow it.
  static std::string advice(const HostPort& target);

 private:
  bool names(const HostPort& target) const;  // the operator did

  bool is_public_ = false;
  std::vector<HostPort> hosts_;  // "*.example.com" too
};

}  // namespace fairlead
