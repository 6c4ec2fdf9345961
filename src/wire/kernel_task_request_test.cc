#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "wire/kernel_task_codec.h"

namespace fairlead::wire {
namespace {

using namespace std::string_literals;
using ::testing::HasSubstr;

std::string refusal(std::string_view json) {
  const auto request = kernel_task_request_from_json(json);
  if (request) return "it was accepted";
  EXPECT_EQ(request.error().code, Errc::kInvalidArgument);
  return request.error().message;
}

// docs/how-to/kernel-tasks.md says what these bytes are.
TEST(KernelTaskRequestCodec, TheBinaryFormIsItsFieldsInOrder) {
  const KernelTaskRequest request{
      .task = "{}", .files = {{"k.ptx", "abc"}, {"w", ""}}, .timeout_seconds = 60, .call = "{ }"};
  const std::string expected =
      "FLKT\x01\x04"s + "\x02{}"s + "\x02\x05k.ptx\x03"s + "abc"s + "\x01w\0"s + "\x3c\0\0\0"s + "\x03{ }"s;
  EXPECT_EQ(expected, encode(request));
  EXPECT_EQ(request, decode_kernel_task_request(expected).value());
}

TEST(KernelTaskRequestCodec, BrokenBytesAreNamed) {
  const std::string bytes = encode(KernelTaskRequest{.task = "{}", .files = {{"k", "abc"}}});
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    const auto cut = decode_kernel_task_request(bytes.substr(0, length));
    ASSERT_FALSE(cut) << length;
    EXPECT_EQ(Errc::kCorrupt, cut.error().code);
  }
  EXPECT_THAT(decode_kernel_task_request(bytes + "x").error().message, HasSubstr("1 bytes follow the end"));
  EXPECT_THAT(decode_kernel_task_request(encode(KernelTaskCall{})).error().message,
              HasSubstr("kind is 2, it must be 4"));
}

TEST(KernelTaskRequestJson, FilesAreDecodedAndTextsKept) {
  const auto request = kernel_task_request_from_json(
      R"({"call": {"inputs": {"x": [1, 2.5]}}, "files": {"w.bin": "AAE=", "k.ptx": "YWJj"}, "task": {"kernels": []},
          "timeout_seconds": 7})");
  ASSERT_TRUE(request);
  const KernelTaskRequest expected{.task = R"({"kernels":[]})",
                                   .files = {{"k.ptx", "abc"}, {"w.bin", "\0\1"s}},
                                   .timeout_seconds = 7,
                                   .call = R"({"inputs":{"x":[1,2.5]}})"};
  EXPECT_EQ(expected, *request);
  EXPECT_EQ((KernelTaskRequest{.task = "{}"}), kernel_task_request_from_json(R"({"task": {}})").value());
}

TEST(KernelTaskRequestJson, WhatIsWrongIsNamed) {
  EXPECT_THAT(refusal("{"), HasSubstr("the request: parse error at line 1"));
  EXPECT_EQ("the document must be an object with task, files, call, timeout_seconds", refusal("[]"));
  EXPECT_EQ("the document has 'modules', which is not known; known are task, files, call, timeout_seconds",
            refusal(R"({"task": {}, "modules": {}})"));
  EXPECT_EQ("the document has no 'task'; it is required", refusal("{}"));
  EXPECT_EQ("files must be an object: base64 by name", refusal(R"({"task": {}, "files": ["a"]})"));
  EXPECT_EQ("files.k must be a string of base64", refusal(R"({"task": {}, "files": {"k": 1}})"));
  EXPECT_EQ("files.k.ptx has 3 characters that are not base64 with padding",
            refusal(R"({"task": {}, "files": {"k.ptx": "a b"}})"));
  EXPECT_EQ("timeout_seconds is 901, it must be a whole number between 1 and 900",
            refusal(R"({"task": {}, "timeout_seconds": 901})"));
}

}  // namespace
}  // namespace fairlead::wire
