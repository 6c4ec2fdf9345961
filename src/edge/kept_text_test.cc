#include "edge/kept_text.h"

#include <gtest/gtest.h>

namespace fairlead {
namespace {

using std::chrono::microseconds;

struct Maker {
  Instant now{};
  Duration cost{};
  int made = 0;
  KeptText text{[this] {
                  now += cost;
                  return std::to_string(++made);
                },
                [this] { return now; }};
};

TEST(KeptText, AskedForSeldomItIsFresh) {
  Maker maker;
  maker.cost = microseconds(3000);
  for (int i = 1; i <= 100; ++i) {
    EXPECT_EQ(maker.text.get(), std::to_string(i));
    maker.now += microseconds(30'000);
  }
}

TEST(KeptText, AskedForOftenItTakesATenthOfTheTime) {
  for (const int cost : {1, 100, 3000, 200'000}) {
    Maker maker;
    maker.cost = microseconds(cost);
    Duration spent{};
    const Instant begin = maker.now;
    while (maker.now - begin < std::chrono::seconds(10)) {
      maker.now += microseconds(10);
      const int before = maker.made;
      maker.text.get();
      spent += maker.made > before ? maker.cost : Duration(0);
    }
    const Duration elapsed = maker.now - begin;
    EXPECT_LE(spent, elapsed / KeptText::kShare + KeptText::kMostSaved + maker.cost) << cost;
    EXPECT_GE(spent, std::min(elapsed / 11, elapsed / 11 * cost)) << cost << ": as fresh as it may be";
  }
}

TEST(KeptText, TheFirstOneIsMadeHoweverDear) {
  Maker maker;
  maker.cost = std::chrono::seconds(5);
  EXPECT_EQ(maker.text.get(), "1");
  EXPECT_EQ(maker.text.get(), "1");
  maker.now += std::chrono::seconds(50);
  EXPECT_EQ(maker.text.get(), "2");
}

}  // namespace
}  // namespace fairlead
