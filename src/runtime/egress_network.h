// The sandbox's end of its way out: a network in which every address is the sandbox's own loopback, and sockets there that a relay
// outside has (egress/egress_relay.h). There is no interface but loopback, so what a function sends by whatever means goes nowhere
// else: the relay's connections are the only way out, and none of what is made here has to hold against the function.
//
//   connect 151.101.0.223:443 ──route: local──> loopback ──nftables: tproxy──> the relay's TCP socket, as 151.101.0.223:443
//   question to 8.8.8.8:53    ──route: local──> loopback ──────────────────> the relay's UDP socket
//
// IPv6 is left out where the machine has none.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"

namespace fairlead {

// Of the calling process's network: TCP sockets, then UDP sockets. Nothing leads to them yet. Not for what functions can reach:
// connections to 127.0.0.1 and ::1 stay the sandbox's own.
struct WayOutSockets {
  std::vector<UniqueFd> connections;
  std::vector<UniqueFd> questions;
};
Result<WayOutSockets> make_way_out_sockets();

// Rules that hand them the connections which arrive at loopback for other addresses; as long as no route leads those there, none
// does. Ahead, because it takes 5 ms and more: it runs nft, whose file is looked for where Debian has it. REQUIRES: the calling
// process has the rights of its network. kUnavailable: nft is missing or refuses; the message says what to install.
Status lay_way_out();
// The routes, which lead everything to loopback. REQUIRES: lay_way_out() has, and loopback is up.
Status open_way_out();

// Why this machine's functions have no way out; "": they may have one. Looks for nft alone.
std::string way_out_obstacle();
// The same by a trial of all of it, in a child process with a network of its own. About 20 ms. REQUIRES: the calling process has one
// thread.
std::string try_way_out();

}  // namespace fairlead
