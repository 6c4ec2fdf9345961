#include "net/grpc/grpc_calls.h"

#include <gtest/gtest.h>

#include "net/grpc/grpc_output.h"

namespace fairlead::net {
namespace {

using namespace std::chrono_literals;

constexpr Instant kNow{1h};

// A call whose message is there, of a connection that is not.
GrpcCalls::Stream whole(GrpcCalls& calls, int id) {
  const auto stream = std::make_shared<GrpcStream>(std::weak_ptr<GrpcConnection>(), id, kNow);
  calls.open(stream);
  return stream;
}

TEST(GrpcCalls, WhoIsCancelledBeforeItsTurnIsNotHandedOver) {
  GrpcCalls calls(kNow);
  const auto stream = whole(calls, 1);
  EXPECT_FALSE(calls.close(1, kNow)) << "no handler has it";
  EXPECT_EQ(stream->state(), GrpcStream::State::kOver);
  EXPECT_EQ(calls.find(1), nullptr);
  EXPECT_TRUE(calls.take_cancelled().empty());
}

TEST(GrpcCalls, HandlersAreToldTogether) {
  GrpcCalls calls(kNow);
  std::vector<HttpExchange> kept;
  for (const int id : {1, 3}) {
    whole(calls, id)->hand_over([&](HttpExchange exchange) { kept.push_back(std::move(exchange)); });
  }
  EXPECT_TRUE(calls.close(1, kNow));
  EXPECT_FALSE(calls.close(1, kNow)) << "it is gone";
  EXPECT_FALSE(calls.close(3, kNow)) << "the first one has said so";
  EXPECT_EQ(calls.take_cancelled().size(), 2u);
}

TEST(GrpcCalls, IdleIsCountedFromTheLastOne) {
  GrpcCalls calls(kNow);
  EXPECT_EQ(calls.idle_since(), kNow);
  whole(calls, 1);
  EXPECT_EQ(calls.idle_since(), std::nullopt);
  calls.close(1, kNow + 1s);
  EXPECT_EQ(calls.idle_since(), kNow + 1s);
}

TEST(GrpcOutput, IsStuckWhereNothingMovesThatWantsTo) {
  GrpcOutput output;
  EXPECT_FALSE(output.is_stuck(kNow + 1h, 60s)) << "nothing wants to";
  output.wait(100, kNow);
  EXPECT_FALSE(output.is_stuck(kNow + 60s, 60s));
  EXPECT_TRUE(output.is_stuck(kNow + 61s, 60s));
  output.moved(50, kNow + 30s);
  EXPECT_FALSE(output.is_stuck(kNow + 61s, 60s));
  output.gave_up(50);
  EXPECT_FALSE(output.is_stuck(kNow + 1h, 60s));
  output.set_state(GrpcOutput::State::kBlocked, kNow);
  EXPECT_TRUE(output.is_stuck(kNow + 61s, 60s));
}

TEST(GrpcOutput, BytesGoInTheirOrder) {
  GrpcOutput output;
  output.add("abc");
  output.add("def");
  output.sent(2);
  EXPECT_EQ(output.rest(), "cdef");
  EXPECT_TRUE(output.is_full(6)) << "of what was made, sent or not";
  output.sent(4);
  EXPECT_EQ(output.rest(), "");
  EXPECT_FALSE(output.is_full(1));
}

}  // namespace
}  // namespace fairlead::net
