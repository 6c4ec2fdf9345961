#include "runtime/shim/staging_budget.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "base/rng.h"
#include "wire/shim_frames.h"

namespace fairlead {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr std::uint64_t kG = wire::kStagingGranule;

Bytes granules(std::uint64_t count) {
  return Bytes(static_cast<std::int64_t>(count * kG));
}

TEST(StagingBudget, EveryProcessBeginsAtTheStartOfItsOwnArena) {
  StagingBudget budget(granules(8));
  const auto a = budget.allocate(1, 3 * kG);
  const auto b = budget.allocate(2, 5 * kG);
  ASSERT_TRUE(a && b);
  EXPECT_EQ(a->range, (StagingBudget::Range{1, 0, 3 * kG}));
  EXPECT_EQ(b->range, (StagingBudget::Range{2, 0, 5 * kG}));
  EXPECT_TRUE(a->fresh);
  EXPECT_EQ(budget.used(), granules(8));
  EXPECT_FALSE(budget.allocate(1, kG)) << "the budget is spent";
}

TEST(StagingBudget, PagesGivenBackAreThereForTheNextTime) {
  StagingBudget budget(granules(8));
  ASSERT_TRUE(budget.allocate(1, 3 * kG));
  EXPECT_TRUE(budget.give_back(1, 0, 3 * kG));
  EXPECT_EQ(budget.used(), granules(3));
  EXPECT_EQ(budget.granted(), Bytes(0));
  const auto again = budget.allocate(1, 2 * kG);
  ASSERT_TRUE(again);
  EXPECT_FALSE(again->fresh);
  EXPECT_TRUE(budget.allocate(1, 2 * kG)->fresh) << "one of the two is new";
}

TEST(StagingBudget, KeptPagesOfWhoWasSwappedLongestAgoGoFirst) {
  StagingBudget budget(granules(8));
  ASSERT_TRUE(budget.allocate(1, 4 * kG));
  ASSERT_TRUE(budget.allocate(2, 4 * kG));
  EXPECT_TRUE(budget.give_back(2, 0, 4 * kG));
  EXPECT_TRUE(budget.give_back(1, 0, 4 * kG));
  const auto grant = budget.allocate(3, 5 * kG);
  ASSERT_TRUE(grant);
  EXPECT_THAT(grant->dropped, ElementsAre(StagingBudget::Range{2, 0, 4 * kG}, StagingBudget::Range{1, 3 * kG, kG}));
  EXPECT_EQ(budget.used(), granules(8));
}

TEST(StagingBudget, OwnKeptPagesElsewhereMakeRoomToo) {
  StagingBudget budget(granules(4));
  ASSERT_TRUE(budget.allocate(1, kG));
  ASSERT_TRUE(budget.allocate(1, kG));
  ASSERT_TRUE(budget.allocate(1, kG));
  EXPECT_TRUE(budget.give_back(1, 0, kG));
  const auto grant = budget.allocate(1, kG);
  ASSERT_TRUE(grant);
  EXPECT_EQ(grant->range.offset, 0u);
  EXPECT_THAT(grant->dropped, IsEmpty());
  EXPECT_TRUE(budget.give_back(1, kG, kG));
  EXPECT_FALSE(budget.allocate(1, 2 * kG)) << "granules 1 and 3 are free, not in one piece";
  EXPECT_TRUE(budget.allocate(1, kG));
}

TEST(StagingBudget, OnlyWhatWasGrantedCanBeGivenBack) {
  StagingBudget budget(granules(8));
  ASSERT_TRUE(budget.allocate(1, 2 * kG));
  EXPECT_FALSE(budget.give_back(1, 0, kG)) << "a part";
  EXPECT_FALSE(budget.give_back(1, kG, kG)) << "from the middle";
  EXPECT_FALSE(budget.give_back(1, 1, 2 * kG)) << "not on a granule";
  EXPECT_FALSE(budget.give_back(2, 0, 2 * kG)) << "another's";
  EXPECT_TRUE(budget.give_back(1, 0, 2 * kG));
  EXPECT_FALSE(budget.give_back(1, 0, 2 * kG)) << "twice";
  EXPECT_EQ(budget.used(), granules(2));
}

TEST(StagingBudget, ADeadProcessLeavesNothing) {
  StagingBudget budget(granules(4));
  ASSERT_TRUE(budget.allocate(1, kG));
  ASSERT_TRUE(budget.allocate(1, 2 * kG));
  EXPECT_TRUE(budget.give_back(1, 0, kG));
  budget.remove(1);
  budget.remove(7);
  EXPECT_EQ(budget.used(), Bytes(0));
  EXPECT_TRUE(budget.allocate(2, 4 * kG));
}

TEST(StagingBudget, LessThanAGranuleIsNone) {
  StagingBudget budget(Bytes(kG - 1));
  EXPECT_EQ(budget.budget(), Bytes(0));
  EXPECT_FALSE(budget.allocate(1, kG));
}

// A naive model: pages as a set per process. Grants never overlap, pages never exceed the budget, and what is dropped was
// there and was not granted.
TEST(StagingBudget, PagesNeverExceedTheBudgetUnderRandomUse) {
  Rng rng(4);
  constexpr std::uint64_t kTotal = 24;
  StagingBudget budget(granules(kTotal));
  std::map<StagingBudget::Process, std::set<std::uint64_t>> pages;
  std::map<StagingBudget::Process, std::map<std::uint64_t, std::uint64_t>> grants;
  int refused = 0, dropped = 0;
  for (int round = 0; round < 20'000; ++round) {
    const StagingBudget::Process process = 1 + rng.below(4);
    auto& own = grants[process];
    if (const std::uint64_t what = rng.below(100); what < 50) {
      const std::uint64_t count = 1 + rng.below(9);
      const auto grant = budget.allocate(process, count * kG);
      if (!grant && ++refused) continue;
      for (const auto& range : grant->dropped) {
        for (std::uint64_t g = range.offset / kG; g < (range.offset + range.bytes) / kG; ++g, ++dropped) {
          ASSERT_EQ(pages[range.process].erase(g), 1u);
          for (const auto& [first, size] : grants[range.process]) ASSERT_FALSE(g >= first && g < first + size);
        }
      }
      const std::uint64_t begin = grant->range.offset / kG;
      for (const auto& [first, size] : own) ASSERT_TRUE(begin + count <= first || first + size <= begin);
      own[begin] = count;
      for (std::uint64_t g = begin; g < begin + count; ++g) pages[process].insert(g);
    } else if (what < 98 && !own.empty()) {
      const auto any = std::next(own.begin(), static_cast<std::ptrdiff_t>(rng.below(own.size())));
      ASSERT_TRUE(budget.give_back(process, any->first * kG, any->second * kG));
      own.erase(any);
    } else if (what >= 98) {
      budget.remove(process);
      pages.erase(process);
      own.clear();
    }
    std::uint64_t sum = 0;
    for (const auto& [id, set] : pages) sum += set.size();
    ASSERT_EQ(budget.used(), granules(sum));
    ASSERT_LE(sum, kTotal);
  }
  EXPECT_GT(refused, 100);
  EXPECT_GT(dropped, 100);
}

}  // namespace
}  // namespace fairlead
