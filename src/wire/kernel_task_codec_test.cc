#include "wire/kernel_task_codec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/kernel_task_testing.h"

namespace fairlead::wire {
namespace {

using namespace std::string_literals;
using ::testing::HasSubstr;

std::string refusal(const std::string& bytes) {
  const auto task = decode_kernel_task(bytes);
  if (task) return "it was accepted";
  EXPECT_EQ(task.error().code, Errc::kCorrupt);
  return task.error().message;
}

// docs/how-to/kernel-tasks.md shows these bytes.
TEST(KernelTaskCodec, SmallestTask) {
  KernelTask task;
  task.modules = {{.name = "k.ptx", .sha256 = std::string(32, 'd')}};
  task.buffers = {
      {.name = "y", .bytes = Bytes(1024), .role = BufferRole::kOutput, .type = ElementType::kF32, .shape = {256}}};
  task.kernels = {{.kernel = "fill",
                   .block = {256, 1, 1},
                   .arguments = {BufferArgument{.buffer = 0}, LiteralArgument{"\x2a\0\0\0"s, {}}}}};
  const std::string expected = "FLKT\x01\x01"s +                                                   // version 1, a task
                               "\x01\x05k.ptx\x20"s + std::string(32, 'd') +                       // modules
                               "\x01\x01y\0\x04\0\0\0\0\0\0\x02\x0b\x01\0\x01\0\0\0\0\0\0\0\0"s +  // buffers
                               "\x01\0\0\0\0\x04"
                               "fill\x01\0\0\0\x01\0\0\0\x01\0\0\0\0\x01\0\0\x01\0\0\0\x01\0\0\0\0\0\0\0"s +  // kernels
                               "\x02\x01\0\0\0\0\0\0\0\0\0\0\0\0\0"s +
                               "\0\x04*\0\0\0\0"s +  // its arguments
                               "\x01\0\0\0"s;        // iterations
  EXPECT_EQ(encode(task), expected);
}

TEST(KernelTaskCodec, OtherBytesAreNamed) {
  EXPECT_EQ(refusal(""), "kernel task, byte 0: does not begin with 'FLKT' and a version");
  EXPECT_EQ(refusal("{}"), "kernel task, byte 0: does not begin with 'FLKT' and a version");
  EXPECT_EQ(refusal("FLKT\x02\x01"), "kernel task, byte 0: version is 2, it must be 1");
  EXPECT_EQ(refusal(encode(KernelTaskCall{})), "kernel task, byte 0: kind is 2, it must be 1");
  EXPECT_EQ(refusal(encode(KernelTask{}) + "x"), "kernel task, byte 13: 1 bytes follow the end");
  EXPECT_TRUE(is_binary(encode(KernelTask{})));
  EXPECT_FALSE(is_binary("FLKT"));
}

TEST(KernelTaskCodec, CountsAreBoundedBeforeAnythingIsMadeForThem) {
  const std::string header = "FLKT\x01\x01"s;
  EXPECT_EQ(refusal(header + "\xff\xff\xff\xff\xff\xff\xff\xff\x7f"),
            "kernel task, byte 8: modules has 16383 elements or more, at most 256 are possible");
  EXPECT_EQ(refusal(header + "\x05"), "kernel task, byte 7: modules has 5 elements, but 0 bytes are left");
  EXPECT_EQ(refusal(header + "\x81"s + "\0\0"s),
            "kernel task, byte 8: modules has a count that is longer than it need be");
  EXPECT_EQ(refusal(header + std::string(9, '\x80') + "\x01"),
            "kernel task, byte 15: modules has a count of more than 63 bits");
  EXPECT_EQ(refusal(header + "\x01\x03"
                             "ab"),
            "kernel task, byte 8: modules[0].name has 3 bytes, but 2 bytes are left");
}

TEST(KernelTaskCodec, ErrorsSayWhereTheyAre) {
  KernelTask task = testing::scale_and_dot();
  std::get<BufferArgument>(task.kernels[1].arguments[2]).buffer = kMaxTaskBuffers;
  EXPECT_THAT(refusal(encode(task)),
              HasSubstr("kernels[1].arguments[2].buffer is 16384, it must be between 0 and 16383"));
  task = testing::scale_and_dot();
  task.buffers[2].bytes = Bytes(-1);
  EXPECT_THAT(refusal(encode(task)), HasSubstr("buffers[2].bytes is -1, it must be between 0 and 1099511627776"));
  task = testing::scale_and_dot();
  task.buffers[2].role = static_cast<BufferRole>(5);
  EXPECT_THAT(refusal(encode(task)), HasSubstr("buffers[2].role is 5, it must be between 0 and 4"));
  task = testing::scale_and_dot();
  task.kernels[0].arguments.resize(kMaxKernelArguments + 1);
  EXPECT_THAT(refusal(encode(task)),
              HasSubstr("kernels[0].arguments has 513 elements or more, at most 512 are possible"));
}

TEST(KernelTaskCodec, PhasesAreTimes) {
  KernelTaskAnswer answer;
  answer.phases.overhead = Duration(-1);
  const auto decoded = decode_kernel_task_answer(encode(answer));
  ASSERT_FALSE(decoded);
  EXPECT_THAT(decoded.error().message, HasSubstr("phases.overhead is -1, it must be between 0"));
}

}  // namespace
}  // namespace fairlead::wire
