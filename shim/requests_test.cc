#include "shim/requests.h"

#include <gtest/gtest.h>

#include <thread>

namespace fairlead::shim {
namespace {

constexpr int kLimitMs = 10000;

wire::Frame room(std::uint64_t request, std::uint64_t granted) {
  wire::Frame frame = {.kind = wire::FrameKind::kRoom};
  frame.body.room = {request, granted};
  return frame;
}

TEST(Requests, AnswersGoToTheirQuestions) {
  Requests requests;
  const std::uint64_t first = requests.open();
  const std::uint64_t second = requests.open();
  ASSERT_NE(first, second);
  wire::Frame frame;
  std::thread link([&] {
    requests.answer(second, room(second, 2));
    requests.answer(first, room(first, 1));
  });
  EXPECT_TRUE(requests.wait(first, &frame, kLimitMs));
  EXPECT_EQ(frame.body.room.granted, 1U);
  EXPECT_TRUE(requests.wait(second, &frame, kLimitMs));
  EXPECT_EQ(frame.body.room.granted, 2U);
  link.join();
}

TEST(Requests, AGoneConnectionFailsEveryOpenQuestion) {
  Requests requests;
  const std::uint64_t request = requests.open();
  std::thread link([&] { requests.fail_all(); });
  wire::Frame frame;
  EXPECT_FALSE(requests.wait(request, &frame, kLimitMs));
  link.join();
}

TEST(Requests, AnAnswerThatComesTooLateIsForNobody) {
  Requests requests;
  const std::uint64_t late = requests.open();
  wire::Frame frame;
  EXPECT_FALSE(requests.wait(late, &frame, 1));
  requests.answer(late, room(late, 1));
  const std::uint64_t next = requests.open();
  EXPECT_FALSE(requests.wait(next, &frame, 1));
}

TEST(Requests, OneTooManyIsRefusedUntilAnotherIsGivenUp) {
  Requests requests;
  std::uint64_t last = 0;
  for (int i = 0; i < Requests::kMost; ++i) ASSERT_NE(last = requests.open(), 0U);
  EXPECT_EQ(requests.open(), 0U);
  requests.cancel(last);
  EXPECT_NE(requests.open(), 0U);
}

}  // namespace
}  // namespace fairlead::shim
