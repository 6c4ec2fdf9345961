#include "decide/pacing/share_book.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace fairlead {
namespace {

using testing::HasSubstr;

constexpr GpuId kFirst{1}, kSecond{2};

PacedShare share(int width, int request, Bytes memory = Bytes(0)) {
  return {.width_percent = width, .request_percent = request, .memory = memory};
}

class ShareBookTest : public testing::Test {
 protected:
  ShareBookTest() {
    for (const GpuId gpu : {kFirst, kSecond}) book_.add_device(gpu, {.memory = gib(16), .reserve_percent = 3}, 30);
  }
  // Finds and holds.
  Result<ShareBook::Seats> admit(const std::string& function, const SeatsAsked& asked) {
    auto seats = book_.find(function, asked);
    if (seats) book_.hold(function, asked.share, *seats);
    return seats;
  }
  std::string refusal(const std::string& function, const SeatsAsked& asked) {
    const auto seats = book_.find(function, asked);
    return seats ? "it fits" : seats.error().message;
  }
  ShareBook book_;
};

TEST_F(ShareBookTest, AFunctionSitsOnTheFirstDeviceThatHoldsIt) {
  EXPECT_EQ(admit("a", {share(100, 60), 1}).value(), ShareBook::Seats{kFirst});
  EXPECT_EQ(admit("b", {share(100, 50), 1}).value(), ShareBook::Seats{kSecond});
  EXPECT_EQ(admit("c", {share(100, 37), 1}).value(), ShareBook::Seats{kFirst});
  EXPECT_EQ(admit("d", {share(100, 40), 1}).value(), ShareBook::Seats{kSecond});
  EXPECT_EQ(book_.seats_on(kFirst), 2u);
}

TEST_F(ShareBookTest, AllSeatsOfAFunctionOrNone) {
  ASSERT_TRUE(admit("a", {share(100, 60), 1}));
  EXPECT_THAT(refusal("b", {share(100, 50), 2}), HasSubstr("number 2"));
  EXPECT_TRUE(book_.seats("b").empty());
  EXPECT_EQ(admit("c", {share(100, 48), 2}).value(), (ShareBook::Seats{kSecond, kSecond})) << "nothing was taken";
}

TEST_F(ShareBookTest, WhatLacksOnTheNearestDeviceIsNamed) {
  ASSERT_TRUE(admit("a", {share(100, 90), 1}));
  ASSERT_TRUE(admit("b", {share(100, 50), 1}));
  EXPECT_EQ(refusal("c", {share(100, 50), 1}),
            "one instance of gpu:quota-request 50 %, gpu:compute-percent 100 %, gpu:memory-mib 0: no GPU has room for "
            "it. GPU "
            "2 comes nearest: gpu:quota-request is 100.0 % of the device's time at best, 97.0 % is the most. Ask for "
            "less, or "
            "delete or shrink a function that has a share (fairlead status lists them)");
  EXPECT_THAT(refusal("c", {share(10, 10, gib(17)), 1}),
              HasSubstr("gpu:memory-mib is 17408 together, the device has 16384"));
}

TEST_F(ShareBookTest, AsManyAsThereIsRoomForOnTheDevicesThatServe) {
  ASSERT_TRUE(admit("a", {share(100, 60), 1}));
  const SeatsAsked asked{share(100, 20), 9, {kSecond}};
  const ShareBook::Most most = book_.find_most("b", asked, {kSecond}, {kFirst, kSecond, GpuId(7)});
  EXPECT_EQ(most.seats, (ShareBook::Seats{kFirst, kSecond, kSecond, kSecond})) << "four stand on the second";
  EXPECT_THAT(most.lacking, HasSubstr("no GPU has room for number 6. GPU 1 comes nearest"));
  EXPECT_EQ(book_.find_most("b", asked, {}, {kSecond}).seats, (ShareBook::Seats(4, kSecond)));
  EXPECT_EQ(book_.find_most("b", asked, {}, {}).lacking, "no GPU that serves is there");
  EXPECT_TRUE(book_.seats("b").empty());
}

// 60 of 1 % on two devices, of which the first is full: a test for each seat, and one for each device that refuses.
TEST_F(ShareBookTest, EachDeviceRefusesOnce) {
  ASSERT_TRUE(admit("a", {share(100, 97), 1}));
  const std::uint64_t before = book_.tests();
  EXPECT_EQ(book_.find_most("b", {share(100, 1), 60}, {}, {kFirst, kSecond}).seats.size(), 30u)
      << "the most of a device";
  EXPECT_LE(book_.tests() - before, 32u);
}

TEST_F(ShareBookTest, TheDevicesOfBeforeAreTriedFirst) {
  EXPECT_EQ(book_.find("a", {share(100, 10), 2, {kSecond, GpuId(9)}}).value(), (ShareBook::Seats{kFirst, kSecond}));
  EXPECT_EQ(admit("a", {share(100, 10), 1, {kSecond}}).value(), ShareBook::Seats{kSecond});
  EXPECT_EQ(book_.find("a", {share(100, 97), 1, {kSecond}}).value(), ShareBook::Seats{kSecond})
      << "it is not counted beside itself";
  EXPECT_EQ(book_.find("b", {share(100, 1), 1, {kSecond, kSecond}}).value(), ShareBook::Seats{kSecond});
}

TEST_F(ShareBookTest, WhatIsReleasedIsFree) {
  ASSERT_TRUE(admit("a", {share(100, 97), 2}));
  EXPECT_THAT(refusal("b", {share(100, 1), 1}), HasSubstr("98.0 %"));
  book_.release("a");
  EXPECT_TRUE(admit("b", {share(100, 1), 1}));
  EXPECT_TRUE(admit("b", {share(100, 1), 0})) << "it wants none any more";
  EXPECT_EQ(book_.seats_on(kFirst), 0u);
}

TEST_F(ShareBookTest, SeatsGoWithTheirDevice) {
  ASSERT_TRUE(admit("a", {share(100, 97), 2}));
  book_.remove_device(kFirst);
  EXPECT_EQ(book_.seats("a"), ShareBook::Seats{kSecond});
  EXPECT_THAT(refusal("b", {share(100, 1), 1}), HasSubstr("GPU 2 comes nearest"));
  book_.remove_device(kSecond);
  EXPECT_THAT(refusal("b", {share(100, 1), 1}), HasSubstr("no GPU is there"));
  EXPECT_TRUE(book_.find("b", {share(100, 0), 0})) << "who asks for no seat is never refused";
}

TEST_F(ShareBookTest, BestEffortSeatsCountInMemoryAndNumberAlone) {
  EXPECT_TRUE(admit("a", {share(100, 97), 2}));
  EXPECT_TRUE(admit("b", {share(100, 0, gib(8)), 4}));
  EXPECT_THAT(refusal("c", {share(100, 0, gib(1)), 1}), HasSubstr("gpu:memory-mib is 17408"));
  EXPECT_THAT(refusal("c", {share(100, 0), 60}),
              HasSubstr("gpu:replicas keeps 31 instances on it, 30 is the most: its pool (--pool) less its slots"));
}

// What a restart relies on: a set that was admitted in some order, with changes and releases, fits again in any order once each
// function names its devices.
TEST_F(ShareBookTest, ASetFitsAgainInEveryOrderOnItsOldDevices) {
  ASSERT_TRUE(admit("gap", {share(100, 40), 1}));
  ASSERT_TRUE(admit("a", {share(100, 57), 1}));  // on 1
  ASSERT_TRUE(admit("b", {share(100, 60), 1}));  // on 2
  book_.release("gap");
  ASSERT_TRUE(admit("c", {share(100, 40), 1}));  // on 1
  ASSERT_TRUE(admit("d", {share(100, 37), 1}));  // on 2
  std::vector<std::pair<std::string, int>> functions{{"a", 57}, {"b", 60}, {"c", 40}, {"d", 37}};
  do {
    ShareBook again;
    for (const GpuId gpu : {kFirst, kSecond}) again.add_device(gpu, {.memory = gib(16), .reserve_percent = 3}, 30);
    for (const auto& [name, request] : functions) {
      const auto seats = again.find(name, {share(100, request), 1, book_.seats(name)});
      ASSERT_TRUE(seats) << seats.error().message;
      EXPECT_EQ(*seats, book_.seats(name));
      again.hold(name, share(100, request), *seats);
    }
  } while (std::next_permutation(functions.begin(), functions.end()));
}

}  // namespace
}  // namespace fairlead
