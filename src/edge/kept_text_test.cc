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

TEST(KeptText, ACheapOneIsAlwaysFresh) {
  Maker maker;
  maker.cost = microseconds(199);
  EXPECT_EQ(maker.text.get(), "1");
  EXPECT_EQ(maker.text.get(), "2");
}

TEST(KeptText, ADearOneTakesATenthOfTheTimeAtMost) {
  Maker maker;
  maker.cost = microseconds(3000);
  EXPECT_EQ(maker.text.get(), "1");
  maker.now += microseconds(29'999);
  EXPECT_EQ(maker.text.get(), "1");
  maker.now += microseconds(1);
  EXPECT_EQ(maker.text.get(), "2");
  Duration spent{};
  for (int i = 0; i < 100'000; ++i) {
    maker.now += microseconds(10);
    const int before = maker.made;
    maker.text.get();
    spent += maker.made > before ? maker.cost : Duration(0);
  }
  EXPECT_LE(spent, microseconds(1'000'000 / 10 + 3000));
}

TEST(KeptText, OneThatGetsCheapIsFreshAgain) {
  Maker maker;
  maker.cost = microseconds(1000);
  maker.text.get();
  maker.cost = microseconds(1);
  maker.now += microseconds(10'000);
  EXPECT_EQ(maker.text.get(), "2");
  EXPECT_EQ(maker.text.get(), "3");
}

}  // namespace
}  // namespace fairlead
