#include "model/kernel_task_request.h"

#include <gtest/gtest.h>

#include "model/function.h"

namespace fairlead {
namespace {

std::string refusal(const KernelTaskRequest& request) {
  const Status status = validate_request(request);
  return status ? "it was accepted" : status.error().message;
}

TEST(KernelTaskRequest, WhatIsWithinTheBoundsIsAccepted) {
  KernelTaskRequest request{.task = "{}", .files = {{"a", ""}, {"b", std::string(kMaxRequestFileBytes, 'x')}}};
  request.call.resize(kMaxSyncPayloadBytes);
  EXPECT_TRUE(validate_request(request));
  EXPECT_TRUE(validate_request({}));
}

TEST(KernelTaskRequest, SizesAreBounded) {
  EXPECT_EQ("task has 4194305 bytes; at most 4194304 are possible",
            refusal({.task = std::string(kMaxRequestTaskBytes + 1, ' ')}));
  EXPECT_EQ("call has 6291457 bytes; at most 6291456 are possible",
            refusal({.call = std::string(kMaxSyncPayloadBytes + 1, ' ')}));
  EXPECT_EQ("files have together 33554433 bytes; at most 33554432 are possible: put large constants as objects",
            refusal({.files = {{"a", "x"}, {"b", std::string(kMaxRequestFileBytes, 'x')}}}));
  EXPECT_EQ(Errc::kTooLarge, validate_request({.call = std::string(kMaxSyncPayloadBytes + 1, ' ')}).error().code);
  EXPECT_EQ("files has 257 elements; at most 256 are possible",
            refusal({.files = std::vector<KernelTaskRequest::File>(kMaxRequestFiles + 1)}));
}

TEST(KernelTaskRequest, TimeoutsAreThoseOfFunctions) {
  EXPECT_EQ("timeout_seconds is 0, it must be a whole number between 1 and 900", refusal({.timeout_seconds = 0}));
  EXPECT_EQ("timeout_seconds is 901, it must be a whole number between 1 and 900", refusal({.timeout_seconds = 901}));
}

TEST(KernelTaskRequest, NamesAreThereOnceAndInOrder) {
  EXPECT_EQ("files: a name has 0 bytes, it must have 1 to 256", refusal({.files = {{"", ""}}}));
  EXPECT_EQ("files: 'a' stands behind 'a'; names must be in order, each once",
            refusal({.files = {{"a", ""}, {"a", ""}}}));
  EXPECT_EQ("files: 'a' stands behind 'b'; names must be in order, each once",
            refusal({.files = {{"b", ""}, {"a", ""}}}));
}

}  // namespace
}  // namespace fairlead
