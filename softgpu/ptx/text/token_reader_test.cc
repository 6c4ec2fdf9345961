#include "softgpu/ptx/text/token_reader.h"

#include <gtest/gtest.h>

namespace softgpu::ptx {
namespace {

std::string message_of(const TokenReader& reader) {
  return reader.error() ? reader.error()->message : "none";
}

TEST(TokenReader, AChainEndsAtTheFirstThatFails) {
  TokenReader reader("a , 7 .word");
  std::string_view name;
  std::size_t count = 0;
  EXPECT_TRUE(reader.expect_name(name, "a name") && reader.expect(',') && reader.expect_count(count, "a number"));
  EXPECT_EQ(name, "a");
  EXPECT_EQ(count, 7u);
  EXPECT_TRUE(reader.is_dotted("word"));
  EXPECT_FALSE(reader.is_dotted("wor"));
  EXPECT_FALSE(reader.error());
  EXPECT_FALSE(reader.expect(';'));
  EXPECT_EQ(message_of(reader), "expected ';' before 'word'");
}

TEST(TokenReader, TheFirstErrorStays) {
  TokenReader reader("a\n\nb");
  EXPECT_FALSE(reader.fail("first", LoadError::Kind::kUnsupported));
  reader.advance();
  EXPECT_FALSE(reader.fail("second"));
  EXPECT_EQ(message_of(reader), "first");
  EXPECT_EQ(reader.error()->line, 1);
  EXPECT_EQ(reader.error()->kind, LoadError::Kind::kUnsupported);
}

TEST(TokenReader, AnErrorIsAtTheTokenUnlessItSaysALine) {
  TokenReader token("\n\nb"), line("\n\nb");
  token.fail_expected("a");
  line.fail_at(2, "why");
  EXPECT_EQ(token.error()->line, 3);
  EXPECT_EQ(line.error()->line, 2);
}

TEST(TokenReader, WhatIsAheadIsNotTaken) {
  TokenReader reader("a : b");
  EXPECT_EQ(reader.following().text, ":");
  EXPECT_EQ(reader.token().text, "a");
  EXPECT_FALSE(reader.accept(':'));
  reader.advance();
  EXPECT_TRUE(reader.accept(':'));
  EXPECT_EQ(reader.following().kind, Token::Kind::kEnd);
}

TEST(TokenReader, CountsHaveABound) {
  std::size_t count = 0;
  TokenReader least("1099511627776"), more("1099511627777"), word("x");
  EXPECT_TRUE(least.expect_count(count, "an extent"));
  EXPECT_EQ(count, std::size_t{1} << 40);
  EXPECT_FALSE(more.expect_count(count, "an extent"));
  EXPECT_EQ(message_of(more), "expected an extent, at most 2^40, before '1099511627777'");
  EXPECT_FALSE(word.expect_count(count, "an extent"));
}

TEST(TokenReader, WhatIsSkippedEndsWithItsLineOrItsSection) {
  TokenReader line("file 1 \"a\" 2\nb"), section("section .debug {\n.b8 1\n} b"), unfinished("section {\n.b8 1\n");
  EXPECT_TRUE(line.skip_line());
  EXPECT_EQ(line.token().text, "b");
  EXPECT_TRUE(section.skip_section());
  EXPECT_EQ(section.token().text, "b");
  EXPECT_FALSE(unfinished.skip_section());
  EXPECT_TRUE(unfinished.is_end());
}

}  // namespace
}  // namespace softgpu::ptx
