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

TEST_F(Live, Sketch) {
  for (auto words : {std::vector<std::string>{"100", "deep", "300"}, {"2000", "deep", "20"}, {"20", "deep", "300"}, {"100", "graph", "20"}, {"100", "streams", "8"}, {"100", "pause", "500"}}) {
    PaceDriver driver({});
    const auto a = device_.start({"300", "sync"});
    const auto b = device_.start(words);
    ASSERT_TRUE(Device::pace(driver, InstanceId(1), {.request_percent = 60}, *a));
    ASSERT_TRUE(Device::pace(driver, InstanceId(2), {.request_percent = 30}, *b));
    std::this_thread::sleep_for(1s);
  for (int i = 0; i < 3; ++i) {
    const auto ka = a->kernels(), kb = b->kernels();
    const Duration ga = a->gpu_time(), gb = b->gpu_time();
    std::this_thread::sleep_for(1s);
    const auto s = driver.snapshot();
    std::printf("%s %s: kernels %lu %lu gpu %.1f %.1f ms; delivered %.1f %.1f; frame %.2f ms wakes %lu late %lu waits %.1f us\n",
                words[0].c_str(), words[1].c_str(), a->kernels() - ka, b->kernels() - kb, to_ms(a->gpu_time() - ga), to_ms(b->gpu_time() - gb),
                to_ms(s.instances[0].last_second), to_ms(s.instances[1].last_second), to_ms(s.frame), s.wakes, s.late,
                to_us(s.instances[0].waits.total()) / std::max<double>(1, s.instances[0].waits.count()));
    for (auto* c : {a.get(), b.get()}) { const auto& p = c->page(); std::printf("   gate %u pace %u grant %u drained %u asking %lu bell %u busy %lu launches %lu waits %lu passed %lu\n", p.gate.load(), p.pace.load(), p.grant.load(), p.drained.load(), p.asking.load(), p.bell.load(), p.busy.load(), p.launches.load(), p.gate_waits.load(), p.passed_through.load()); }
    for (auto& i : s.instances) std::printf("   %s revoked %lu credit %.1f\n", std::string(place_state_name(i.state)).c_str(), i.revoked, to_ms(i.credit));
    }
  }
}

}  // namespace
}  // namespace fairlead::pacing_tests
