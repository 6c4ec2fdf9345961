#include "edge/native/byte_range.h"

#include <gtest/gtest.h>

namespace fairlead {
namespace {

constexpr std::uint64_t kMost = 1000;

std::optional<ByteRange> range(std::string_view header, std::uint64_t total = 250, std::uint64_t most = kMost) {
  return byte_range(header, total, most).value();
}

TEST(ByteRange, IsFromTheBeginningOrFromTheEnd) {
  EXPECT_EQ((ByteRange{0, 100}), range("bytes=0-99"));
  EXPECT_EQ((ByteRange{200, 50}), range("bytes=200-"));
  EXPECT_EQ((ByteRange{240, 10}), range("bytes=-10"));
  EXPECT_EQ((ByteRange{249, 1}), range("bytes=249-249"));
  EXPECT_EQ((ByteRange{1, 249}), range("bytes=1-18446744073709551615"));
  EXPECT_EQ((ByteRange{0, 250}), range("bytes=-9999"));
}

TEST(ByteRange, IsNoLongerThanIsSentAtOnce) {
  EXPECT_EQ((ByteRange{10, 20}), range("bytes=10-", 250, 20));
  EXPECT_EQ((ByteRange{150, 20}), range("bytes=-100", 250, 20));
}

TEST(ByteRange, WhatIsNotUnderstoodAsksForAll) {
  for (const char* header : {"", "bytes", "bytes=", "bytes=-", "bytes=a-b", "bytes=1-0", "lines=0-1", "bytes=0-1,5-6",
                             "bytes=-0", "bytes=18446744073709551616-", "bytes= 1-2"}) {
    EXPECT_EQ(std::nullopt, range(header)) << header;
  }
  EXPECT_EQ(std::nullopt, range("bytes=0-", 0));
}

TEST(ByteRange, BehindTheEndThereIsNone) {
  const auto none = byte_range("bytes=250-", 250, kMost);
  ASSERT_FALSE(none);
  EXPECT_EQ("Range is 'bytes=250-'; there are 250 bytes", none.error().message);
}

}  // namespace
}  // namespace fairlead
