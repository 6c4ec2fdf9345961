// Carries a function's connections out of its sandbox. The sockets that it listens at are in the sandbox's network, where every
// address leads to them (runtime/egress_network.h); the connections that it makes are in the network of this process.
//
//   function ──connect 151.101.0.223:443──> [sandbox's loopback] relay ──gate: may it?──> connect 151.101.0.223:443
//
// The address is what the function's socket was connected to, so what was looked at is what is connected to. One that is refused
// sees its connection reset, and the function's log says why. TCP and look-ups of names alone: no other UDP, no ICMP.
//
// Bounds: kMostConnections at a time, further ones wait; two buffers of 32 KiB for each; 64 look-ups, 4 at a time. Bandwidth has
// none but the processor time of the sandbox's control group.
#pragma once

#include <list>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "model/egress_list.h"
#include "runtime/egress/egress_gate.h"
#include "runtime/egress/machine_routes.h"
#include "runtime/egress/name_service.h"
#include "runtime/egress/tunnel.h"

struct pollfd;

namespace fairlead {

struct EgressSockets {
  // TCP, listening, do not block; getsockname() of what they accept is where it should lead.
  std::vector<UniqueFd> connections;
  std::vector<UniqueFd> questions;  // UDP, as NameService has them
};

struct EgressRelayOptions {
  EgressTerms terms;
  EgressSockets sockets;
  int log = -1;  // where refusals are said, a line each; stays the caller's
  LookUpName look_up = look_up_as_this_machine;
};

class EgressRelay {
 public:
  static constexpr std::size_t kMostConnections = 128;
  static constexpr std::size_t kMostSaid = 32;  // refusals in the log; the same one is said once

  // kIo, kUnavailable: what of the machine is missing.
  static Result<std::unique_ptr<EgressRelay>> create(EgressRelayOptions options);

  // Serves until `stop` can be read, or has no other end; -1: for ever.
  void run(int stop = -1);

 private:
  EgressRelay(EgressRelayOptions options, MachineRoutes routes);

  void accept_at(int listener, Instant now);
  void connect_on(UniqueFd client, Instant now);
  void serve_tunnels(const std::vector<pollfd>& ready, std::size_t first, Instant now);
  void say_refusal(const std::string& where, const std::string& why);

  const std::vector<UniqueFd> listeners_;
  const int log_;
  EgressGate gate_;
  MachineRoutes routes_;
  NameService names_;
  std::list<Tunnel> tunnels_;
  std::set<std::string> said_;
};

}  // namespace fairlead
