#include "sim/company.h"

#include <gmock/gmock.h>

#include "base/rng.h"
#include "sim/gpu_model.h"

namespace fairlead::sim {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;

Instant ms(int at) {
  return Instant(milliseconds(at));
}

TEST(Company, IsCountedPerDevice) {
  std::vector<TimedRun> runs = {{.gpu = 1, .begin = ms(0), .end = ms(20)},
                                {.gpu = 1, .begin = ms(10), .end = ms(40)},
                                {.gpu = 2, .begin = ms(5), .end = ms(15)}};
  find_company(runs);
  EXPECT_EQ(milliseconds(10), runs[0].in_company[0]);
  EXPECT_EQ(milliseconds(10), runs[0].in_company[1]);
  EXPECT_EQ(milliseconds(20), runs[1].in_company[0]);
  EXPECT_EQ(milliseconds(10), runs[2].in_company[0]);
  EXPECT_EQ(milliseconds(0), runs[2].in_company[1]);
}

// The example at the head of company.h.
TEST(Company, TheSlowdownIsWhatMakesRunsOfAFunctionAlike) {
  std::vector<TimedRun> runs = {{.function = 0, .gpu = 1, .begin = ms(0), .end = ms(20)},
                                {.function = 0, .gpu = 1, .begin = ms(100), .end = ms(130)},
                                {.function = 1, .gpu = 1, .begin = ms(110), .end = ms(130)}};
  find_company(runs);
  const auto slowdown = learn_slowdown(runs);
  ASSERT_EQ(2u, slowdown.size());
  EXPECT_NEAR(2.0, slowdown[1], 0.05);
  EXPECT_NEAR(20.0, to_ms(work_of(runs[1], slowdown)), 0.5);
}

TEST(Company, WithoutAnyTheDeviceIsTakenToBeSharedOut) {
  std::vector<TimedRun> runs = {{.gpu = 1, .begin = ms(0), .end = ms(20)}};
  find_company(runs);
  EXPECT_THAT(learn_slowdown(runs), ElementsAre(1.0));
  EXPECT_THAT(learn_slowdown({}), ElementsAre(1.0));
}

// Runs made by the model itself, with the scatter that real ones have: what was put in comes out.
TEST(Company, FindsTheSlowdownOfAModelledDevice) {
  DeviceModel device;
  device.slowdown = {1.0, 1.3, 2.1};
  GpuModel gpu(device);
  Rng rng(7);
  std::vector<TimedRun> runs;
  Instant now;
  Instant next = ms(1);
  std::size_t in_flight = 0;
  while (runs.size() < 3000 || in_flight > 0) {
    const auto end = gpu.next_end();
    if (end && (*end <= next || in_flight == 3 || runs.size() >= 3000)) {
      now = std::max(now, *end);
      runs[gpu.finish(now).invocation.value() - 1].end = now;
      --in_flight;
      continue;
    }
    now = std::max(now, next);
    next = now + from_seconds(rng.exponential(0.03));
    const std::size_t function = rng.below(4);
    const double seconds = 0.01 * static_cast<double>(1 << function) * (0.95 + 0.1 * rng.uniform());
    runs.push_back({.function = function, .gpu = 1, .begin = now});
    gpu.start(now, InvocationId(runs.size()), InstanceId(runs.size()), from_seconds(seconds));
    ++in_flight;
  }
  find_company(runs);
  const auto slowdown = learn_slowdown(runs);
  ASSERT_EQ(3u, slowdown.size());
  EXPECT_NEAR(1.3, slowdown[1], 0.05);
  EXPECT_NEAR(2.1, slowdown[2], 0.1);
}

}  // namespace
}  // namespace fairlead::sim
