#include "net/grpc/grpc_connection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "net/grpc/grpc_test_server.h"

namespace fairlead::net {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class GrpcConnectionTest : public GrpcServerTest {};

TEST_F(GrpcConnectionTest, CallsOfOneConnectionAreAnsweredInAnyOrder) {
  serve();
  GrpcTestClient client(io_, address_);
  const int first = client.begin("/hold/1", framed("1")), second = client.begin("/hold/2", framed("2"));
  ASSERT_TRUE(wait_held(client, 2));
  release("/hold/2", "two");
  EXPECT_EQ(client.wait(second).body, framed("two"));
  EXPECT_FALSE(client.call(first).is_closed);
  release("/hold/1", "one");
  EXPECT_EQ(client.wait(first).body, framed("one"));
  EXPECT_THAT(disconnected_, ElementsAre());
}

TEST_F(GrpcConnectionTest, WhoCancelsIsToldOf) {
  serve();
  GrpcTestClient client(io_, address_);
  const int first = client.begin("/hold/1", framed("1"));
  const int second = client.begin("/hold/2", framed("2"));
  ASSERT_TRUE(wait_held(client, 2));
  client.cancel(first);
  ASSERT_TRUE(run_until(io_, [&] { return disconnected_.size() == 1; }));
  EXPECT_THAT(disconnected_, ElementsAre("/hold/1"));
  release("/hold/1", "nobody wants it");
  release("/hold/2", "two");
  EXPECT_EQ(client.wait(second).body, framed("two"));
}

TEST_F(GrpcConnectionTest, WhoDisconnectsIsToldOf) {
  serve();
  GrpcTestClient client(io_, address_);
  client.begin("/hold/1", framed("1"));
  client.begin("/hold/2", framed("2"));
  ASSERT_TRUE(wait_held(client, 2));
  client.close();
  ASSERT_TRUE(run_until(io_, [&] { return disconnected_.size() == 2; }));
  EXPECT_EQ(server_->connections(), 0u);
  release("/hold/1", "nobody wants it");
}

TEST_F(GrpcConnectionTest, BetweenCallsOthersHaveTheirTurns) {
  serve({.calls_per_turn = 2});
  GrpcTestClient client(io_, address_);
  std::vector<int> ids = {client.begin("/first", framed(""))};
  for (int i = 0; i < 50; ++i) ids.push_back(client.begin("/p.S/M", framed(std::to_string(i))));
  for (int i = 0; i < 50; ++i) EXPECT_THAT(client.wait(ids[i + 1]).body, HasSubstr("localhost " + std::to_string(i)));
  const auto other = std::ranges::find(targets_, "somebody else");
  EXPECT_LT(other - targets_.begin(), 20) << "calls of 51 that came at once";
}

// What is refused is answered, too: who takes no answers makes no more of them.
TEST_F(GrpcConnectionTest, WhoTakesNoAnswersIsNotRead) {
  serve({.calls = 1});
  const auto frame = [](char kind, char flags, std::uint32_t stream, std::string_view payload) {
    std::string bytes(9, '\0');
    bytes[2] = static_cast<char>(payload.size());
    bytes[3] = kind;
    bytes[4] = flags;
    for (int i = 0; i < 4; ++i) bytes[5 + i] = static_cast<char>(stream >> (24 - 8 * i));
    return bytes.append(payload);
  };
  const auto literal = [](std::string_view name, std::string_view value) {
    std::string field(1, '\0');
    (field += static_cast<char>(name.size())) += name;
    return (field += static_cast<char>(value.size())).append(value);
  };
  const std::string head = literal(":method", "POST") + literal(":scheme", "http") + literal(":path", "/hold/x") +
                           literal(":authority", "a") + literal("content-type", "application/grpc");
  const auto target = parse_socket_address(address_);
  const int fd = ::socket(target->family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int small = 4096;
  ::setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
  ASSERT_EQ(0, ::connect(fd, reinterpret_cast<const sockaddr*>(target->storage), target->size));
  std::string bytes = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, 0, "");
  // Of all but the first no more is taken than that there may be one: a stream that is refused costs the server an answer.
  std::size_t sent = 0;
  for (std::uint32_t stream = 1; sent < (64 << 20); stream += 2) {
    bytes += frame(1, 4, stream, head);
    if (bytes.size() < (64 << 10)) continue;
    std::string_view rest = bytes;
    int stalls = 0;
    while (!rest.empty() && stalls < 200) {
      const ssize_t count = ::send(fd, rest.data(), rest.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      if (count > 0) {
        rest.remove_prefix(static_cast<std::size_t>(count));
        sent += static_cast<std::size_t>(count);
        stalls = 0;
      } else {
        ++stalls;
      }
      io_.restart();
      io_.poll();
    }
    if (!rest.empty()) break;
    bytes.clear();
  }
  EXPECT_LT(sent, std::size_t{32} << 20) << "the server goes on reading";
  ::close(fd);
  turn_until_gone();
}

TEST_F(GrpcConnectionTest, MoreCallsThanMayBeWait) {
  serve({.calls = 2});
  GrpcTestClient client(io_, address_);
  turn(client);  // the settings of the server arrive
  std::vector<int> ids;
  for (int i = 0; i < 4; ++i) ids.push_back(client.begin(fmt::format("/hold/{}", i), framed("")));
  ASSERT_TRUE(wait_held(client, 2));
  turn(client);
  EXPECT_EQ(held_.size(), 2u);
  release("/hold/0", "");
  release("/hold/1", "");
  ASSERT_TRUE(wait_held(client, 2));
  EXPECT_TRUE(held_.contains("/hold/3"));
}

TEST_F(GrpcConnectionTest, IdleConnectionsEnd) {
  serve({.idle_timeout = std::chrono::milliseconds(50)});
  GrpcTestClient client(io_, address_);
  EXPECT_EQ(client.wait(client.begin("/p.S/M", framed(""))).status(), "0");
  ASSERT_TRUE(run_until(io_, [&] {
    client.turn();
    return client.has_ended();
  }));
  EXPECT_TRUE(client.is_told_to_leave());
  EXPECT_EQ(server_->connections(), 0u);
}

// Opening and cancelling calls costs who does it their connection, and the server nothing that lasts.
TEST_F(GrpcConnectionTest, WhoCancelsAllTheTimeIsCutOff) {
  serve();
  GrpcTestClient client(io_, address_);
  for (int i = 0; i < 5'000 && !client.has_ended(); ++i) {
    client.cancel(client.begin("/hold/x", framed("")));
    if (i % 50 == 0) turn(client);
  }
  ASSERT_TRUE(run_until(io_, [&] {
    client.turn();
    return client.has_ended();
  }));
  EXPECT_EQ(server_->connections(), 0u);
}

}  // namespace
}  // namespace fairlead::net
