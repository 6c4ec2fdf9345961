// Calls that nobody wrote are calls as any other.
#include "node/generated_call.h"

#include <gmock/gmock.h>

#include <cstring>

#include "model/function.h"
#include "wire/kernel_task_codec.h"

namespace fairlead {
namespace {

using testing::HasSubstr;

BufferSpec buffer(const std::string& name, BufferRole role, ElementType type, std::int64_t elements) {
  return {.name = name,
          .bytes = Bytes(elements * static_cast<std::int64_t>(element_bytes(type))),
          .role = role,
          .type = type,
          .shape = {}};
}

KernelTaskCall call_of(const KernelTask& task) {
  const auto bytes = generated_call(task);
  EXPECT_TRUE(bytes) << bytes.error().message;
  const auto call = wire::decode_kernel_task_call(bytes.value_or(""));
  EXPECT_TRUE(call);
  return call.value_or(KernelTaskCall());
}

template <typename T>
std::vector<T> numbers(const std::string& bytes) {
  std::vector<T> all(bytes.size() / sizeof(T));
  std::memcpy(all.data(), bytes.data(), bytes.size());
  return all;
}

TEST(GeneratedCall, HasEachInputAndIsValid) {
  KernelTask task;
  task.buffers = {buffer("out", BufferRole::kOutput, ElementType::kF32, 4),
                  buffer("x", BufferRole::kInput, ElementType::kF32, 3),
                  buffer("w", BufferRole::kConstant, ElementType::kF32, 9),
                  buffer("i", BufferRole::kInput, ElementType::kS32, 2),
                  buffer("t", BufferRole::kTemporary, ElementType::kBytes, 7),
                  buffer("state", BufferRole::kInOut, ElementType::kF64, 2)};
  const KernelTaskCall call = call_of(task);
  EXPECT_TRUE(validate_call(task, call));
  ASSERT_EQ(call.inputs.size(), 3u);
  EXPECT_EQ(call.inputs[0].buffer, 1u);
  EXPECT_EQ(numbers<float>(call.inputs[0].bytes), std::vector<float>(3, 0.5F));
  EXPECT_EQ(numbers<std::int32_t>(call.inputs[1].bytes), std::vector<std::int32_t>(2, 0)) << "it may be an index";
  EXPECT_EQ(numbers<double>(call.inputs[2].bytes), std::vector<double>(2, 0.5));
  EXPECT_TRUE(call.outputs.empty());
}

TEST(GeneratedCall, HasHalvesOfEachFloatingPointType) {
  KernelTask task;
  for (const ElementType type : {ElementType::kF16, ElementType::kBf16, ElementType::kC64, ElementType::kC128}) {
    task.buffers.push_back(buffer(std::string(element_type_name(type)), BufferRole::kInput, type, 2));
  }
  const KernelTaskCall call = call_of(task);
  ASSERT_EQ(call.inputs.size(), 4u);
  EXPECT_EQ(numbers<std::uint16_t>(call.inputs[0].bytes), std::vector<std::uint16_t>(2, 0x3800));
  EXPECT_EQ(numbers<std::uint16_t>(call.inputs[1].bytes), std::vector<std::uint16_t>(2, 0x3F00));
  EXPECT_EQ(numbers<float>(call.inputs[2].bytes), std::vector<float>(4, 0.5F));
  EXPECT_EQ(numbers<double>(call.inputs[3].bytes), std::vector<double>(4, 0.5));
}

TEST(GeneratedCall, OfATaskWithoutInputsBindsNothing) {
  KernelTask task;
  task.buffers = {buffer("out", BufferRole::kOutput, ElementType::kF32, 4)};
  EXPECT_EQ(call_of(task), KernelTaskCall());
}

TEST(GeneratedCall, IsRefusedWhereItWouldBeTooLarge) {
  KernelTask task;
  const auto most = static_cast<std::int64_t>(kMaxSyncPayloadBytes);
  task.buffers = {buffer("x", BufferRole::kInput, ElementType::kU8, most)};
  EXPECT_TRUE(generated_call(task));
  task.buffers.push_back(buffer("y", BufferRole::kInput, ElementType::kU8, 1));
  EXPECT_THAT(generated_call(task).error().message, HasSubstr("its inputs are 6291457 bytes and its outputs 0"));
  task.buffers = {buffer("out", BufferRole::kOutput, ElementType::kU8, most + 1)};
  EXPECT_THAT(generated_call(task).error().message, HasSubstr("give a sample that names objects"));
}

}  // namespace
}  // namespace fairlead
