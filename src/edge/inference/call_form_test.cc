#include "edge/inference/call_form.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "wire/safetensors.h"

namespace fairlead::inference {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

CallSignature program() {
  return {.inputs = {{.name = "x", .type = ElementType::kF32, .shape = {kAnySize, 2}},
                     {.name = "n", .type = ElementType::kU8, .shape = {1}, .bytes = Bytes(1), .buffer = 1}},
          .outputs = {{.name = "y", .type = ElementType::kF32, .shape = {kAnySize}},
                      {.name = "z", .type = ElementType::kS64, .shape = {1}, .bytes = Bytes(8), .buffer = 1}},
          .form = CallForm::kSafetensors};
}

TEST(CallForm, AProgramGetsAFileOfItsInputs) {
  InferRequest request;
  request.call.inputs = {{.buffer = 1, .bytes = "n"}, {.buffer = 0, .bytes = "01234567"}};
  request.shapes = {{1}, {1, 2}};
  const std::string payload = payload_of(program(), request);
  const auto file = wire::read_safetensors(payload);
  ASSERT_TRUE(file);
  ASSERT_EQ(file->size(), 2U);
  EXPECT_EQ((*file)[0].bytes, "n");
  EXPECT_EQ((*file)[1].bytes, "01234567");
  EXPECT_THAT((*file)[1].shape, ElementsAre(1, 2));
}

TEST(CallForm, ItsAnswerSaysTheSizesThatTheModelLeavesOpen) {
  CallSignature signature = program();
  const auto answer = read_answer(signature, wire::write_safetensors({{"z", ElementType::kS64, {1}, "01234567"},
                                                                      {"more", ElementType::kU8, {1}, "m"},
                                                                      {"y", ElementType::kF32, {3}, "0123456789ab"}}));
  ASSERT_TRUE(answer) << answer.error().message;
  ASSERT_EQ(answer->outputs.size(), 2U) << "what the model does not have is left out";
  EXPECT_EQ(answer->outputs[0].bytes, "0123456789ab");
  EXPECT_THAT(signature.outputs[0].shape, ElementsAre(3));
  EXPECT_EQ(signature.outputs[0].bytes, Bytes(12));
  CallSignature again = program();
  EXPECT_EQ(read_answer(again, wire::write_safetensors({}))->outputs.size(), 0U)
      << "who reads it names what is missing";
}

TEST(CallForm, AnAnswerThatIsAnotherIsAnErrorOfTheFunction) {
  const std::pair<std::string, const char*> kWrong[] = {
      {"{}", "the function's answer is no safetensors file: it has 2 bytes"},
      {wire::write_safetensors({{"y", ElementType::kF64, {1}, "01234567"}}),
       "has 'y' as FP64 [1]; the model says FP32 [-1]"},
      {wire::write_safetensors({{"y", ElementType::kF32, {1, 2}, "01234567"}}),
       "has 'y' as FP32 [1, 2]; the model says FP32 [-1]"},
      {wire::write_safetensors({{"z", ElementType::kS64, {0}, ""}}), "has 'z' as INT64 [0]; the model says INT64 [1]"},
      {std::string("\x10\0\0\0\0\0\0\0{\"", 10) + std::string(100'000, 'a'), "header"}};
  for (const auto& [payload, says] : kWrong) {
    CallSignature signature = program();
    const auto answer = read_answer(signature, payload);
    ASSERT_FALSE(answer) << says;
    EXPECT_EQ(answer.error().code, Errc::kInternal);
    EXPECT_THAT(answer.error().message, HasSubstr(says));
    EXPECT_LT(answer.error().message.size(), 700U);
  }
}

}  // namespace
}  // namespace fairlead::inference
