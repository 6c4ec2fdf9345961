// Whatever is encoded comes back; a piece of it never does.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "wire/kernel_task_codec.h"
#include "wire/kernel_task_random.h"

namespace fairlead::wire {
namespace {

// `decode` of every prefix, and of the whole with a byte behind it.
template <typename Decode>
void assert_only_whole(const std::string& bytes, Decode decode) {
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    RC_ASSERT(!decode(std::string_view(bytes).substr(0, size)).has_value());
  }
  RC_ASSERT(!decode(bytes + '\0').has_value());
}

TEST(KernelTaskCodecProperty, TasksComeBack) {
  EXPECT_TRUE(rc::check([] {
    KernelTask task = testing::random_task();
    for (KernelModule& module : task.modules) module.sha256 = std::string(32, '\xd1');
    const std::string bytes = encode(task);
    const auto decoded = decode_kernel_task(bytes);
    RC_ASSERT(decoded.has_value());
    RC_ASSERT(*decoded == task);
    RC_ASSERT(encode(*decoded) == bytes);
    assert_only_whole(bytes, decode_kernel_task);
  }));
}

TEST(KernelTaskCodecProperty, CallsComeBack) {
  EXPECT_TRUE(rc::check([] {
    const KernelTaskCall call = testing::random_call();
    const std::string bytes = encode(call);
    const auto decoded = decode_kernel_task_call(bytes);
    RC_ASSERT(decoded.has_value());
    RC_ASSERT(*decoded == call);
    assert_only_whole(bytes, decode_kernel_task_call);
  }));
}

TEST(KernelTaskCodecProperty, AnswersComeBack) {
  EXPECT_TRUE(rc::check([] {
    const KernelTaskAnswer answer = testing::random_answer();
    const std::string bytes = encode(answer);
    const auto decoded = decode_kernel_task_answer(bytes);
    RC_ASSERT(decoded.has_value());
    RC_ASSERT(*decoded == answer);
    assert_only_whole(bytes, decode_kernel_task_answer);
  }));
}

// What a changed byte decodes to has that very encoding: no two encodings of one value.
TEST(KernelTaskCodecProperty, OneEncodingEach) {
  EXPECT_TRUE(rc::check([] {
    std::string bytes = encode(testing::random_task());
    bytes[testing::random_up_to(bytes.size())] = *rc::gen::arbitrary<char>();
    const auto decoded = decode_kernel_task(bytes);
    if (decoded) RC_ASSERT(encode(*decoded) == bytes);
  }));
}

}  // namespace
}  // namespace fairlead::wire
