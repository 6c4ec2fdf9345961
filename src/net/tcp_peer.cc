#include "net/tcp_peer.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>

#include <cstring>
#include <sstream>
#include <string>

#include "base/read_file.h"

namespace fairlead::net {
namespace {

constexpr const char* kEstablished = "01";

// As the kernel prints it: words of four bytes in the machine's order, then the port.
std::string in_table(const sockaddr_storage& address) {
  std::string text;
  const auto add_words = [&text](const void* bytes, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      std::uint32_t word = 0;
      std::memcpy(&word, static_cast<const char*>(bytes) + 4 * i, sizeof word);
      text += fmt::format("{:08X}", word);
    }
  };
  std::uint16_t port = 0;
  if (address.ss_family == AF_INET) {
    const auto& ipv4 = reinterpret_cast<const sockaddr_in&>(address);
    add_words(&ipv4.sin_addr, 1);
    port = ntohs(ipv4.sin_port);
  } else {
    const auto& ipv6 = reinterpret_cast<const sockaddr_in6&>(address);
    add_words(&ipv6.sin6_addr, 4);
    port = ntohs(ipv6.sin6_port);
  }
  return fmt::format("{}:{:04X}", text, port);
}

// An IPv4 client of a socket that takes both kinds is in the table of IPv4, under its own address.
sockaddr_storage unmapped(const sockaddr_storage& address) {
  if (address.ss_family != AF_INET6) return address;
  const auto& ipv6 = reinterpret_cast<const sockaddr_in6&>(address);
  if (!IN6_IS_ADDR_V4MAPPED(&ipv6.sin6_addr)) return address;
  sockaddr_storage result{};
  auto& ipv4 = reinterpret_cast<sockaddr_in&>(result);
  ipv4.sin_family = AF_INET;
  ipv4.sin_port = ipv6.sin6_port;
  std::memcpy(&ipv4.sin_addr, ipv6.sin6_addr.s6_addr + 12, 4);
  return result;
}

}  // namespace

std::string address_of_tcp_peer(int socket) {
  sockaddr_storage peer{};
  socklen_t size = sizeof peer;
  if (::getpeername(socket, reinterpret_cast<sockaddr*>(&peer), &size) != 0) return "";
  peer = unmapped(peer);
  char text[INET6_ADDRSTRLEN] = {};
  const void* address = nullptr;
  if (peer.ss_family == AF_INET) address = &reinterpret_cast<const sockaddr_in&>(peer).sin_addr;
  if (peer.ss_family == AF_INET6) address = &reinterpret_cast<const sockaddr_in6&>(peer).sin6_addr;
  if (address == nullptr || ::inet_ntop(peer.ss_family, address, text, sizeof text) == nullptr) return "";
  return text;
}

std::optional<std::uint32_t> uid_in_table(std::string_view table, const sockaddr_storage& peer,
                                          const sockaddr_storage& own) {
  const std::string wanted_own = in_table(peer), wanted_other = in_table(own);
  std::istringstream lines{std::string(table)};
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string number, its_own, its_other, state, queues, timer, retransmits;
    std::uint64_t uid = 0, timeout = 0, inode = 0;
    words >> number >> its_own >> its_other >> state >> queues >> timer >> retransmits >> uid >> timeout >> inode;
    if (!words || its_own != wanted_own || its_other != wanted_other) continue;
    // One that is closed has no owner any more, which looks like root.
    if (state != kEstablished || inode == 0) return std::nullopt;
    return static_cast<std::uint32_t>(uid);
  }
  return std::nullopt;
}

std::optional<std::uint32_t> uid_of_tcp_peer(int socket) {
  sockaddr_storage peer{}, own{};
  socklen_t size = sizeof peer;
  if (::getpeername(socket, reinterpret_cast<sockaddr*>(&peer), &size) != 0) return std::nullopt;
  size = sizeof own;
  if (::getsockname(socket, reinterpret_cast<sockaddr*>(&own), &size) != 0) return std::nullopt;
  if (peer.ss_family != AF_INET && peer.ss_family != AF_INET6) return std::nullopt;
  peer = unmapped(peer);
  own = unmapped(own);
  const char* table = peer.ss_family == AF_INET ? "/proc/self/net/tcp" : "/proc/self/net/tcp6";
  return uid_in_table(read_whole_file(table).value_or(""), peer, own);
}

}  // namespace fairlead::net
