// What is written as JSON reads back the same; any bytes are read or refused.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <nlohmann/json.hpp>

#include "wire/kernel_task_codec.h"
#include "wire/kernel_task_random.h"

namespace fairlead::wire {
namespace {

TEST(KernelTaskJsonProperty, TasksComeBack) {
  EXPECT_TRUE(rc::check([] {
    KernelTask task = testing::random_task();
    for (BufferSpec& buffer : task.buffers) {  // what validate_task() would have refused
      buffer.bytes += Bytes(1);
      for (std::uint64_t& dimension : buffer.shape) dimension = std::max<std::uint64_t>(dimension, 1);
    }
    const std::string text = kernel_task_to_json(task);
    const auto read = kernel_task_from_json(text);
    RC_ASSERT(read.has_value());
    RC_ASSERT(*read == task);
  }));
}

// A call with the values of an answer, or with its base64, gives the answer's bytes.
TEST(KernelTaskJsonProperty, ContentsComeBack) {
  EXPECT_TRUE(rc::check([] {
    const auto type = static_cast<ElementType>(testing::random_up_to(15));
    const auto shape = *rc::gen::container<std::vector<std::uint64_t>>(3, rc::gen::inRange<std::uint64_t>(1, 4));
    const auto bytes = static_cast<std::size_t>(shape_bytes(type, shape)->count());
    KernelTask task;
    task.buffers = {
        {.name = "x", .bytes = Bytes(static_cast<std::int64_t>(bytes)), .role = BufferRole::kInOut, .type = type}};
    if (*rc::gen::arbitrary<bool>()) task.buffers[0].shape = shape;
    const auto contents = *rc::gen::container<std::string>(bytes, rc::gen::arbitrary<char>());
    const std::string answer = kernel_task_answer_to_json(task, {.outputs = {{.buffer = 0, .bytes = contents}}});
    const auto document = nlohmann::json::parse(answer);
    const nlohmann::json call = {{"inputs", {{"x", document["outputs"]["x"]}}}};
    const auto read = kernel_task_call_from_json(task, call.dump());
    RC_ASSERT(read.has_value());
    RC_ASSERT(read->inputs.at(0).bytes == contents);
  }));
}

}  // namespace
}  // namespace fairlead::wire
