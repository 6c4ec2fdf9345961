#include "base/give_way.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <thread>

namespace fairlead {
namespace {

int niceness() {
  return ::getpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()));
}

TEST(GiveWay, IsOfTheThreadAndOfThoseThatItStarts) {
  const int before = niceness();
  const int most = 19;
  std::thread([&] {
    give_way();
    EXPECT_EQ(niceness(), std::min(before + kGiveWayNice, most));
    std::thread([&] { EXPECT_EQ(niceness(), std::min(before + kGiveWayNice, most)); }).join();
  }).join();
  EXPECT_EQ(niceness(), before);
}

}  // namespace
}  // namespace fairlead
