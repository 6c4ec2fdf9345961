// Places, live: real processes under the shim on the software GPU, and the thread that paces them.
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <thread>

#include "base/clock.h"
#include "tests/pacing/device.h"

namespace fairlead::pacing_tests {
namespace {

using namespace std::chrono_literals;

const Paths kPaths{PACED_PROGRAM, FAIRLEAD_SHIM, FAIRLEAD_SOFTGPU};
constexpr auto kPatience = 60s;

template <typename Condition>
bool until(Condition condition) {
  const Instant give_up = monotonic_now() + kPatience;
  while (!condition()) {
    if (monotonic_now() > give_up) return false;
    std::this_thread::yield();
  }
  return true;
}

class Live : public ::testing::Test {
 protected:
  Device device_{kPaths};
};

Duration delivered(const PaceSnapshot& snapshot, std::size_t index) {
  return snapshot.instances.at(index).last_second;
}

TEST_F(Live, TwoProcessesHaveWhatTheyWerePromisedOfEverySecond) {
  PaceDriver driver({});
  const auto a = device_.start({"300", "sync"});
  const auto b = device_.start({"300", "sync"});
  ASSERT_TRUE(a && b);
  ASSERT_TRUE(Device::pace(driver, InstanceId(1), {.request_percent = 60}, *a));
  ASSERT_TRUE(Device::pace(driver, InstanceId(2), {.request_percent = 30}, *b));
  EXPECT_TRUE(until([&] {
    const PaceSnapshot now = driver.snapshot();
    return delivered(now, 0) >= 580ms && delivered(now, 1) >= 280ms;
  }));
}

}  // namespace
}  // namespace fairlead::pacing_tests
