#include "net/grpc/grpc_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "net/grpc/grpc_test_server.h"

namespace fairlead::net {
namespace {

using ::testing::ElementsAre;

TEST_F(GrpcServerTest, WhoIsIdleForLongestMakesRoom) {
  serve({.connections = 2});
  GrpcTestClient busy(io_, address_), idle(io_, address_);
  const int held = busy.begin("/hold/1", framed(""));
  ASSERT_TRUE(wait_held(busy, 1));
  ASSERT_EQ(idle.wait(idle.begin("/p.S/M", framed(""))).status(), "0");
  GrpcTestClient third(io_, address_);
  EXPECT_EQ(third.wait(third.begin("/p.S/M", framed(""))).status(), "0");
  idle.turn();
  EXPECT_TRUE(idle.has_ended());
  release("/hold/1", "x");
  EXPECT_EQ(busy.wait(held).body, framed("x"));
  EXPECT_EQ(server_->connections(), 2u);
}

TEST_F(GrpcServerTest, WhoIsInEndsInPeaceWhenTheServerGoes) {
  serve();
  GrpcTestClient client(io_, address_);
  const int held = client.begin("/hold/1", framed(""));
  ASSERT_TRUE(wait_held(client, 1));
  server_->stop_listening();
  ASSERT_TRUE(run_until(io_, [&] {
    client.turn();
    return client.is_told_to_leave();
  }));
  release("/hold/1", "x");
  EXPECT_EQ(client.wait(held).body, framed("x"));
  ASSERT_TRUE(run_until(io_, [&] {
    client.turn();
    return client.has_ended();
  }));
  EXPECT_EQ(server_->connections(), 0u);
}

TEST_F(GrpcServerTest, AnExchangeMayOutliveTheServer) {
  serve();
  GrpcTestClient client(io_, address_);
  client.begin("/hold/1", framed(""));
  ASSERT_TRUE(wait_held(client, 1));
  server_.reset();
  turn(client);
  EXPECT_TRUE(client.has_ended());
  release("/hold/1", "x");
  EXPECT_THAT(disconnected_, ElementsAre());
}

}  // namespace
}  // namespace fairlead::net
