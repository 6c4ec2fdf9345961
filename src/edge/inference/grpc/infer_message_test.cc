#include "edge/inference/grpc/infer_message.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "edge/inference/grpc/open_inference.pb.h"

namespace fairlead::inference {
namespace {

using open_inference::ModelInferRequest;
using open_inference::ModelInferResponse;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

template <typename T>
std::string bytes_of(std::initializer_list<T> values) {
  std::string bytes;
  for (const T value : values) bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
  return bytes;
}

CallSignature signature() {
  return {.inputs = {{.name = "x", .type = ElementType::kF32, .shape = {2, 1}, .bytes = Bytes(8), .buffer = 1},
                     {.name = "n", .type = ElementType::kS8, .shape = {3}, .bytes = Bytes(3), .buffer = 2}},
          .outputs = {{.name = "y", .type = ElementType::kF32, .shape = {2}, .bytes = Bytes(8), .buffer = 3},
                      {.name = "z", .type = ElementType::kBytes, .bytes = Bytes(3), .buffer = 4}}};
}

// x and n as numbers.
ModelInferRequest request() {
  ModelInferRequest message;
  message.set_model_name("m");
  message.set_id("7");
  auto& x = *message.add_inputs();
  x.set_name("x");
  x.set_datatype("FP32");
  x.add_shape(2);
  x.add_shape(1);
  x.mutable_contents()->add_fp32_contents(1.5F);
  x.mutable_contents()->add_fp32_contents(-2.0F);
  auto& n = *message.add_inputs();
  n.set_name("n");
  n.set_datatype("INT8");
  n.add_shape(3);
  for (const int value : {-128, 0, 127}) n.mutable_contents()->add_int_contents(value);
  return message;
}

ModelInferRequest raw_request() {
  ModelInferRequest message = request();
  for (auto& input : *message.mutable_inputs()) input.clear_contents();
  message.add_raw_input_contents(bytes_of({1.5F, -2.0F}));
  message.add_raw_input_contents("abc");
  return message;
}

Result<InferRequest> read(const ModelInferRequest& message) {
  return read_infer_message(signature(), message.SerializeAsString());
}

std::string refusal(const ModelInferRequest& message) {
  const auto read_message = read(message);
  if (read_message) return "it was taken";
  EXPECT_EQ(read_message.error().code, Errc::kInvalidArgument);
  return read_message.error().message;
}

TEST(InferMessage, NumbersBecomeTheBytesOfACall) {
  const auto read_message = read(request());
  ASSERT_TRUE(read_message) << read_message.error().message;
  EXPECT_EQ(read_message->id, "7");
  EXPECT_EQ(read_message->timeout_us, std::nullopt);
  EXPECT_THAT(read_message->call.inputs,
              ElementsAre(CallBinding{.buffer = 1, .bytes = bytes_of({1.5F, -2.0F})},
                          CallBinding{.buffer = 2, .bytes = bytes_of<std::int8_t>({-128, 0, 127})}));
  EXPECT_THAT(read_message->outputs, ElementsAre(WantedOutput{0, true}, WantedOutput{1, true})) << "all of them";
}

TEST(InferMessage, BytesAreTakenAsTheyAre) {
  ModelInferRequest message = raw_request();
  message.add_outputs()->set_name("z");
  (*message.mutable_parameters())["timeout"].set_int64_param(2000);
  (*message.mutable_parameters())["priority"].set_uint64_param(1);
  const auto read_message = read(message);
  ASSERT_TRUE(read_message) << read_message.error().message;
  EXPECT_EQ(read_message->call.inputs[1].bytes, "abc");
  EXPECT_THAT(read_message->outputs, ElementsAre(WantedOutput{1, true}));
  EXPECT_EQ(read_message->timeout_us, 2000);
}

TEST(InferMessage, WhatDoesNotFitTheModelIsRefusedByName) {
  using Change = std::function<void(ModelInferRequest&)>;
  const std::pair<const char*, Change> wrong[] = {
      {"inputs lacks the input 'n'", [](auto& m) { m.mutable_inputs()->RemoveLast(); }},
      {"which the model does not have; it has x, n", [](auto& m) { m.mutable_inputs(0)->set_name("w"); }},
      {"inputs[1] is the input 'x' once more", [](auto& m) { *m.mutable_inputs(1) = m.inputs(0); }},
      {"datatype of 'x' is INT32; the model takes FP32", [](auto& m) { m.mutable_inputs(0)->set_datatype("INT32"); }},
      {"shape of 'x' is [2]; the model takes [2, 1]",
       [](auto& m) { m.mutable_inputs(0)->mutable_shape()->RemoveLast(); }},
      {"shape of 'x' is [2, -1]", [](auto& m) { m.mutable_inputs(0)->set_shape(1, -1); }},
      {"'x' has 3 numbers in its contents; it must have 2",
       [](auto& m) { m.mutable_inputs(0)->mutable_contents()->add_fp32_contents(1); }},
      {"'n' has 128 at 1, which its datatype cannot hold",
       [](auto& m) { m.mutable_inputs(1)->mutable_contents()->set_int_contents(1, 128); }},
      {"'n' has 0 numbers", [](auto& m) { m.mutable_inputs(1)->mutable_contents()->mutable_int_contents()->Clear(); }},
      {"raw_input_contents has 1 entries for 2 inputs", [](auto& m) { m.add_raw_input_contents("12345678"); }},
      {"parameters.timeout must be a number",
       [](auto& m) { (*m.mutable_parameters())["timeout"].set_string_param("1"); }},
      {"parameters.timeout must be a number",
       [](auto& m) { (*m.mutable_parameters())["timeout"].set_int64_param(-1); }},
      {"parameters.timeout must be a number",
       [](auto& m) { (*m.mutable_parameters())["timeout"].set_uint64_param(~std::uint64_t{0}); }},
      {"sequence_id is not supported", [](auto& m) { (*m.mutable_parameters())["sequence_id"].set_int64_param(1); }},
      {"shared_memory_region is not supported",
       [](auto& m) { (*m.mutable_inputs(0)->mutable_parameters())["shared_memory_region"].set_string_param("r"); }},
      {"the output is 'w', which the model does not have; it has y, z",
       [](auto& m) { m.add_outputs()->set_name("w"); }},
      {"outputs[1] is the output 'y' once more",
       [](auto& m) {
         m.add_outputs()->set_name("y");
         m.add_outputs()->set_name("y");
       }},
      {"classification is not supported",
       [](auto& m) {
         m.add_outputs()->set_name("y");
         (*m.mutable_outputs(0)->mutable_parameters())["classification"].set_int64_param(1);
       }},
      {"id has 257 bytes", [](auto& m) { m.set_id(std::string(257, 'i')); }},
  };
  for (const auto& [text, change] : wrong) {
    ModelInferRequest message = request();
    change(message);
    EXPECT_THAT(refusal(message), HasSubstr(text));
  }
  ModelInferRequest raw = raw_request();
  raw.set_raw_input_contents(0, "1234567");
  EXPECT_THAT(refusal(raw), HasSubstr("raw_input_contents[0] has 7 bytes; the tensor 'x' has 8"));
}

TEST(InferMessage, WhatIsNoMessageIsRefused) {
  const std::string whole = raw_request().SerializeAsString();
  const auto is_taken = [](std::string_view bytes) { return read_infer_message(signature(), bytes).has_value(); };
  EXPECT_TRUE(is_taken(whole));
  for (std::size_t size = 0; size < whole.size(); ++size) EXPECT_FALSE(is_taken(whole.substr(0, size))) << size;
  EXPECT_FALSE(is_taken("\xff\xff\xff\xff"));
  EXPECT_FALSE(is_taken("\x2a\xff\xff\xff\xff\x0f")) << "an input of 4 GiB";
  EXPECT_FALSE(is_taken(std::string("\x0a\x02\xff\xfe", 4))) << "a name that is no text";
}

// Two bytes make an object of a hundred: who sends megabytes of these is refused before one is made.
TEST(InferMessage, WhatIsBesideTheTensorsIsBounded) {
  ModelInferRequest many = raw_request();
  std::string bytes = many.SerializeAsString();
  for (int i = 0; i < 300'000; ++i) bytes += std::string("\x2a\x00", 2);  // an input without anything
  EXPECT_THAT(read_infer_message(signature(), bytes).error().message, HasSubstr("bytes beside its tensors"));
  EXPECT_THAT(meant_model(bytes).error().message, HasSubstr("131072 bytes beside its tensors"));

  ModelInferRequest large = raw_request();
  large.set_raw_input_contents(0, std::string(1 << 20, 'x'));
  EXPECT_THAT(refusal(large), HasSubstr("has 1048576 bytes; the tensor 'x' has 8")) << "a tensor is no such thing";
}

TEST(InferMessage, TheModelIsKnownWithoutTheTensors) {
  ModelInferRequest message = raw_request();
  message.set_model_version("1");
  const auto meant = meant_model(message.SerializeAsString());
  ASSERT_TRUE(meant);
  EXPECT_EQ(meant->name, "m");
  EXPECT_EQ(meant->version, "1");
  EXPECT_EQ(meant_model("")->name, "");
  EXPECT_FALSE(meant_model("\x0a\x05x"));
}

TEST(InferMessage, AnAnswerIsBytes) {
  const auto read_message = read(request());
  const KernelTaskAnswer answer{
      .outputs = {{.buffer = 4, .bytes = "abc"}, {.buffer = 3, .bytes = bytes_of({3.0F, 4.0F})}}};
  const auto written = write_infer_message("m", signature(), *read_message, answer);
  ASSERT_TRUE(written);
  ModelInferResponse message;
  ASSERT_TRUE(message.ParseFromString(*written));
  EXPECT_EQ(message.model_name() + message.model_version() + message.id(), "m17");
  ASSERT_EQ(message.outputs_size(), 2);
  EXPECT_EQ(message.outputs(0).name(), "y");
  EXPECT_EQ(message.outputs(0).datatype(), "FP32");
  EXPECT_THAT(message.outputs(1).shape(), ElementsAre(3));
  EXPECT_THAT(message.raw_output_contents(), ElementsAre(bytes_of({3.0F, 4.0F}), "abc"));
  const auto missing = write_infer_message("m", signature(), *read_message, {});
  EXPECT_EQ(missing.error().code, Errc::kInternal);
}

}  // namespace
}  // namespace fairlead::inference
