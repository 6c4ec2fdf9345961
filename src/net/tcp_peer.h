// Whose process is at the other end of a TCP connection of this machine.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <sys/socket.h>

namespace fairlead::net {

// The user of the socket that the connection `socket` leads to, as the kernel's table of connections (/proc/net/tcp, tcp6) has
// it. Empty: it is not on this machine, in another network namespace, or being closed, when the kernel knows no user any more.
// Reads a line for each connection of the machine.
std::optional<std::uint32_t> uid_of_tcp_peer(int socket);

// The address of that end, without its port: "10.0.0.7", "2001:db8::1"; an IPv4 address that came over IPv6 is one of IPv4. Empty: it
// has none (a Unix socket), or is gone.
std::string address_of_tcp_peer(int socket);

// uid_of_tcp_peer() of a table's text, for tests: the line whose own address is `peer` and whose other one is `own`.
std::optional<std::uint32_t> uid_in_table(std::string_view table, const sockaddr_storage& peer,
                                          const sockaddr_storage& own);

}  // namespace fairlead::net
