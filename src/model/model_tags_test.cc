#include "model/model_tags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fairlead {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

FunctionConfig tagged(std::string inputs, std::string outputs = "y:f32:-1") {
  FunctionConfig config;
  config.tags = {{"gpu:model-inputs", std::move(inputs)}, {"gpu:model-outputs", std::move(outputs)}};
  return config;
}

TEST(ModelTags, SayWhichTensorsAProgramTakesAndGives) {
  const auto model = model_of(tagged("input_ids:s64:-1x128 mask/0:bf16:4x2", "y:f32:-1"));
  ASSERT_TRUE(model && *model);
  EXPECT_EQ((*model)->form, CallForm::kSafetensors);
  ASSERT_EQ((*model)->inputs.size(), 2U);
  const TensorSpec &ids = (*model)->inputs[0], &mask = (*model)->inputs[1];
  EXPECT_EQ(ids.name, "input_ids");
  EXPECT_EQ(ids.type, ElementType::kS64);
  EXPECT_THAT(ids.shape, ElementsAre(kAnySize, 128));
  EXPECT_EQ(ids.bytes, Bytes(0));
  EXPECT_EQ(mask.name, "mask/0");
  EXPECT_EQ(mask.bytes, Bytes(16));
  EXPECT_EQ(mask.buffer, 1U);
  EXPECT_EQ((*model)->outputs[0].buffer, 0U);
}

TEST(ModelTags, NeitherIsNoModelAndOneIsAMistake) {
  EXPECT_EQ(model_of(FunctionConfig())->has_value(), false);
  FunctionConfig config;
  config.tags = {{"gpu:model-inputs", "x:f32:1"}};
  EXPECT_EQ(model_of(config).error().message,
            "tag gpu:model-inputs is there and gpu:model-outputs is missing: a model says both");
  config.tags = {{"gpu:model-outputs", "x:f32:1"}};
  EXPECT_THAT(model_of(config).error().message, HasSubstr("gpu:model-inputs is missing"));
}

TEST(ModelTags, WhatIsNoTensorIsNamed) {
  const std::pair<const char*, const char*> kWrong[] = {
      {"", "tag gpu:model-inputs: '' must be NAME:TYPE:SIZES"},
      {"x", "NAME:TYPE:SIZES"},
      {"x:f32", "NAME:TYPE:SIZES"},
      {"x:f32:1:2", "NAME:TYPE:SIZES"},
      {"x:f32:1  y:f32:1", "'' must be NAME"},
      {":f32:1", "must begin with a name"},
      {"a b:f32:1", "'a' must be"},
      {"x:float:1", "must have a type"},
      {"x:c64:1", "must have a type"},
      {"x:bytes:1", "must have a type"},
      {"x:f32:", "1 to 16 sizes"},
      {"x:f32:0", "above 0"},
      {"x:f32:-2", "or -1"},
      {"x:f32:1x", "1 to 16 sizes"},
      {"x:f32:1.5", "1 to 16 sizes"},
      {"x:f32:99999999999999999999", "1 to 16 sizes"},
      {"x:f32:1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1", "1 to 16 sizes"},
      {"x:f32:1000x1000x1000", "more bytes than a call may have, which are 6291456"},
      {"x:f64:4294967296x4294967296", "more bytes than a call may have"},
      {"x:f32:1 x:f32:1", "has the tensor 'x' twice"}};
  for (const auto& [text, says] : kWrong) {
    const auto read = model_of(tagged(text));
    ASSERT_FALSE(read) << text;
    EXPECT_EQ(read.error().code, Errc::kInvalidArgument);
    EXPECT_THAT(read.error().message, HasSubstr(says)) << text;
  }
  std::string many = "t0:f32:1";
  for (int i = 1; i <= 64; ++i) many += " t" + std::to_string(i) + ":f32:1";
  EXPECT_THAT(model_of(tagged(many)).error().message, HasSubstr("has 65 tensors; 64 are the most"));
}

TEST(ModelTags, SayHowManyRowsGoTogether) {
  FunctionConfig config = tagged("x:f32:-1x8 n:s64:-1");
  EXPECT_EQ(batch_rule_of(config)->has_value(), false);
  config.tags["gpu:batch"] = "32";
  EXPECT_EQ(*batch_rule_of(config), (BatchRule{.rows = 32, .most_wait = std::nullopt}));
  config.tags["gpu:batch"] = "32:5";
  EXPECT_EQ(*batch_rule_of(config), (BatchRule{.rows = 32, .most_wait = std::chrono::milliseconds(5)}));
  for (const char* wrong : {"", "0", "-1", "65537", "32:", "32:0", "32:10001", ":5", "32:5:5", "32 5", "many"}) {
    config.tags["gpu:batch"] = wrong;
    const auto rule = batch_rule_of(config);
    ASSERT_FALSE(rule) << wrong;
    EXPECT_THAT(rule.error().message, HasSubstr("it must be ROWS or ROWS:MS, ROWS 1 to 65536, MS 1 to 10000")) << wrong;
  }
  for (const char* inputs : {"x:f32:8", "x:f32:8x-1", "x:f32:-1x-1", "x:f32:-1 y:f32:1"}) {
    FunctionConfig other = tagged(inputs);
    other.tags["gpu:batch"] = "8";
    EXPECT_THAT(batch_rule_of(other).error().message, HasSubstr("is not of rows: its first size must be -1")) << inputs;
  }
  FunctionConfig none;
  none.tags["gpu:batch"] = "8";
  EXPECT_THAT(batch_rule_of(none).error().message, HasSubstr("gpu:model-inputs is missing"));
}

}  // namespace
}  // namespace fairlead
