// The only way out of a jail: an HTTP proxy (CONNECT, and GET with a whole URL for registries without TLS) whose listening
// socket is in the jail's network and which is itself in the host's. It resolves the name, asks the rules, looks at every address
// and connects to one of those that it looked at: a name that means something else a moment later (DNS rebinding) and a redirect
// to a forbidden place come to nothing. What it refuses it says in the answer's first line, which clients show.
//
//   CONNECT ghcr.io:443 HTTP/1.1   ─> 200, then bytes both ways
//   CONNECT 169.254.169.254:443    ─> 403 169.254.169.254 has the address 169.254.169.254, which is not public; ...
//
// It is a process of its own, without rights: the one inside may say anything to it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "model/registry_rules.h"

namespace fairlead {

struct EgressOptions {
  RegistryRules rules;
  UniqueFd proxy;                // listens in the jail
  UniqueFd registry_listener;    // listens in the jail at the registry's port; or none
  HostPort registry;             // where its connections lead
  std::uint64_t most_bytes = 0;  // into the jail, on all connections together; 0: no limit
  std::string upstream;          // "http://[USER:PASSWORD@]HOST:PORT" of the host's own proxy; "": none
};

// Answers until it is killed. A thread for each connection, 32 at most.
[[noreturn]] void run_egress_proxy(EgressOptions options);

// What a request wants: the text up to the first empty line. For tests.
struct ProxyRequest {
  HostPort target;
  bool is_tunnel = false;  // CONNECT; else the request itself goes on to the target
};
Result<ProxyRequest> parse_proxy_request(std::string_view head);

// The host's own proxy, as HTTPS_PROXY says it: "http://USER:P%40SS@proxy:3128", or without any of these parts. Port 80 unless
// stated. kInvalidArgument, kUnavailable: another scheme; the error has no credential. For tests.
struct UpstreamProxy {
  HostPort address;
  std::string userinfo;  // decoded; empty: none
};
Result<UpstreamProxy> parse_upstream_proxy(std::string_view url);

}  // namespace fairlead
