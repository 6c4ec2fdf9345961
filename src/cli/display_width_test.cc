#include "cli/display_width.h"

#include <gtest/gtest.h>

#include "base/rng.h"

namespace fairlead::cli {
namespace {

TEST(DisplayWidth, CountsColumnsAndNotBytes) {
  EXPECT_EQ(display_width("hello"), 5u);
  EXPECT_EQ(display_width("größe"), 5u);
  EXPECT_EQ(display_width("模型"), 4u);
  EXPECT_EQ(display_width("e\u0301"), 1u) << "a combining accent";
  EXPECT_EQ(display_width("🚀"), 2u);
  EXPECT_EQ(display_width("\x1b\xff\xc3"), 3u) << "shown as ???";
  EXPECT_EQ(display_width("\xed\xa0\x80"), 3u) << "a surrogate is no character";
  EXPECT_EQ(display_width("\xc0\xaf"), 2u) << "nor is an overlong form";
}

TEST(DisplayWidth, CutsWithAMark) {
  EXPECT_EQ(cut_to("transformer", 5), "tran…");
  EXPECT_EQ(cut_to("five!", 5), "five!");
  EXPECT_EQ(cut_to("模型模型", 4), "模…") << "half a character is none";
  EXPECT_EQ(cut_to("abc", 0), "");
  EXPECT_EQ(cut_to("abc", 1), "…");
  EXPECT_EQ(cut_to("a\x1b[2J\xff", 9), "a?[2J?");
}

TEST(DisplayWidth, FitsExactly) {
  EXPECT_EQ(fit_to("ab", 4), "ab  ");
  EXPECT_EQ(fit_to("ab", 4, true), "  ab");
  EXPECT_EQ(fit_to("模型x", 4), "模… ");
}

TEST(DisplayWidth, WhateverTheBytesTheWidthIsWhatWasAskedFor) {
  Rng rng(7);
  for (int i = 0; i < 20'000; ++i) {
    std::string bytes;
    for (std::uint64_t n = rng.below(24); n > 0; --n)
      bytes += static_cast<char>(rng.below(3) == 0 ? 0xc0 + rng.below(64) : rng.below(256));
    const std::size_t columns = rng.below(12);
    EXPECT_EQ(display_width(fit_to(bytes, columns)), columns) << testing::PrintToString(bytes);
  }
}

}  // namespace
}  // namespace fairlead::cli
