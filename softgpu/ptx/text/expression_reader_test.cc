#include "softgpu/ptx/text/expression_reader.h"

#include <gtest/gtest.h>

#include <optional>

namespace softgpu::ptx {
namespace {

std::optional<Constant> value_of(const std::string& text) {
  TokenReader reader(text);
  Constant out;
  if (!read_expression(reader, out)) return std::nullopt;
  return out;
}

std::int64_t number(const std::string& text) {
  const auto value = value_of(text);
  EXPECT_TRUE(value) << text;
  return value ? static_cast<std::int64_t>(value->bits) : 0;
}

std::string error_of(const std::string& text) {
  TokenReader reader(text);
  Constant out;
  EXPECT_FALSE(read_expression(reader, out)) << text;
  return reader.error() ? reader.error()->message : "none";
}

TEST(ExpressionReader, OperatorsBindAsInC) {
  EXPECT_EQ(number("1 + 2 * 3"), 7);
  EXPECT_EQ(number("(1 + 2) * 3"), 9);
  EXPECT_EQ(number("10 - 3 - 2"), 5) << "from the left";
  EXPECT_EQ(number("1 | 2 ^ 3 & 2"), 1) << "1 | (2 ^ (3 & 2))";
  EXPECT_EQ(number("1 << 2 + 1"), 8);
  EXPECT_EQ(number("3 == 1 + 2 && 4 >= 5 || 1 < 2"), 1);
  EXPECT_EQ(number("7 % 4 / 2"), 1);
  EXPECT_EQ(number("~0 + -(-2)"), 1);
  EXPECT_EQ(number("!5 + !0"), 1);
  EXPECT_EQ(number("WARP_SZ * 2"), 64);
}

TEST(ExpressionReader, AnOperatorOfTwoCharactersHasNothingBetweenThem) {
  EXPECT_EQ(number("1 << 3"), 8);
  EXPECT_NE(error_of("1 < < 3"), "none");
}

TEST(ExpressionReader, AChoiceIsMadeLast) {
  EXPECT_EQ(number("1 == 1 ? 5 : 6"), 5);
  EXPECT_EQ(number("0 ? 1 : 0 ? 2 : 3"), 3);
  EXPECT_EQ(error_of("1 ? 2 ; 3"), "expected ':' before ';'");
}

TEST(ExpressionReader, AnOperationIsUnsignedWhenAnOperandIs) {
  EXPECT_EQ(number("-1 > 0"), 0);
  EXPECT_EQ(number("-1 > 0U"), 1);
  EXPECT_EQ(number("(.u64)-1 > 0"), 1);
  EXPECT_EQ(number("(.s64)0xffffffffffffffff < 0"), 1);
  EXPECT_EQ(number("0xffffffffffffffff < 0"), 0) << "it does not fit into 63 bits";
  EXPECT_EQ(number("-8 >> 1"), -4);
  EXPECT_EQ(number("(.u64)-8 >> 60"), 15);
}

TEST(ExpressionReader, EdgesOfArithmetic) {
  EXPECT_EQ(number("1 << 64"), 0);
  EXPECT_EQ(number("-1 >> 64"), -1);
  EXPECT_EQ(number("(-9223372036854775807 - 1) / -1"), INT64_MIN) << "which has no positive counterpart";
  EXPECT_EQ(number("(-9223372036854775807 - 1) % -1"), 0);
  EXPECT_EQ(error_of("4 / (2 - 2)"), "division by zero in a constant expression");
  EXPECT_EQ(error_of("4 % 0"), "division by zero in a constant expression");
}

TEST(ExpressionReader, NestingHasABoundThatTheNextExpressionDoesNotFeel) {
  const auto nested = [](int depth) {
    return std::string(static_cast<std::size_t>(depth), '(') + "1" + std::string(static_cast<std::size_t>(depth), ')');
  };
  EXPECT_EQ(number(nested(63)), 1);
  EXPECT_EQ(error_of(nested(64)), "constant expression nested more than 64 deep");
  EXPECT_EQ(error_of(std::string(100000, '-')), "constant expression nested more than 64 deep");
  std::string sum = "0";
  for (int i = 0; i < 200; ++i) sum += " + (1)";
  EXPECT_EQ(number(sum), 200);
}

TEST(ExpressionReader, ATermEndsBeforeASign) {
  TokenReader reader("4 * 2 + 1");
  Constant out;
  EXPECT_TRUE(read_term(reader, out));
  EXPECT_EQ(out.bits, 8u);
  EXPECT_TRUE(reader.is('+'));
}

TEST(ExpressionReader, WhatBeginsOne) {
  const auto starts = [](const char* text) { return starts_expression(TokenReader(text)); };
  for (const char* text : {"1", "-1", "+1", "~1", "!1", "(1)", "WARP_SZ", "-(1)", "!-1", "- -1"}) {
    EXPECT_TRUE(starts(text)) << text;
  }
  for (const char* text : {"%r1", "-%r1", "!%p1", "1.5", "-1.5", "[", "-[", "{", ";", ""}) {
    EXPECT_FALSE(starts(text)) << text;
  }
}

}  // namespace
}  // namespace softgpu::ptx
