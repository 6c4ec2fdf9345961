#include "net/tcp_peer.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <bit>

#include "base/unique_fd.h"

namespace fairlead::net {
namespace {

sockaddr_storage at(const char* host, int port) {
  sockaddr_storage address{};
  auto& ipv4 = reinterpret_cast<sockaddr_in&>(address);
  ipv4.sin_family = AF_INET;
  ipv4.sin_port = htons(static_cast<std::uint16_t>(port));
  ::inet_pton(AF_INET, host, &ipv4.sin_addr);
  return address;
}

constexpr const char* kTable =
    "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
    "   0: 0100007F:2329 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 11 1\n"
    "   1: 0100007F:1000 0100007F:2329 01 00000000:00000000 00:00000000 00000000  1001        0 12 1\n"
    "   2: 0100007F:1001 0100007F:2329 05 00000000:00000000 00:00000000 00000000     0        0 0 1\n"
    "   3: 0100007F:1002 0100007F:2329 01 00000000:00000000 00:00000000 00000000     0        0 0 1\n";

TEST(TcpPeer, IsWhoeverHasTheOtherEnd) {
  if constexpr (std::endian::native != std::endian::little) GTEST_SKIP();
  EXPECT_EQ(uid_in_table(kTable, at("127.0.0.1", 0x1000), at("127.0.0.1", 9001)), 1001u);
  EXPECT_FALSE(uid_in_table(kTable, at("127.0.0.1", 0x1000), at("127.0.0.1", 9002))) << "another connection";
  EXPECT_FALSE(uid_in_table(kTable, at("127.0.0.1", 0x1003), at("127.0.0.1", 9001)));
  EXPECT_FALSE(uid_in_table("", at("127.0.0.1", 0x1000), at("127.0.0.1", 9001)));
}

TEST(TcpPeer, WhoHasClosedIsNobodyAndNotRoot) {
  EXPECT_FALSE(uid_in_table(kTable, at("127.0.0.1", 0x1001), at("127.0.0.1", 9001)));
  EXPECT_FALSE(uid_in_table(kTable, at("127.0.0.1", 0x1002), at("127.0.0.1", 9001)));
}

class Pair {
 public:
  explicit Pair(int family) {
    sockaddr_storage address{};
    address.ss_family = static_cast<sa_family_t>(family);
    if (family == AF_INET) address = at("127.0.0.1", 0);
    if (family == AF_INET6) reinterpret_cast<sockaddr_in6&>(address).sin6_addr = in6addr_loopback;
    const UniqueFd listener(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    socklen_t size = sizeof address;
    there =
        ::bind(listener.get(), reinterpret_cast<sockaddr*>(&address), size) == 0 && ::listen(listener.get(), 1) == 0;
    ::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &size);
    client.reset(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    there = there && ::connect(client.get(), reinterpret_cast<sockaddr*>(&address), size) == 0;
    server.reset(::accept(listener.get(), nullptr, nullptr));
  }
  UniqueFd client, server;
  bool there = false;
};

TEST(TcpPeer, TheKernelKnowsIt) {
  for (const int family : {AF_INET, AF_INET6}) {
    Pair pair(family);
    if (!pair.there) continue;  // no IPv6 here
    EXPECT_EQ(uid_of_tcp_peer(pair.server.get()), ::geteuid());
    pair.client.reset();
    EXPECT_FALSE(uid_of_tcp_peer(pair.server.get())) << "closed";
  }
}

}  // namespace
}  // namespace fairlead::net
