// Maximal rectangles: the paper's steps, and what the list says against every position on the device.
#include "decide/packing/free_rectangles.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "base/rng.h"

namespace fairlead {
namespace {

using testing::ElementsAre;
using testing::UnorderedElementsAre;

TEST(FreeRectangles, ThePlacedOneLeavesTwoThatOverlap) {
  FreeRectangles free(100, 16);
  EXPECT_EQ(free.place(60, 50), (Rectangle{0, 0, 60, 50}));
  EXPECT_THAT(free.free(), UnorderedElementsAre(Rectangle{60, 0, 40, 100}, Rectangle{0, 50, 100, 50}));
}

TEST(FreeRectangles, AnExactFitIsAFit) {
  FreeRectangles free(100, 16);
  EXPECT_EQ(free.left_over(100, 100), 0);
  EXPECT_TRUE(free.place(100, 100));
  EXPECT_EQ(free.left_over(1, 1), std::nullopt);
}

TEST(FreeRectangles, TheLeastAreaLeftOverIsTaken) {
  FreeRectangles free(100, 16);
  free.place(60, 50);
  EXPECT_EQ(free.left_over(40, 60), 40 * 100 - 40 * 60);
  EXPECT_EQ(free.place(40, 60), (Rectangle{60, 0, 40, 60}));
  EXPECT_THAT(free.free(), UnorderedElementsAre(Rectangle{0, 50, 60, 50}, Rectangle{0, 60, 100, 40}));
}

// "Keep-restructure": what is given back stands as it is, beside rectangles that it would grow together with.
TEST(FreeRectangles, AReleasedRectangleIsKeptAsItIsUntilTheListIsMadeAnew) {
  FreeRectangles kept(100, 16), anew(100, 0);
  for (FreeRectangles* one : {&kept, &anew}) {
    one->place(100, 30);
    const auto middle = one->place(100, 30);
    one->place(100, 40);
    one->release(*middle);
    one->release({0, 60, 100, 40});
  }
  EXPECT_EQ(kept.left_over(100, 70), std::nullopt);
  EXPECT_THAT(anew.free(), ElementsAre(Rectangle{0, 30, 100, 70}));
}

TEST(FreeRectangles, AnEmptyDeviceIsWholeAgain) {
  FreeRectangles free(100, 16);
  const auto a = free.place(30, 30), b = free.place(30, 30);
  free.release(*a);
  free.release(*b);
  EXPECT_THAT(free.free(), ElementsAre(Rectangle{0, 0, 100, 100}));
}

// Every position, cell by cell. The list made anew holds w x h where and only where some position is free.
bool some_position_is_free(const std::vector<Rectangle>& placed, int width, int height) {
  for (int left = 0; left + width <= 100; ++left) {
    for (int bottom = 0; bottom + height <= 100; ++bottom) {
      bool free = true;
      for (const Rectangle& one : placed) free = free && !one.cuts({left, bottom, width, height});
      if (free) return true;
    }
  }
  return false;
}

TEST(FreeRectangles, HoldsWhatSomePositionHolds) {
  Rng rng(1);
  for (int round = 0; round < 60; ++round) {
    FreeRectangles free(100, 0);
    for (int step = 0; step < 25; ++step) {
      const int width = 5 + static_cast<int>(rng.below(60)), height = 5 + static_cast<int>(rng.below(60));
      ASSERT_EQ(free.left_over(width, height).has_value(), some_position_is_free(free.placed(), width, height));
      if (rng.below(3) > 0) {
        free.place(width, height);
      } else if (!free.placed().empty()) {
        free.release(Rectangle(free.placed()[rng.below(free.placed().size())]));
      }
      for (std::size_t i = 0; i < free.placed().size(); ++i) {
        ASSERT_TRUE((Rectangle{0, 0, 100, 100}.holds(free.placed()[i])));
        for (std::size_t k = 0; k < i; ++k) ASSERT_FALSE(free.placed()[i].cuts(free.placed()[k]));
      }
    }
  }
}

TEST(FreeRectangles, KeptOnesNeverOverlapWhatIsPlaced) {
  Rng rng(2);
  FreeRectangles free(97, 8);
  for (int step = 0; step < 5000; ++step) {
    if (rng.below(2) == 0) {
      free.place(5 + static_cast<int>(rng.below(40)), 5 + static_cast<int>(rng.below(40)));
    } else if (!free.placed().empty()) {
      free.release(Rectangle(free.placed()[rng.below(free.placed().size())]));
    }
    for (const Rectangle& one : free.free()) {
      ASSERT_LE(one.left + one.width, 97);
      for (const Rectangle& placed : free.placed()) ASSERT_FALSE(one.cuts(placed));
    }
  }
}

}  // namespace
}  // namespace fairlead
