// Listening sockets from textual addresses.
#pragma once

#include <sys/socket.h>

#include <string>
#include <string_view>

#include "base/result.h"

namespace fairlead::net {

struct ListeningSocket {
  int fd = -1;            // non-blocking, close-on-exec; the caller's
  std::string address;    // as bound, port 0 replaced
  std::string unix_path;  // to unlink when done; empty for TCP
};

// "127.0.0.1:9001", "[::1]:0", "unix:/path". A Unix socket left behind by a dead process is replaced; one that somebody
// still serves is kConflict.
Result<ListeningSocket> open_listener(std::string_view address);

bool is_local(const sockaddr_storage& address);  // a Unix socket, or a loopback address
bool is_local(std::string_view address);         // of the same text; false: it is none

// Whether "HOST" or "HOST:PORT" is localhost or a loopback address, by what the address is and not by how it begins:
// 127.0.0.1.example.com is somebody else's.
bool is_loopback_host(std::string_view host);

// A socket address from the same text, for clients.
struct SocketAddress {
  alignas(8) char storage[128] = {};
  unsigned size = 0;
  int family = 0;
};
Result<SocketAddress> parse_socket_address(std::string_view address);
// The first address of a host's name. Blocks. kUnavailable: the resolver's reason.
Result<SocketAddress> resolve_host(const std::string& host, const std::string& port);

}  // namespace fairlead::net
