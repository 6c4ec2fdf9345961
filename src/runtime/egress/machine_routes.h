// Asks the kernel where a packet from this machine to an address would go. The kernel's answer counts addresses that an interface
// has since a moment ago, and every other way in which an address can be this machine's.
//
// Not thread-safe.
#pragma once

#include "base/result.h"
#include "base/unique_fd.h"
#include "model/ip_address.h"

namespace fairlead {

enum class RouteKind { kElsewhere, kThisMachine, kNone };

class MachineRoutes {
 public:
  // Of the network in which the calling process is. kIo: the kernel has no routing socket.
  static Result<MachineRoutes> open();

  // kNone also where the kernel does not say; nothing is sent.
  RouteKind to(const IpAddress& address);

 private:
  explicit MachineRoutes(UniqueFd socket) : socket_(std::move(socket)) {}

  UniqueFd socket_;
  unsigned sequence_ = 0;
};

}  // namespace fairlead
