#include "node/peers/load_count.h"

#include <gtest/gtest.h>

namespace fairlead {
namespace {

using namespace std::chrono_literals;

TEST(LoadCountTest, WhatIsDearIsCountedSeldom) {
  Instant now(1h);
  Duration cost = 0s;
  int counted = 0;
  LoadCount load([&now] { return now; },
                 [&] {
                   now += cost;
                   return OwnLoad{.backlog_s = static_cast<double>(++counted)};
                 });
  EXPECT_EQ(load.now().backlog_s, 1);
  EXPECT_EQ(load.now().backlog_s, 2) << "it costs nothing";
  cost = 20ms;
  EXPECT_EQ(load.now().backlog_s, 3);
  now += 3900ms;
  EXPECT_EQ(load.now().backlog_s, 3);
  now += 100ms;
  EXPECT_EQ(load.now().backlog_s, 4);
}

}  // namespace
}  // namespace fairlead
