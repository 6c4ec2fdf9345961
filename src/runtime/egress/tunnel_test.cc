#include "runtime/egress/tunnel.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>

namespace fairlead {
namespace {

constexpr Instant kBegin{};

// A tunnel between two pairs of sockets; the test has the outer ends.
struct Ends {
  UniqueFd function, server;
  std::unique_ptr<Tunnel> tunnel;
};

Ends make() {
  int inner[2], outer[2];
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, inner), 0);
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, outer), 0);
  return {UniqueFd(inner[0]), UniqueFd(outer[0]),
          std::make_unique<Tunnel>(UniqueFd(inner[1]), UniqueFd(outer[1]), kBegin)};
}

// As the relay does, until nothing can be done. false: it is over.
bool serve(Tunnel& tunnel, Instant now = kBegin) {
  for (int turn = 0; turn < 1000; ++turn) {
    pollfd ends[] = {{tunnel.client(), tunnel.client_events(), 0}, {tunnel.server(), tunnel.server_events(), 0}};
    if (::poll(ends, 2, 0) == 0) return true;
    if (!tunnel.serve(ends[0].revents, ends[1].revents, now)) return false;
  }
  ADD_FAILURE() << "it is never at rest";
  return false;
}

std::string read_all(int socket) {
  std::array<char, 1 << 20> buffer;
  const ssize_t size = ::recv(socket, buffer.data(), buffer.size(), MSG_DONTWAIT);
  return size > 0 ? std::string(buffer.data(), static_cast<std::size_t>(size)) : size == 0 ? "end" : "nothing";
}

TEST(Tunnel, CarriesBytesBothWays) {
  Ends ends = make();
  ASSERT_EQ(::send(ends.function.get(), "question", 8, 0), 8);
  ASSERT_TRUE(serve(*ends.tunnel));
  EXPECT_EQ(read_all(ends.server.get()), "question");
  ASSERT_EQ(::send(ends.server.get(), "answer", 6, 0), 6);
  ASSERT_TRUE(serve(*ends.tunnel));
  EXPECT_EQ(read_all(ends.function.get()), "answer");
  EXPECT_EQ(read_all(ends.function.get()), "nothing");
}

TEST(Tunnel, AnEndThatHasSaidItsLastIsStillAnswered) {
  Ends ends = make();
  ::send(ends.function.get(), "question", 8, 0);
  ::shutdown(ends.function.get(), SHUT_WR);
  ASSERT_TRUE(serve(*ends.tunnel));
  EXPECT_EQ(read_all(ends.server.get()), "question");
  EXPECT_EQ(read_all(ends.server.get()), "end");
  ::send(ends.server.get(), "answer", 6, 0);
  ends.server.reset();
  EXPECT_FALSE(serve(*ends.tunnel)) << "both have said their last";
  EXPECT_EQ(read_all(ends.function.get()), "answer");
  EXPECT_EQ(read_all(ends.function.get()), "end");
}

TEST(Tunnel, ASlowEndHoldsTheOtherUp) {
  Ends ends = make();
  const std::string much(1 << 20, 'x');
  std::size_t sent = 0;
  for (int turn = 0; turn < 200; ++turn) {
    const ssize_t size = ::send(ends.function.get(), much.data(), much.size(), MSG_DONTWAIT);
    if (size > 0) sent += static_cast<std::size_t>(size);
    ASSERT_TRUE(serve(*ends.tunnel));
  }
  EXPECT_LT(sent, std::size_t{4} << 20) << "two buffers of the kernel's and one of its own";
  std::size_t got = 0;
  for (std::string part = read_all(ends.server.get()); part != "nothing"; part = read_all(ends.server.get())) {
    got += part.size();
    ASSERT_TRUE(serve(*ends.tunnel));
  }
  EXPECT_EQ(got, sent);
}

TEST(Tunnel, WaitsForTheServerAndForTheRestOnlySoLong) {
  Ends ends = make();
  EXPECT_FALSE(ends.tunnel->is_late(kBegin + Tunnel::kConnectPatience));
  EXPECT_TRUE(ends.tunnel->is_late(kBegin + Tunnel::kConnectPatience + Duration(1)));
  ASSERT_TRUE(serve(*ends.tunnel));
  EXPECT_FALSE(ends.tunnel->is_late(kBegin + std::chrono::hours(24))) << "a connection may be silent";
  ::shutdown(ends.function.get(), SHUT_WR);
  ASSERT_TRUE(serve(*ends.tunnel, kBegin));
  EXPECT_TRUE(ends.tunnel->is_late(kBegin + Tunnel::kHalfClosedPatience + Duration(1)));
}

TEST(Tunnel, AnEndThatGoesAwayEndsIt) {
  Ends ends = make();
  ASSERT_TRUE(serve(*ends.tunnel));
  ends.function.reset();
  // A unix socket that was closed is an end in both directions.
  EXPECT_FALSE(serve(*ends.tunnel));
}

}  // namespace
}  // namespace fairlead
