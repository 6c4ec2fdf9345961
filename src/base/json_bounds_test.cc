#include "base/json_bounds.h"

#include <gtest/gtest.h>

#include <string>

namespace fairlead {
namespace {

std::string message(std::string_view text, const JsonBounds& bounds) {
  const Status status = check_json_bounds(text, "it", bounds);
  return status ? "" : status.error().message;
}

std::string nested(std::size_t depth) {
  return std::string(depth, '[') + std::string(depth, ']');
}

TEST(JsonBounds, DepthIsBounded) {
  EXPECT_EQ(message(nested(64), {}), "");
  EXPECT_EQ(message(nested(65), {}), "it: it is nested deeper than 64 levels");
  EXPECT_EQ(message(nested(200'000), {}), "it: it is nested deeper than 64 levels");
  EXPECT_EQ(message(R"({"a":{"a":{}}})", {.depth = 2}), "it: it is nested deeper than 2 levels");
}

TEST(JsonBounds, ValuesAreBounded) {
  EXPECT_EQ(message("[1,2,3]", {.values = 4}), "");
  EXPECT_EQ(message("[1,2,3,4]", {.values = 4}), "it: it has more than 4 values; at most so many are possible");
  EXPECT_EQ(message(R"({"a":1})", {.values = 2}), "it: it has more than 2 values; at most so many are possible");
}

TEST(JsonBounds, WhatAStringHoldsIsNoStructure) {
  EXPECT_EQ(message(R"(["[[[[,,,,:{{", "\"[[[", "\\", []])", {.depth = 2, .values = 7}), "");
  EXPECT_EQ(message(R"(["\\\"[[["])", {.depth = 1}), "");
  EXPECT_EQ(message(R"(["\\"[[[])", {.depth = 3}), "it: it is nested deeper than 3 levels");
}

TEST(JsonBounds, WhatIsNotJsonEnds) {
  for (const char* const text : {"", "]]]]", "\"", "\"\\", "[\"", "}{", "\\\""})
    EXPECT_EQ(message(text, {}), "") << text;
}

}  // namespace
}  // namespace fairlead
