// Seats over time: what is kept, and that what is forgotten leaves the picture whole.
#include "decide/scaling/placement_log.h"

#include <gtest/gtest.h>

#include "base/rng.h"

namespace fairlead {
namespace {

PlacementEntry entry(std::int64_t at_ms, std::string function, std::map<GpuId, std::size_t> seats) {
  return {.at_ms = at_ms,
          .function = std::move(function),
          .width_percent = 24,
          .quota_percent = 50,
          .seats = std::move(seats)};
}

TEST(PlacementLog, OnlyChangesAreKept) {
  PlacementLog log;
  log.note(entry(0, "f", {}));
  EXPECT_TRUE(log.entries().empty()) << "it had none before";
  log.note(entry(1, "f", {{GpuId(1), 1}}));
  log.note(entry(2, "f", {{GpuId(1), 1}}));
  EXPECT_EQ(log.entries().size(), 1u);
  PlacementEntry wider = entry(3, "f", {{GpuId(1), 1}});
  wider.width_percent = 48;
  log.note(wider);
  log.note(entry(4, "f", {}));
  log.note(entry(5, "f", {}));
  EXPECT_EQ(log.entries().size(), 3u);
}

TEST(PlacementLog, WhoIsDeletedIsInNoPicture) {
  PlacementLog log;
  for (std::int64_t at = 0; at < 3000; ++at) log.note(entry(at, at % 2 == 0 ? "f" : "g", {{GpuId(1), 1 + at % 3}}));
  log.forget("f");
  for (const PlacementEntry& one : log.entries()) ASSERT_EQ(one.function, "g");
  log.note(entry(3000, "f", {{GpuId(1), 1}}));
  EXPECT_EQ(log.entries().back().function, "f") << "somebody else's of that name";
}

// Who has what at a moment, by reading the entries up to it, is the same as with a log that forgets nothing.
TEST(PlacementLog, WhatIsForgottenLeavesThePictureWhole) {
  PlacementLog log;
  Rng rng(7);
  std::map<std::string, std::map<GpuId, std::size_t>> truth;
  for (std::int64_t at = 1; at < 5000; ++at) {
    const std::string function(1, static_cast<char>('a' + rng.below(5)));
    std::map<GpuId, std::size_t> seats;
    if (rng.below(4) > 0) seats[GpuId(1 + rng.below(3))] = 1 + rng.below(2);
    truth[function] = seats;
    log.note(entry(at, function, seats));
    if (at % 50 != 0) continue;
    std::map<std::string, std::map<GpuId, std::size_t>> read;
    const auto entries = log.entries();
    ASSERT_LE(entries.size(), PlacementLog::kMostEntries + 5);
    for (const PlacementEntry& one : entries) read[one.function] = one.seats;
    for (const auto& [name, wanted] : truth) ASSERT_EQ(read[name], wanted) << name << " at " << at;
  }
}

}  // namespace
}  // namespace fairlead
