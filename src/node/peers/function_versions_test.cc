#include "node/peers/function_versions.h"

#include <gmock/gmock.h>
#include <rapidcheck/gtest.h>

namespace fairlead {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(FunctionVersions, TheLastWriterWinsAndWhoHasSeenAChangeComesAfterIt) {
  FunctionVersions versions;
  versions.set("f", {.ms = 100, .node = "a"});
  const FunctionVersion behind = versions.next("f", 5, "b");  // its clock is far behind
  EXPECT_EQ(behind.ms, 101);
  EXPECT_TRUE((FunctionVersion{.ms = 100, .node = "a"}) < behind);
  EXPECT_TRUE((FunctionVersion{.ms = 100, .node = "a"}) < (FunctionVersion{.ms = 100, .node = "b"}));
  EXPECT_EQ(versions.next("g", 5, "b").ms, 5);
}

TEST(FunctionVersions, WhatIsMissingIsWhatIsNewerElsewhere) {
  FunctionVersions mine, theirs;
  mine.set("same", {.ms = 1, .node = "a"});
  mine.set("newer-here", {.ms = 5, .node = "a"});
  mine.set("older-here", {.ms = 5, .node = "a"});
  theirs.set("same", {.ms = 1, .node = "a"});
  theirs.set("newer-here", {.ms = 4, .node = "b"});
  theirs.set("older-here", {.ms = 5, .node = "b", .is_deleted = true});
  theirs.set("unknown", {.ms = 1, .node = "b"});
  EXPECT_THAT(mine.missing(theirs, 0).names, ElementsAre("older-here", "unknown"));
  EXPECT_THAT(theirs.missing(mine, 0).names, ElementsAre("newer-here"));
  EXPECT_THAT(mine.missing(mine, 0).names, IsEmpty());
}

TEST(FunctionVersions, OfAPeerOnlyWhatIsTooFarAheadIsRefused) {
  constexpr std::int64_t kNow = 1'000'000, kMost = kNow + FunctionVersions::kMostAheadMs;
  FunctionVersions mine, theirs;
  mine.set("known", {.ms = kMost + 1, .node = "b"});
  theirs.set("known", {.ms = kMost + 1, .node = "b"});
  theirs.set("just-so", {.ms = kMost, .node = "b"});
  theirs.set("ahead", {.ms = kMost + 1, .node = "b"});
  theirs.set("further", {.ms = kMost + FunctionVersions::kMostAheadMs, .node = "b"});
  const auto missing = mine.missing(theirs, kNow);
  EXPECT_THAT(missing.names, ElementsAre("just-so"));
  EXPECT_EQ(missing.refused.count, 2u) << "what is known here is refused to nobody";
  EXPECT_EQ(missing.refused.text(),
            "function further has a version 48 hours ahead of this node's clock, the furthest of 2");
  EXPECT_EQ(mine.missing(theirs, kNow + 1).names.size(), 2u) << "the clock has come near it";
}

TEST(FunctionVersions, WhatIsKnownHereIsReadHoweverFarAheadAndComesBeforeTheNext) {
  const FunctionVersions read = FunctionVersions::parse("4102444800000 a there f\n2 a there g\n").value();
  EXPECT_EQ(read.all().size(), 2u);
  EXPECT_EQ(read.too_far_ahead(1).count, 1u);
  EXPECT_EQ(read.too_far_ahead(1).function, "f");
  EXPECT_EQ(read.too_far_ahead(4102444800000).count, 0u);
  EXPECT_TRUE(*read.find("f") < read.next("f", 1, "a"));
  const FunctionVersions last = FunctionVersions::parse("9223372036854775807 a there f\n").value();
  EXPECT_EQ(last.next("f", 1, "a").ms, 9223372036854775807);
}

TEST(FunctionVersions, ComeBackAsText) {
  FunctionVersions versions;
  versions.set("f", {.ms = 100, .node = "a"});
  versions.set("g", {.ms = 200, .node = "b.c", .is_deleted = true});
  const FunctionVersions read = FunctionVersions::parse(versions.text()).value();
  EXPECT_EQ(read.all(), versions.all());
  EXPECT_EQ(read.digest(), versions.digest());
}

TEST(FunctionVersions, LinesThatAreNoneAreRefused) {
  for (const char* text : {"x a there f\n", "-1 a there f\n", "1 a gone f\n", "1 a there f g\n", "1 a there\n",
                           "1  there f\n", "1 a there f/g\n", "\n", "9223372036854775808 a there f\n"}) {
    EXPECT_FALSE(FunctionVersions::parse(text)) << text;
  }
  EXPECT_TRUE(FunctionVersions::parse(""));
}

TEST(FunctionVersions, DeletionsAreBoundedAndTheOldestGo) {
  FunctionVersions versions;
  versions.set("there", {.ms = 0, .node = "a"});
  for (std::size_t i = 0; i <= FunctionVersions::kMostDeleted; ++i) {
    versions.set("f" + std::to_string(i), {.ms = static_cast<std::int64_t>(i), .node = "a", .is_deleted = true});
  }
  EXPECT_EQ(versions.all().size(), FunctionVersions::kMostDeleted + 1);
  EXPECT_EQ(versions.find("f0"), nullptr);
  EXPECT_NE(versions.find("there"), nullptr);
}

// What the state is, not how it came about; and two nodes that exchange what is missing agree.
RC_GTEST_PROP(FunctionVersions, DigestsAreOfTheStateAlone, ()) {
  FunctionVersions one, other;
  const auto changes = *rc::gen::container<std::vector<std::tuple<int, int, bool>>>(
      rc::gen::tuple(rc::gen::inRange(0, 5), rc::gen::inRange(0, 20), rc::gen::arbitrary<bool>()));
  for (const auto& [function, ms, deleted] : changes) {
    (ms % 2 != 0 ? one : other)
        .set("f" + std::to_string(function), {.ms = ms, .node = ms % 2 != 0 ? "a" : "b", .is_deleted = deleted});
  }
  for (const std::string& name : one.missing(other, 0).names) one.set(name, *other.find(name));
  for (const std::string& name : other.missing(one, 0).names) other.set(name, *one.find(name));
  RC_ASSERT(one.all() == other.all());
  RC_ASSERT(one.digest() == other.digest());
}

}  // namespace
}  // namespace fairlead
