#include "fairlead/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "fairlead/error.h"

namespace fairlead {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* kGood =
    R"({"__metadata__":{"format":"pt"},"a":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},)"
    R"("b\n\"":{"shape":[4],"data_offsets":[24,32],"dtype":"BF16"}, "none":{"dtype":"I64","shape":[0,5],"data_offsets":[32,32]}})";

SafetensorsHeader parse(const std::string& json, std::uint64_t data) {
  return parse_safetensors_header(json, 8 + json.size() + data);
}

std::string refusal(const std::string& json, std::uint64_t data) {
  try {
    parse(json, data);
  } catch (const Error& error) {
    EXPECT_EQ(error.type(), "Model.Format");
    return error.what();
  }
  return "read";
}

TEST(Safetensors, TensorsAndMetadata) {
  const SafetensorsHeader header = parse(kGood, 32);
  EXPECT_EQ(header.metadata.at("format"), "pt");
  EXPECT_THAT(header.tensors.at("a").shape, ElementsAre(2, 3));
  EXPECT_EQ(header.tensors.at("b\n\"").begin, 24U);
  EXPECT_EQ(header.data_bytes, 32U);
}

TEST(Safetensors, WhatCannotBeTrustedIsRefused) {
  const auto tensor = [](const std::string& fields) { return R"({"a":{)" + fields + "}}"; };
  const std::string shape = R"("shape":[2,3])", type = R"("dtype":"F32")", offsets = R"("data_offsets":[0,24])";
  EXPECT_THAT(refusal(tensor(shape + "," + type), 24), HasSubstr("lacks"));
  EXPECT_THAT(refusal(tensor(shape + "," + type + "," + offsets + "," + type), 24), HasSubstr("once"));
  EXPECT_THAT(refusal(tensor(shape + "," + type + "," + offsets), 25), HasSubstr("the file has 25"));
  EXPECT_THAT(refusal(tensor(shape + "," + type + R"(,"data_offsets":[24,0])"), 24), HasSubstr("24 to 0"));
  EXPECT_THAT(refusal(tensor(shape + "," + type + R"(,"data_offsets":[0])"), 24), HasSubstr("[begin, end]"));
  EXPECT_THAT(refusal(tensor(shape + R"(,"dtype":"F17",)" + offsets), 24), HasSubstr("'F17'"));
  EXPECT_THAT(refusal(tensor(R"("shape":[4611686018427387904,4611686018427387904],)" + type + "," + offsets), 24),
              HasSubstr("2^62"));
  EXPECT_THAT(refusal(tensor(R"("shape":[99999999999999999999],)" + type + "," + offsets), 24), HasSubstr("2^62"));
  EXPECT_THAT(refusal(tensor(R"("shape":[-1],)" + type + "," + offsets), 24), HasSubstr("whole number"));
  EXPECT_THAT(
      refusal(
          R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})",
          2),
      HasSubstr("twice"));
  EXPECT_THAT(
      refusal(
          R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}})",
          3),
      HasSubstr("begins at 1"));
  EXPECT_THAT(refusal("{} x", 0), HasSubstr("follows"));
  EXPECT_THAT(refusal("", 0), HasSubstr("expected"));
  EXPECT_THAT(refusal(R"({"a)", 0), HasSubstr("no end"));
}

TEST(Safetensors, LengthsAreBounded) {
  const auto length = [](std::uint64_t value, std::uint64_t file) {
    std::string bytes(8, '\0');
    for (std::size_t i = 0; i < 8; ++i) bytes[i] = static_cast<char>(value >> 8 * i);
    try {
      return std::to_string(safetensors_header_bytes(bytes, file));
    } catch (const Error& error) {
      return std::string(error.what());
    }
  };
  EXPECT_EQ(length(92, 100), "92");
  for (const std::uint64_t wrong :
       {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{93}, std::uint64_t{1} << 63, ~std::uint64_t{0}}) {
    EXPECT_THAT(length(wrong, 100), HasSubstr("2 to 92"));
  }
  EXPECT_THAT(length(kMaxSafetensorsHeader + 1, std::uint64_t{1} << 40), HasSubstr("100000000"));
}

TEST(Safetensors, AnyBytesAreReadOrRefused) {
  std::mt19937 random(1);
  const std::string good = kGood, interesting = "\"{}[]:,\\0129\x7f";
  int read = 0;
  for (int i = 0; i < 100'000; ++i) {
    std::string mutated = good;
    for (unsigned changes = 1 + random() % 4; changes > 0; --changes) {
      const std::size_t at = random() % mutated.size();
      switch (random() % 4) {
        case 0: mutated[at] = static_cast<char>(random()); break;
        case 1: mutated[at] = interesting[random() % interesting.size()]; break;
        case 2: mutated.erase(at, 1 + random() % 8); break;
        default: mutated.insert(at, mutated.substr(random() % mutated.size(), random() % 16)); break;
      }
      if (mutated.empty()) break;
    }
    try {
      const SafetensorsHeader header = parse(mutated, 32);
      ++read;
      for (const auto& [name, tensor] : header.tensors) {
        ASSERT_TRUE(tensor.begin <= tensor.end && tensor.end <= header.data_bytes) << mutated;
      }
    } catch (const Error&) {
    }
  }
  EXPECT_GT(read, 0);
}

}  // namespace
}  // namespace fairlead
