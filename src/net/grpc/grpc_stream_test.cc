#include "net/grpc/grpc_stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/byte_budget.h"
#include "net/grpc/grpc_test_server.h"

namespace fairlead::net {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class GrpcStreamTest : public GrpcServerTest {};

TEST_F(GrpcStreamTest, ACallIsAnExchange) {
  serve();
  GrpcTestClient client(io_, address_);
  const auto& call = client.wait(client.begin("/p.S/M", framed("abc"), {{"x-test", "value"}}));
  EXPECT_EQ(call.status(), "0");
  EXPECT_EQ(call.body, framed("POST /p.S/M [value] localhost abc"));
  EXPECT_EQ(call.fields.at(":status"), "200");
  EXPECT_THAT(call.fields.at("content-type"), StartsWith("application/grpc"));
  EXPECT_EQ(call.fields.at("x-request-id"), "r 1  x: y") << "no answer adds fields of its own";
}

TEST_F(GrpcStreamTest, AnAnswerOfAnotherStatusIsAStatusOfGrpc) {
  serve();
  GrpcTestClient client(io_, address_);
  const std::pair<const char*, const char*> statuses[] = {{"400", "3"},  {"401", "16"}, {"403", "7"},  {"404", "5"},
                                                          {"409", "9"},  {"413", "8"},  {"415", "12"}, {"429", "8"},
                                                          {"500", "13"}, {"503", "14"}, {"504", "4"}};
  for (const auto& [http, grpc] : statuses) {
    const auto& call = client.wait(client.begin(std::string("/status/") + http, framed("")));
    EXPECT_EQ(call.status(), grpc) << http;
    EXPECT_EQ(call.message(), "it is 5 %25 off%0A");
    EXPECT_EQ(call.body, "");
  }
  const auto& unknown = client.wait(client.begin("/unknown", framed("")));
  EXPECT_EQ(unknown.status(), "12");
  const auto& dropped = client.wait(client.begin("/drop", framed("")));
  EXPECT_EQ(dropped.status(), "13");
}

TEST_F(GrpcStreamTest, LargeMessagesAndAnswersComeWhole) {
  serve();
  GrpcTestClient client(io_, address_);
  std::string large;
  for (int i = 0; i < 200'000; ++i) large += std::to_string(i);
  const auto& call = client.wait(client.begin("/p.S/M", framed(large)));
  EXPECT_EQ(call.status(), "0");
  EXPECT_EQ(call.body, framed("POST /p.S/M [] localhost " + large));
}

TEST_F(GrpcStreamTest, AMessageThatLiesIsRefusedBeforeItIsThere) {
  serve({.message_bytes = 1000});
  GrpcTestClient client(io_, address_);
  const auto refused = [&](std::string bytes, bool stays_open = false) {
    return client.wait(client.begin("/p.S/M", std::move(bytes), {}, stays_open));
  };
  const auto large = refused(grpc_prefix(1001), true);
  EXPECT_EQ(large.status(), "8");
  EXPECT_EQ(large.message(), "the message has 1001 bytes; it may have at most 1000");
  EXPECT_EQ(large.reset, 0u) << "NO_ERROR: the rest need not be sent";
  EXPECT_EQ(refused(std::string("\1\0\0\0\1x", 6)).status(), "12") << "compressed";
  EXPECT_EQ(refused(framed("a") + framed("b")).status(), "12");
  EXPECT_EQ(refused(grpc_prefix(3) + "ab").message(), "the message ends after 2 of its 3 bytes");
  EXPECT_EQ(refused("").message(), "there is no message: 0 of the 5 bytes before it arrived");
  EXPECT_EQ(refused(framed("ok")).status(), "0");
  EXPECT_THAT(targets_, ElementsAre("/p.S/M"));
}

TEST_F(GrpcStreamTest, WhatIsNoGrpcIsRefused) {
  serve({.header_bytes = 1000});
  GrpcTestClient client(io_, address_);
  EXPECT_EQ(client.wait(client.begin("/p.S/M", framed(""), {}, false, "GET")).status(), "12");
  EXPECT_EQ(client.wait(client.begin("/p.S/M", framed(""), {}, false, "POST", "application/json")).status(), "12");
  const auto& large = client.wait(client.begin("/p.S/M", framed(""), {{"x-large", std::string(1000, 'x')}}));
  EXPECT_EQ(large.status(), "8");
  EXPECT_THAT(large.message(), HasSubstr("1000 bytes"));
  EXPECT_THAT(targets_, ElementsAre());

  TestClient plain(io_, address_);
  plain.send("GET /v2 HTTP/1.1\r\nHost: x\r\n\r\n");
  const std::string answer = plain.receive();
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 400 "));
  EXPECT_THAT(answer, HasSubstr("gRPC (HTTP/2) is spoken at this address"));
}

TEST_F(GrpcStreamTest, MetadataCountsAsTheCallDoes) {
  serve({}, {.bytes = 100'000, .holder = [](HttpRequest&) -> Result<std::string> {
               return fail(Errc::kUnauthenticated, "who are you?");
             }});
  GrpcTestClient client(io_, address_);
  const GrpcTestClient::Fields large = {{"x-large", std::string(4'000, 'x')}};
  EXPECT_EQ(client.wait(client.begin("/p.S/M", grpc_prefix(1), large, true)).status(), "16");
  EXPECT_EQ(client.wait(client.begin("/p.S/M", framed(""))).status(), "0") << "small ones are the handler's to refuse";
}

TEST_F(GrpcStreamTest, WhoHoldsTooMuchIsRefused) {
  const auto budget = std::make_shared<ByteBudget>(100'000);
  serve({}, {.bytes = 100'000,
             .holder = [](HttpRequest& head) -> Result<std::string> {
               if (head.header("authorization").empty()) return fail(Errc::kUnauthenticated, "who are you?");
               return std::string(head.header("authorization"));
             },
             .shared = budget});
  GrpcTestClient client(io_, address_);
  const GrpcTestClient::Fields a = {{"authorization", "a"}}, b = {{"authorization", "b"}};
  const auto& stranger = client.wait(client.begin("/hold/s", framed(std::string(5'000, 's'))));
  EXPECT_EQ(stranger.status(), "16");
  EXPECT_EQ(stranger.message(), "who are you?");
  client.begin("/hold/1", framed(std::string(45'000, 'a')), a);
  ASSERT_TRUE(wait_held(client, 1));
  EXPECT_GE(budget->held_by("a"), 45'000u);
  EXPECT_EQ(client.wait(client.begin("/hold/2", framed(std::string(30'000, 'a')), a)).status(), "8");
  EXPECT_EQ(client.wait(client.begin("/p.S/M", framed(std::string(20'000, 'b')), b)).status(), "0");
  release("/hold/1", "");
  turn(client);
  EXPECT_EQ(budget->used(), 0u);
}

// An answer that nobody takes is in the budget of who asked for it, and goes when its time is over.
TEST_F(GrpcStreamTest, WhoTakesNoAnswersIsCutOff) {
  const auto budget = std::make_shared<ByteBudget>(1'000'000);
  serve({.transfer_timeout = std::chrono::milliseconds(50)},
        {.bytes = 1'000'000, .holder = [](HttpRequest&) { return std::string("a"); }, .shared = budget});
  GrpcTestClient client(io_, address_, 0);
  const int first = client.begin("/large", framed(""));
  const int second = client.begin("/large", framed(""));
  ASSERT_TRUE(run_until(io_, [&] { return targets_.size() == 2; }));
  EXPECT_EQ(budget->used(), 300'000u) << "the second finds no room beside what is left free";
  EXPECT_EQ(client.wait(second).status(), "8");
  client.wait(first);
  EXPECT_TRUE(client.has_ended());
  EXPECT_EQ(budget->used(), 0u);
  EXPECT_EQ(server_->connections(), 0u);
}

TEST_F(GrpcStreamTest, ACallThatDripsInIsRefused) {
  serve({.transfer_timeout = std::chrono::milliseconds(50)});
  GrpcTestClient client(io_, address_);
  const auto& call = client.wait(client.begin("/p.S/M", grpc_prefix(10) + "abc", {}, true));
  EXPECT_EQ(call.status(), "4");
  EXPECT_EQ(client.wait(client.begin("/p.S/M", framed(""))).status(), "0") << "the others go on";
}

}  // namespace
}  // namespace fairlead::net
