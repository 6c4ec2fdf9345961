#include "wire/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

namespace fairlead::wire {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string file_of(const std::string& header, const std::string& data = "") {
  std::string file(8, '\0');
  const std::uint64_t length = header.size();
  std::memcpy(file.data(), &length, 8);
  return file + header + data;
}

TEST(Safetensors, AreReadAsTheyWereWritten) {
  const std::string file = write_safetensors({{"flags", ElementType::kU8, {3}, "abc"},
                                              {"a \"b\"", ElementType::kF64, {1, 2}, "0123456789abcdef"},
                                              {"none", ElementType::kBf16, {0, 7}, ""}});
  const auto read = read_safetensors(file);
  ASSERT_TRUE(read) << read.error().message;
  ASSERT_EQ(read->size(), 3U);
  EXPECT_EQ((*read)[0].name, "a \"b\"") << "by name";
  EXPECT_EQ((*read)[0].type, ElementType::kF64);
  EXPECT_THAT((*read)[0].shape, ElementsAre(1, 2));
  EXPECT_EQ((*read)[0].bytes, "0123456789abcdef");
  EXPECT_EQ((*read)[0].bytes.data() - file.data(), file.size() - 19) << "before the bytes of smaller elements";
  EXPECT_EQ(((*read)[0].bytes.data() - file.data()) % 8, 0);
  EXPECT_EQ((*read)[1].bytes, "abc");
  EXPECT_THAT((*read)[2].shape, ElementsAre(0, 7));
  EXPECT_EQ(read_safetensors(write_safetensors({}))->size(), 0U);
}

TEST(Safetensors, OfOthersMayHaveMetadataAndGaps) {
  const std::string file = file_of(
      R"({"__metadata__": {"format": "pt"}, "x": {"dtype": "I16", "shape": [], "data_offsets": [1, 3]},
          "b": {"dtype": "BOOL", "shape": [1], "data_offsets": [3, 4]}}  )",
      "-ab-");
  const auto read = read_safetensors(file);
  ASSERT_TRUE(read) << read.error().message;
  ASSERT_EQ(read->size(), 1U);
  EXPECT_EQ((*read)[0].bytes, "ab") << "a scalar is one element";
}

TEST(Safetensors, WhatIsNoneSaysWhy) {
  const std::pair<std::string, const char*> kWrong[] = {
      {"", "it has 0 bytes"},
      {"1234567", "it has 7 bytes"},
      {std::string(8, '\xff') + "{}", "do not begin with the length"},
      {file_of("{").substr(0, 8), "do not begin with the length"},
      {file_of("{"), "header"},
      {file_of("[]"), "must be an object"},
      {file_of(R"({"x": 1})"), "x must be an object with"},
      {file_of(R"({"x": {"dtype": "F32", "shape": [1]}})"), "data_offsets"},
      {file_of(R"({"x": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4], "more": 1}})", "abcd"), "'more'"},
      {file_of(R"({"x": {"dtype": 5, "shape": [1], "data_offsets": [0, 4]}})", "abcd"), "x.dtype"},
      {file_of(
           R"({"x": {"dtype": "U8", "shape": [3], "data_offsets": [0, 3]}, "y": {"dtype": "U8", "shape": [2], "data_offsets": [2, 4]}})",
           "abcd"),
       "its tensors have 5 bytes of 4"},
      {file_of(R"({"x": {"dtype": "F32", "shape": [1], "data_offsets": [0, 8]}})", "abcd"), "data_offsets[1] is 8"},
      {file_of(R"({"x": {"dtype": "F32", "shape": [2], "data_offsets": [0, 4]}})", "abcd"), "[0, 4]"},
      {file_of(R"({"x": {"dtype": "F32", "shape": [1], "data_offsets": [4, 0]}})", "abcd"), "[4, 0]"},
      {file_of(R"({"x": {"dtype": "F32", "shape": [1], "data_offsets": [0]}})", "abcd"), "[begin, end]"},
      {file_of(R"({"x": {"dtype": "U8", "shape": [-1], "data_offsets": [0, 1]}})", "abcd"), "shape[0]"},
      {file_of(R"({"x": {"dtype": "U8", "shape": [4294967296, 4294967296], "data_offsets": [0, 0]}})"),
       "shape [4294967296"},
      {file_of(R"({"x": {"dtype": "U8", "shape": [1], "data_offsets": [0, 1]}, "x": {}})", "a"), "twice"}};
  for (const auto& [file, says] : kWrong) {
    const auto read = read_safetensors(file);
    ASSERT_FALSE(read) << file;
    EXPECT_THAT(read.error().message, HasSubstr(says)) << file;
  }
  EXPECT_THAT(read_safetensors(file_of(std::string((64 << 10) + 1, ' '))).error().message,
              HasSubstr("may have at most 65536"));
  std::string many = "{";
  for (int i = 0; i < 1025; ++i) many += (i == 0 ? "\"" : ",\"") + std::to_string(i) + R"(": {})";
  EXPECT_THAT(read_safetensors(file_of(many + "}")).error().message, HasSubstr("at most 1024 tensors"));
}

}  // namespace
}  // namespace fairlead::wire
