#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "net/http_server.h"

namespace fairlead::net {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

TEST(ParseTarget, DecodesSegmentsAfterSplitting) {
  const auto target = parse_target("/a%2Fb/arn%3Aaws%3Alambda/c+d?x=1&y=a%26b+c&z&=");
  ASSERT_TRUE(target);
  EXPECT_THAT(target->segments, ElementsAre("a/b", "arn:aws:lambda", "c+d"));
  EXPECT_THAT(target->query, ElementsAre(Pair("x", "1"), Pair("y", "a&b c"), Pair("z", ""), Pair("", "")));
  EXPECT_EQ("a&b c", target->query_value("y"));
  EXPECT_EQ("", target->query_value("absent"));
}

TEST(ParseTarget, ATrailingSlashAddsNoSegment) {
  EXPECT_THAT(parse_target("/functions/")->segments, ElementsAre("functions"));
  EXPECT_THAT(parse_target("/")->segments, ElementsAre());
  EXPECT_THAT(parse_target("/a//b")->segments, ElementsAre("a", "", "b"));
}

TEST(ParseTarget, RefusesWhatIsNotAPath) {
  for (const char* text : {"", "*", "http://host/path", "/%", "/%2", "/%zz", "/%00", "/a?b=%f", "/a?%00=1"}) {
    const auto target = parse_target(text);
    ASSERT_FALSE(target) << text;
    EXPECT_EQ(Errc::kInvalidArgument, target.error().code) << text;
  }
}

}  // namespace
}  // namespace fairlead::net
