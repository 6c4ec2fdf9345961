#include "runtime/models/model_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <functional>

namespace fairlead {
namespace {

using ::testing::HasSubstr;

std::string packet(const std::function<void(ModelRequest&)>& change = [](ModelRequest&) {}) {
  ModelRequest request{};
  request.version = MODEL_PROTOCOL;
  request.kind = MODEL_OPEN;
  request.number = 7;
  request.bytes = 100;
  std::strcpy(request.id, "vit");
  change(request);
  return {reinterpret_cast<const char*>(&request), sizeof request};
}

TEST(ModelRequest, AWholePacketIsRead) {
  const auto request = decode_model_request(packet());
  ASSERT_TRUE(request);
  EXPECT_STREQ(request->id, "vit");
  EXPECT_EQ(request->bytes, 100U);
}

TEST(ModelRequest, WhatIsWrongIsNamed) {
  const auto message = [](const std::string& bytes) { return decode_model_request(bytes).error().message; };
  EXPECT_THAT(message(""), HasSubstr("0 bytes"));
  EXPECT_THAT(message(packet() + "x"), HasSubstr("a request has"));
  EXPECT_THAT(message(packet([](ModelRequest& r) { r.version = 2; })), HasSubstr("version is 2"));
  EXPECT_THAT(message(packet([](ModelRequest& r) { r.kind = 0; })), HasSubstr("kind is 0"));
  EXPECT_THAT(message(packet([](ModelRequest& r) { r.kind = 4; })), HasSubstr("kind is 4"));
  EXPECT_THAT(message(packet([](ModelRequest& r) { r.flags = 4; })), HasSubstr("flags are 4"));
  EXPECT_THAT(message(packet([](ModelRequest& r) { r.reserved = 1; })), HasSubstr("reserved is 1"));
  EXPECT_THAT(message(packet([](ModelRequest& r) { std::memset(r.id, 'x', sizeof r.id); })), HasSubstr("no NUL"));
}

}  // namespace
}  // namespace fairlead
