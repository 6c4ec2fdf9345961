#include "wire/element_values.h"

#include <gmock/gmock.h>

#include <cmath>
#include <cstring>
#include <limits>

namespace fairlead::wire {
namespace {

using nlohmann::json;
using testing::HasSubstr;

std::string raw(std::initializer_list<int> bytes) {
  std::string text;
  for (const int byte : bytes) text += static_cast<char>(byte);
  return text;
}

template <typename T>
std::string raw_of(std::initializer_list<T> values) {
  std::string text;
  for (const T value : values) text.append(reinterpret_cast<const char*>(&value), sizeof value);
  return text;
}

BufferSpec buffer(ElementType type, std::vector<std::uint64_t> shape, std::size_t bytes) {
  return {.name = "x", .bytes = Bytes(static_cast<std::int64_t>(bytes)), .type = type, .shape = std::move(shape)};
}

Result<std::string> element(ElementType type, const json& value) {
  Status status;
  std::string out;
  append_element(type, JsonValue(value, status), out);
  if (!status) return fail(status.error());
  return out;
}

std::string error_of(ElementType type, const json& value) {
  const auto appended = element(type, value);
  return appended ? "accepted" : appended.error().message;
}

Result<std::string> elements(const BufferSpec& spec, const json& list) {
  Status status;
  std::string out = elements_from_json(spec, JsonValue(list, status));
  if (!status) return fail(status.error());
  return out;
}

template <typename T>
void expect_bounds_of(ElementType type) {
  using Limits = std::numeric_limits<T>;
  EXPECT_EQ(element(type, Limits::min()).value(), raw_of<T>({Limits::min()}));
  EXPECT_EQ(element(type, Limits::max()).value(), raw_of<T>({Limits::max()}));
  if constexpr (sizeof(T) < 8) {
    EXPECT_FALSE(element(type, std::int64_t{Limits::min()} - 1));
    EXPECT_FALSE(element(type, std::int64_t{Limits::max()} + 1));
  }
}

TEST(ElementValues, WholeNumbersReachToTheBoundsOfTheirTypeAndNoFurther) {
  expect_bounds_of<std::int8_t>(ElementType::kS8);
  expect_bounds_of<std::uint8_t>(ElementType::kU8);
  expect_bounds_of<std::int16_t>(ElementType::kS16);
  expect_bounds_of<std::uint16_t>(ElementType::kU16);
  expect_bounds_of<std::int32_t>(ElementType::kS32);
  expect_bounds_of<std::uint32_t>(ElementType::kU32);
  expect_bounds_of<std::int64_t>(ElementType::kS64);
  expect_bounds_of<std::uint64_t>(ElementType::kU64);
  EXPECT_FALSE(element(ElementType::kU64, -1));
  EXPECT_FALSE(element(ElementType::kS64, std::uint64_t{1} << 63));
  EXPECT_THAT(error_of(ElementType::kU8, 256), HasSubstr("is 256; a u8 is a whole number between 0 and 255"));
  EXPECT_THAT(error_of(ElementType::kS32, 1.5), HasSubstr("is 1.5"));
  EXPECT_THAT(error_of(ElementType::kS32, "1"), HasSubstr("is no number"));
}

TEST(ElementValues, NumbersOf16BitsAreRoundedToTheNearestAndTiesToEven) {
  EXPECT_EQ(element(ElementType::kF16, 1.5).value(), raw({0x00, 0x3e}));
  EXPECT_EQ(element(ElementType::kF16, -2).value(), raw({0x00, 0xc0}));
  EXPECT_EQ(element(ElementType::kF16, -0.0).value(), raw({0x00, 0x80}));
  EXPECT_EQ(element(ElementType::kF16, 1 + std::ldexp(1, -11)).value(), raw({0x00, 0x3c})) << "a tie, down";
  EXPECT_EQ(element(ElementType::kF16, 1 + 3 * std::ldexp(1, -11)).value(), raw({0x02, 0x3c})) << "a tie, up";
  EXPECT_EQ(element(ElementType::kF16, 1.9999).value(), raw({0x00, 0x40})) << "the carry runs into the exponent";
  EXPECT_EQ(element(ElementType::kF16, std::ldexp(1, -24)).value(), raw({0x01, 0x00})) << "the least of all";
  EXPECT_EQ(element(ElementType::kF16, std::ldexp(1, -26)).value(), raw({0x00, 0x00}));
  EXPECT_EQ(element(ElementType::kBf16, 1.5).value(), raw({0xc0, 0x3f}));
  EXPECT_EQ(element(ElementType::kBf16, 3.0e38).value(), raw({0x62, 0x7f}));
}

TEST(ElementValues, WhatIsBeyondATypesRangeIsRefused) {
  EXPECT_EQ(element(ElementType::kF16, 65504).value(), raw({0xff, 0x7b}));
  EXPECT_EQ(element(ElementType::kF16, 65519.9).value(), raw({0xff, 0x7b})) << "rounded down to the largest";
  EXPECT_THAT(error_of(ElementType::kF16, 65520), HasSubstr("beyond the range of f16"));
  EXPECT_THAT(error_of(ElementType::kF16, 1e300), HasSubstr("beyond the range of f16"));
  EXPECT_THAT(error_of(ElementType::kBf16, 3.4e38), HasSubstr("beyond the range of bf16"));
  EXPECT_EQ(element(ElementType::kF32, 3.4028234e38).value(), raw_of({3.4028234e38f}));
  EXPECT_THAT(error_of(ElementType::kF32, 3.5e38), HasSubstr("beyond the range of f32"));
  EXPECT_EQ(element(ElementType::kF64, 1e300).value(), raw_of({1e300}));
  EXPECT_THAT(error_of(ElementType::kF32, nullptr), HasSubstr("give what is not finite as base64"));
}

TEST(ElementValues, ComplexOnesArePairs) {
  EXPECT_EQ(element(ElementType::kC64, {1, -2}).value(), raw_of({1.0f, -2.0f}));
  EXPECT_EQ(element(ElementType::kC128, {0.5, 1e300}).value(), raw_of({0.5, 1e300}));
  EXPECT_THAT(error_of(ElementType::kC64, 1), HasSubstr("must be a pair [re, im]"));
  EXPECT_THAT(error_of(ElementType::kC64, {1, 2, 3}), HasSubstr("must be a pair"));
  EXPECT_THAT(error_of(ElementType::kC64, {1, 1e39}), HasSubstr("[1] is 1e+39, beyond the range"));
}

TEST(ElementValues, AListIsFlatOrNestedAsTheShape) {
  const BufferSpec spec = buffer(ElementType::kS16, {2, 3}, 12);
  const std::string expected = raw_of<std::int16_t>({1, 2, 3, 4, 5, 6});
  EXPECT_EQ(elements(spec, {1, 2, 3, 4, 5, 6}).value(), expected);
  EXPECT_EQ(elements(spec, json::parse("[[1,2,3],[4,5,6]]")).value(), expected);
  const auto error = [&](const char* text) { return elements(spec, json::parse(text)).error().message; };
  EXPECT_THAT(error("[1,2,3,4,5]"), HasSubstr("has 5 elements; 6 are needed"));
  EXPECT_THAT(error("[[1,2,3]]"), HasSubstr("has 1 elements; 2 are needed"));
  EXPECT_THAT(error("[[1,2,3],[4,5]]"), HasSubstr("[1] has 2 elements; 3 are needed"));
  EXPECT_THAT(error("[[1,2,3],4]"), HasSubstr("[1] must be a list of 3"));
  EXPECT_THAT(error("[[1,2,3],[4,5,\"6\"]]"), HasSubstr("[1][2] is no number"));
  EXPECT_THAT(error("7"), HasSubstr("must be a list of 6"));
  EXPECT_THAT(elements(buffer(ElementType::kBytes, {}, 2), {1, 2}).error().message, HasSubstr("as base64"));
}

TEST(ElementValues, OfComplexNumbersAFlatListOfPairsIsNotTakenForANestedOne) {
  const BufferSpec spec = buffer(ElementType::kC64, {1, 2}, 16);
  const std::string expected = raw_of({1.0f, 2.0f, 3.0f, 4.0f});
  EXPECT_EQ(elements(spec, json::parse("[[1,2],[3,4]]")).value(), expected);
  EXPECT_EQ(elements(spec, json::parse("[[[1,2],[3,4]]]")).value(), expected);
}

TEST(ElementValues, ContentsAreNestedInTheFewestDigits) {
  EXPECT_EQ(elements_to_json(buffer(ElementType::kF32, {2, 2}, 16), raw_of({0.1f, -0.0f, 1e20f, 3.0f})).value(),
            "[[0.1,-0.0],[1e+20,3]]");
  EXPECT_EQ(elements_to_json(buffer(ElementType::kU8, {}, 3), raw({0, 128, 255})).value(), "[0,128,255]");
  EXPECT_EQ(elements_to_json(buffer(ElementType::kS8, {}, 2), raw({0x80, 0x7f})).value(), "[-128,127]");
  EXPECT_EQ(elements_to_json(buffer(ElementType::kC64, {1}, 8), raw_of({1.5f, -2.0f})).value(), "[[1.5,-2]]");
  EXPECT_EQ(elements_to_json(buffer(ElementType::kF32, {0}, 0), "").value(), "[]");
}

TEST(ElementValues, WhatIsNotFiniteOrOfAnotherSizeHasNoText) {
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_FALSE(elements_to_json(buffer(ElementType::kF32, {}, 8), raw_of({1.0f, infinity})));
  EXPECT_FALSE(elements_to_json(buffer(ElementType::kC64, {}, 8), raw_of({1.0f, std::nanf("")})));
  EXPECT_FALSE(elements_to_json(buffer(ElementType::kF16, {}, 2), raw({0x00, 0x7c}))) << "infinity";
  EXPECT_FALSE(elements_to_json(buffer(ElementType::kBf16, {}, 2), raw({0xc0, 0xff}))) << "no number";
  EXPECT_FALSE(elements_to_json(buffer(ElementType::kU8, {}, 3), "ab"));
  EXPECT_FALSE(elements_to_json(buffer(ElementType::kU8, {2, 2}, 3), "abc")) << "its shape is of another size";
  EXPECT_FALSE(elements_to_json(buffer(ElementType::kBytes, {}, 1), "a"));
}

// Every finite number of 16 bits, which are few enough.
TEST(ElementValues, Every16BitNumberReadsBackAsItself) {
  for (const ElementType type : {ElementType::kF16, ElementType::kBf16}) {
    int finite = 0;
    for (int bits = 0; bits < 0x10000; ++bits) {
      const std::string contents = raw({bits & 0xff, bits >> 8});
      const auto text = elements_to_json(buffer(type, {}, 2), contents);
      if (!text) continue;
      ++finite;
      ASSERT_EQ(elements(buffer(type, {}, 2), json::parse(*text)).value(), contents) << *text;
    }
    EXPECT_EQ(finite, type == ElementType::kF16 ? 2 * 31 * 1024 : 2 * 255 * 128);
  }
}

}  // namespace
}  // namespace fairlead::wire
