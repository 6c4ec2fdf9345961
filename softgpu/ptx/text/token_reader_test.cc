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

TEST(TokenReader, ADirectiveEndsWithItsOperandsNotWithItsLine) {
  for (const char* text :
       {".version 8.3", ".address_size 64", ".target sm_90a", ".target sm_80, texmode_independent, debug",
        ".file 1 \"a b.cu\"", ".file 1 \"a.cu\", 1700000000, 512", ".file\n1\n\"a.cu\"\n,\n1\n,\n2", ".loc 1 7 3",
        ".loc 1 7 3, function_name $L__info_string0, inlined_at 1 20 5",
        ".loc 2 7 3, function_name $L__info_string0 + 16, inlined_at 1 20 5",
        ".loc 1\n7\n3,\nfunction_name $L__info_string0+16,\ninlined_at 1 20 5", ".pragma \"nounroll\";",
        ".pragma \"nounroll\",\n\"used_bytes_mask 0xff\";"}) {
    for (const std::string next :
         {" add.s32 %r;", "\nadd.s32 %r;", " .target sm_80", " @%p bra L;", " } ", " L: ret;"}) {
      const std::string whole = text + next;
      TokenReader reader(whole);
      const TokenReader rest(next);
      ASSERT_TRUE(reader.is_passing_directive());
      EXPECT_TRUE(reader.skip_directive()) << message_of(reader);
      EXPECT_EQ(reader.token().text, rest.token().text) << whole;
    }
  }
  for (const char* text : {".version sm_80", ".target 80", ".file \"a.cu\"", ".file 1 a", ".loc L", ".loc 1 7 3, L",
                           ".loc 1 7 3, function_name 1", ".pragma nounroll;", ".pragma \"nounroll\" ret"}) {
    TokenReader reader(text);
    EXPECT_FALSE(reader.skip_directive()) << text;
    EXPECT_TRUE(reader.error().has_value()) << text;
  }
  EXPECT_FALSE(TokenReader(".reg .b32 %r;").is_passing_directive());
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
