// Names of versions and aliases, and where the calls of an alias go.
#include "model/version.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>

namespace fairlead {
namespace {

FunctionAlias alias_with(std::map<std::uint64_t, double> weights, std::uint64_t version = 3) {
  return {.name = "live", .version = version, .description = "", .weights = std::move(weights), .revision_id = ""};
}

std::map<std::uint64_t, int> calls_by_version(const FunctionAlias& alias, int calls) {
  std::map<std::uint64_t, int> counts;
  for (int i = 0; i < calls; ++i) ++counts[choose_version(alias, fmt::format("a83f2c1e-0000-4000-8000-{:012x}", i))];
  return counts;
}

TEST(Version, AnAliasDividesItsCallsByTheirIds) {
  const auto counts = calls_by_version(alias_with({{4, 0.1}}), 10'000);
  ASSERT_EQ(counts.size(), 2u);
  EXPECT_NEAR(counts.at(4), 1000, 120);  // four standard deviations
  const auto three = calls_by_version(alias_with({{4, 0.25}, {5, 0.5}}), 10'000);
  EXPECT_NEAR(three.at(3), 2500, 180);
  EXPECT_NEAR(three.at(4), 2500, 180);
  EXPECT_NEAR(three.at(5), 5000, 200);
}

TEST(Version, TheSameIdAlwaysGoesToTheSameVersion) {
  const FunctionAlias alias = alias_with({{4, 0.5}});
  for (int i = 0; i < 100; ++i) {
    const std::string id = fmt::format("request-{}", i);
    EXPECT_EQ(choose_version(alias, id), choose_version(alias, id));
  }
  // So that no change of the hash goes unseen: nodes of two releases would disagree.
  EXPECT_EQ(calls_by_version(alias, 1000).at(4), 514);
}

TEST(Version, MoreWeightKeepsTheCallsThatWentThere) {
  for (int i = 0; i < 1000; ++i) {
    const std::string id = fmt::format("request-{}", i);
    if (choose_version(alias_with({{4, 0.1}}), id) != 4) continue;
    EXPECT_EQ(choose_version(alias_with({{4, 0.2}}), id), 4u);
  }
}

TEST(Version, AllOrNothingIsAllOrNothing) {
  EXPECT_EQ(calls_by_version(alias_with({}), 100).at(3), 100);
  EXPECT_EQ(calls_by_version(alias_with({{4, 1.0}}), 1000).at(4), 1000);
  EXPECT_EQ(calls_by_version(alias_with({}, 0), 100).at(0), 100);
}

TEST(Version, WeightsHaveBounds) {
  EXPECT_TRUE(validate_alias(alias_with({{4, 0.1}, {5, 0.9}})));
  EXPECT_TRUE(validate_alias(alias_with({{1, 0.25}, {2, 0.25}, {4, 0.25}, {5, 0.25}})));
  for (const auto& weights :
       std::vector<std::map<std::uint64_t, double>>{{{4, 0.6}, {5, 0.5}},
                                                    {{4, 0.0}},
                                                    {{4, -0.1}},
                                                    {{4, 1.1}},
                                                    {{4, std::nan("")}},
                                                    {{4, HUGE_VAL}},
                                                    {{3, 0.1}},
                                                    {{0, 0.1}},
                                                    {{1, .1}, {2, .1}, {4, .1}, {5, .1}, {6, .1}}}) {
    EXPECT_FALSE(validate_alias(alias_with(weights)));
  }
  EXPECT_FALSE(validate_alias(alias_with({{4, 0.1}}, 0))) << "$LATEST is no version that calls are divided with";
}

TEST(Version, NamesHaveBounds) {
  const auto named = [](std::string name) { return validate_alias({.name = std::move(name), .version = 1}); };
  for (const char* good : {"live", "a", "A-b_9", "9a"}) EXPECT_TRUE(named(good)) << good;
  EXPECT_TRUE(named(std::string(128, 'a')));
  for (const char* bad : {"", "1", "0123", "a b", "a/b", "a:b", "$LATEST", "ä", "a\n"}) EXPECT_FALSE(named(bad)) << bad;
  EXPECT_FALSE(named(std::string(129, 'a')));
  EXPECT_FALSE(validate_alias({.name = "a", .version = 1, .description = std::string(257, 'x')}));
}

TEST(Version, NumbersAreWrittenOneWay) {
  EXPECT_EQ(version_number("17"), 17u);
  EXPECT_EQ(version_number("18446744073709551615"), 18446744073709551615u);
  for (const char* none : {"", "0", "01", "-1", "+1", "1 ", " 1", "1a", "0x1", "18446744073709551616", "$LATEST"}) {
    EXPECT_EQ(version_number(none), 0u) << none;
  }
  EXPECT_EQ(version_name(0), "$LATEST");
  EXPECT_EQ(version_name(17), "17");
  EXPECT_EQ(version_arn("f", 0), "arn:aws:lambda:us-east-1:000000000000:function:f");
  EXPECT_EQ(version_arn("f", 3), "arn:aws:lambda:us-east-1:000000000000:function:f:3");
}

TEST(Version, NamesMayHaveAQualifier) {
  const auto read = [](const std::string& text) {
    const auto named = qualified_name_from(text);
    return named ? named->name + "|" + named->qualifier : std::string("refused");
  };
  EXPECT_EQ(read("f"), "f|");
  EXPECT_EQ(read("f:3"), "f|3");
  EXPECT_EQ(read("f:live"), "f|live");
  EXPECT_EQ(read("f:$LATEST"), "f|$LATEST");
  EXPECT_EQ(read("000000000000:function:f:3"), "f|3");
  EXPECT_EQ(read("arn:aws:lambda:us-east-1:000000000000:function:f"), "f|");
  EXPECT_EQ(read("arn:aws:lambda:us-east-1:000000000000:function:f:live"), "f|live");
  for (const char* bad : {"", ":", "f:", ":3", "f:a b", "f:03", "f:0", "f:3:4", "a:b:c:d:e", "f:$latest"}) {
    EXPECT_EQ(read(bad), "refused") << bad;
  }
}

}  // namespace
}  // namespace fairlead
