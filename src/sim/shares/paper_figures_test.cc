// The paper's figures on the modelled device, at a small size: what each is there to show, and what it must not show.
#include "sim/shares/paper_figures.h"

#include <gtest/gtest.h>

namespace fairlead::sim {
namespace {

using namespace std::chrono_literals;

double number(const SharesRow& row, std::string_view name) {
  for (const auto& [known, value] : row.numbers) {
    if (known == name) return value;
  }
  ADD_FAILURE() << name;
  return 0;
}

const SharesRow& row_of(const std::vector<SharesRow>& rows, std::string_view scheduler, std::string_view workload) {
  for (const SharesRow& row : rows) {
    if (row.scheduler == scheduler && row.workload == workload) return row;
  }
  ADD_FAILURE() << scheduler << ", " << workload;
  return rows.front();
}

SharesOptions options_of(std::vector<std::string> schedulers) {
  SharesOptions options;
  options.schedulers = std::move(schedulers);
  options.warm_up = 1s;
  options.length = 10s;
  return options;
}

TEST(ProfileFigure, ThroughputFollowsTheQuotaUntilTheHostIsWhatHoldsBack) {
  const auto rows = profile_figure(options_of({"pacer"}));
  ASSERT_EQ(rows.size(), 4u);
  const SharesRow& resnet = row_of(rows, "pacer", "resnet");
  EXPECT_NEAR(number(resnet, "per_s_24_40") / number(resnet, "per_s_24_20"), 2, 0.1);
  EXPECT_NEAR(number(resnet, "per_s_24_100"), 71.4, 1);
  EXPECT_NEAR(number(resnet, "per_s_100_60"), number(resnet, "per_s_24_60"), 0.2);  // saturated
  const SharesRow& rnnt = row_of(rows, "pacer", "rnnt");  // 41 % of the time on the whole device
  EXPECT_NEAR(number(rnnt, "per_s_100_60"), number(rnnt, "per_s_100_100"), 0.2);
}

TEST(DisturbedFigure, ANeighbourTakesWhatIsBeyondTheRequestOnlyInTurns) {
  const auto rows = disturbed_figure(options_of({"pacer", "paper"}));
  for (const char* scheduler : {"pacer", "paper"}) {
    const SharesRow& turns = row_of(rows, scheduler, "100 %");
    EXPECT_NEAR(number(turns, "resnet_beside_per_s") / number(turns, "resnet_alone_per_s"), 0.5 / 0.8, 0.03);
    const SharesRow& apart = row_of(rows, scheduler, "24 %");
    EXPECT_NEAR(number(apart, "resnet_beside_per_s") / number(apart, "resnet_alone_per_s"), 1, 0.01);
  }
}

TEST(PodsFigure, UsersWaitInTheQueueOfWhoServesThem) {
  const auto rows = pods_figure(options_of({"pacer"}));
  const SharesRow& racing = row_of(rows, "one", "rnnt, racing");
  EXPECT_NEAR(number(racing, "per_s_1"), 12.5, 0.2);
  EXPECT_NEAR(number(racing, "p99_ms_1"), 16 * 80, 16);  // 16 users, one after the other
  EXPECT_NEAR(number(racing, "busy_1"), 0.41, 0.02);
  EXPECT_GT(number(racing, "per_s_8"), 2 * number(racing, "per_s_1"));  // another's kernels fill the host's time
  const SharesRow& split = row_of(rows, "pacer", "rnnt, 12 %");
  EXPECT_GT(number(split, "per_s_8"), 1.3 * number(racing, "per_s_8"));
  EXPECT_NEAR(number(split, "occupancy_8"), 8 * number(split, "occupancy_1"), 0.02);
  // Eight of 24 % take turns: the widths that are held at once add up to the device.
  EXPECT_LE(number(row_of(rows, "pacer", "resnet, 24 %"), "occupancy_8"), 1);
}

TEST(PackedFigure, OneDeviceSideBySideIsFullerThanFourInTurns) {
  const auto rows = packed_figure(options_of({"pacer", "one"}));
  for (const char* load : {"always busy", "Poisson at 0.7"}) {
    const SharesRow &ours = row_of(rows, "pacer", load), &turns = row_of(rows, "one", load);
    EXPECT_EQ(number(ours, "devices"), 1);
    EXPECT_EQ(number(turns, "devices"), 4);
    EXPECT_GT(number(ours, "occupancy"), 2 * number(turns, "occupancy"));
  }
  // Below what is requested the same requests are answered, on a quarter of the devices.
  EXPECT_NEAR(number(row_of(rows, "pacer", "Poisson at 0.7"), "answered_per_s") /
                  number(row_of(rows, "one", "Poisson at 0.7"), "answered_per_s"),
              1, 0.1);
}

TEST(PaperFigures, EachSeedHasARowOfItsOwn) {
  SharesOptions options = options_of({"pacer"});
  options.length = 1s;
  options.seeds = 3;
  const auto rows = packed_figure(options);
  ASSERT_EQ(rows.size(), 6u);
  EXPECT_EQ(number(rows[2], "seed"), 3);
  EXPECT_NE(rows[3].state_hash, rows[4].state_hash);
}

}  // namespace
}  // namespace fairlead::sim
