// Placements of MIG slices: the paper's 18, what does not fit, when idle slices are cut anew.
#include "decide/pipeline/mig_geometry.h"

#include <gtest/gtest.h>

#include <set>

namespace fairlead {
namespace {

const MigGeometry& a100() {
  return **mig_geometry("a100-80");
}
bool no_double(const MigProfile& one) {
  return one.type.name != "1g2x";
}

TEST(MigGeometry, AnA100HasEighteenConfigurationsAndTheWholeGpu) {
  for (const auto* gpu : {"a100-40", "a100-80", "h100-80", "h200-141"}) {
    const auto all = maximal_placements(**mig_geometry(gpu), {}, no_double);
    EXPECT_EQ(all.size(), 19u) << gpu;
    std::set<std::multiset<std::size_t>> multisets;
    for (const auto& one : all) {
      std::multiset<std::size_t> profiles;
      for (const MigPlacement& placement : one) profiles.insert(placement.profile);
      multisets.insert(profiles);
    }
    EXPECT_EQ(multisets.size(), 14u);
  }
  EXPECT_EQ(maximal_placements(a100(), {}, [](const MigProfile&) { return true; }).size(), 78u);
  EXPECT_EQ(maximal_placements(**mig_geometry("a30-24"), {}, no_double).size(), 5u);
}

TEST(MigGeometry, ThePapersPartitionsAreAmongThem) {
  for (const auto* text : {"4g,2g,1g", "3g,2g,2g", "7x1g", "3x2g,1g", "3g,4g"}) {
    const auto wanted = slices_from_text(a100(), text);
    ASSERT_TRUE(wanted) << text;
    bool found = false;
    for (const auto& one : maximal_placements(a100(), {}, no_double)) {
      std::vector<int> counts(a100().profiles.size());
      for (const MigPlacement& placement : one) ++counts[placement.profile];
      found = found || counts == *wanted;
    }
    EXPECT_TRUE(found) << text;
  }
}

TEST(MigGeometry, SlicesAreReadWithTheirNumber) {
  EXPECT_EQ(*slices_from_text(a100(), "4g,2x1g,1g2x,3x1g2x,2g.20gb"), (std::vector<int>{2, 4, 1, 0, 1, 0}));
  for (const auto* text : {"", "5g", "0x1g", "x1g", "99999x1g", "1g,,2g", "99999999999999999999x1g"}) {
    EXPECT_FALSE(slices_from_text(a100(), text)) << text;
  }
  EXPECT_FALSE(mig_geometry("v100"));
}

// Functions that fit the smallest slice: seven of those answer most.
double by_number(const std::vector<int>& counts) {
  double all = 0;
  for (const int one : counts) all += one;
  return all;
}

TEST(MigGeometry, IdleSlicesAreCutAnewBesideBusyOnesThatStay) {
  const auto p1 = [](bool four, bool two, bool one) {
    return std::vector<MigSlice>{{{4, 0}, four}, {{2, 4}, two}, {{0, 6}, one}};
  };
  const auto all = reslice(a100(), p1(true, true, true), by_number);
  ASSERT_TRUE(all);
  EXPECT_EQ(all->size(), 7u);
  const auto beside = reslice(a100(), p1(false, true, true), by_number);
  ASSERT_TRUE(beside);
  EXPECT_EQ((*beside)[0], (MigPlacement{4, 0}));
  EXPECT_EQ(beside->size(), 4u);
  EXPECT_FALSE(reslice(a100(), p1(false, false, true), by_number));
}

TEST(MigGeometry, ASecondThatIsNotEarnedBackIsNotSpent) {
  const std::vector<MigSlice> idle = {{{4, 0}, true}, {{2, 4}, true}, {{0, 6}, true}};
  EXPECT_FALSE(
      reslice(a100(), idle, by_number, {.takes = std::chrono::seconds(1), .horizon = std::chrono::seconds(1)}));
  EXPECT_FALSE(reslice(a100(), idle, by_number, {.least_gain = 3}));
}

}  // namespace
}  // namespace fairlead
