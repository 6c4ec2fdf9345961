// Places, live: real processes under the shim on the software GPU, and the thread that paces them. Bounds are wide: other work shares
// the computer, and bench/shares_bench.py measures.
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <random>
#include <thread>

#include "base/clock.h"
#include "tests/pacing/paced_gpu.h"

namespace fairlead::pacing_tests {
namespace {

using namespace std::chrono_literals;

const Paths kPaths{PACED_PROGRAM, FAIRLEAD_SHIM, FAIRLEAD_SOFTGPU};
constexpr auto kPatience = 2min;
const InstanceId kA(1), kB(2);

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
  // A runs kernels of 0.3 ms and is promised 60 % of the time.
  void start_a() {
    a_ = gpu_.start({"300", "sync"});
    ASSERT_NE(a_, nullptr);
    ASSERT_TRUE(PacedGpu::pace(driver_, kA, {.request_percent = 60}, *a_));
  }
  Duration in_last_second(InstanceId id) {
    for (const DeliveredService& one : driver_.snapshot().instances) {
      if (one.instance == id) return one.last_second;
    }
    return Duration(0);
  }
  PlaceState state_of(InstanceId id) {
    for (const DeliveredService& one : driver_.snapshot().instances) {
      if (one.instance == id) return one.state;
    }
    return PlaceState::kIdle;
  }
  bool goes_on(const Client& client) {
    const std::uint64_t before = client.kernels();
    return until([&] { return client.kernels() > before + 20; });
  }

  PacedGpu gpu_{kPaths};
  PaceDriver driver_{PaceDriverOptions{}};
  std::unique_ptr<Client> a_, b_;
};

TEST_F(Live, AProcessAloneIsNotHeldBack) {
  start_a();
  EXPECT_TRUE(goes_on(*a_));
  EXPECT_EQ(a_->page().pace.load(), wire::kPacePlaces) << "no leash";
}

TEST_F(Live, ALimitHoldsWithNobodyElseThere) {
  b_ = gpu_.start({"300", "sync"});
  ASSERT_TRUE(PacedGpu::pace(driver_, kB, {.limit_percent = 30}, *b_));
  EXPECT_TRUE(until([&] { return in_last_second(kB) >= 250ms; }));
  const Instant began = monotonic_now();
  const Duration before = b_->gpu_time();
  EXPECT_TRUE(until([&] { return monotonic_now() - began >= 2s; }));
  EXPECT_LE(to_seconds(b_->gpu_time() - before) / to_seconds(monotonic_now() - began), 0.36);
}

TEST_F(Live, EightProcessesHaveWhatTheyWerePromised) {
  std::vector<std::unique_ptr<Client>> all;
  for (std::uint64_t i = 1; i <= 8; ++i) {
    all.push_back(gpu_.start({"300", "sync"}));
    ASSERT_TRUE(PacedGpu::pace(driver_, InstanceId(i), {.request_percent = 10}, *all.back()));
  }
  EXPECT_TRUE(until([&] {
    const PaceSnapshot now = driver_.snapshot();
    return std::all_of(now.instances.begin(), now.instances.end(),
                       [](const DeliveredService& one) { return one.last_second >= 90ms; });
  }));
}

TEST_F(Live, AShareThatChangesWhileItRunsIsKept) {
  start_a();
  b_ = gpu_.start({"300", "sync"});
  ASSERT_TRUE(PacedGpu::pace(driver_, kB, {.request_percent = 20}, *b_));
  EXPECT_TRUE(until([&] { return in_last_second(kA) >= 550ms && in_last_second(kB) >= 180ms; }));
  ASSERT_TRUE(driver_.set_share(kA, {.request_percent = 20}));
  ASSERT_TRUE(driver_.set_share(kB, {.request_percent = 70}));
  EXPECT_TRUE(until([&] { return in_last_second(kA) >= 180ms && in_last_second(kB) >= 650ms; }));
}

// Every way of putting work on the device that a neighbour may have.
struct Neighbour {
  const char* name;
  std::vector<std::string> words;
  std::size_t processes = 1;
};
class Beside : public Live, public ::testing::WithParamInterface<Neighbour> {};

TEST_P(Beside, ANeighbourTakesNothingOfWhatWasPromised) {
  start_a();
  b_ = gpu_.start(GetParam().words, GetParam().processes);
  ASSERT_NE(b_, nullptr);
  ASSERT_TRUE(PacedGpu::pace(driver_, kB, {.request_percent = 20}, *b_));
  EXPECT_TRUE(until([&] { return in_last_second(kA) >= 570ms && in_last_second(kB) >= 150ms; }))
      << "A " << to_ms(in_last_second(kA)) << " ms, B " << to_ms(in_last_second(kB)) << " ms";
  EXPECT_EQ(b_->page().passed_through.load(), 0u);
}

INSTANTIATE_TEST_SUITE_P(Patterns, Beside,
                         ::testing::Values(Neighbour{"Deep", {"100", "deep", "300"}},
                                           Neighbour{"DeepLong", {"2000", "deep", "20"}},
                                           Neighbour{"Graph", {"50", "graph", "20"}},
                                           Neighbour{"Streams", {"100", "streams", "8"}},
                                           Neighbour{"Fork", {"200", "fork"}, 2}),
                         [](const auto& which) { return which.param.name; });

TEST_F(Live, WhoIsKilledAtAnyInstantLeavesNothingBehind) {
  start_a();
  std::mt19937 random(7);
  for (std::uint64_t i = 2; i < 14; ++i) {
    const InstanceId id(i);
    b_ = gpu_.start({"100", "deep", "50"});
    ASSERT_NE(b_, nullptr);
    ASSERT_TRUE(PacedGpu::pace(driver_, id, {.request_percent = 30}, *b_));
    EXPECT_TRUE(until([&] { return b_->page().grant.load() > 2; }));
    const Instant instant = monotonic_now() + std::chrono::microseconds(random() % 5000);
    EXPECT_TRUE(until([&] { return monotonic_now() >= instant; }));
    b_->kill();
    driver_.remove_page(id.value() * 100);  // as the node does when the socket closes
    driver_.remove_instance(id);
    EXPECT_TRUE(goes_on(*a_));
  }
  EXPECT_EQ(driver_.snapshot().instances.size(), 1u);
}

// On the software GPU a kernel of a stopped process stands still, and with it whose turn it is. So A may not get on; it has its places.
TEST_F(Live, WhoIsStoppedLosesItsPlaceAndHasItAgainWhenItGoesOn) {
  start_a();
  b_ = gpu_.start({"300", "deep", "20"});
  ASSERT_TRUE(PacedGpu::pace(driver_, kB, {.request_percent = 30}, *b_));
  EXPECT_TRUE(until([&] { return state_of(kB) == PlaceState::kOpen; }));
  b_->signal(SIGSTOP);
  const std::uint32_t before = a_->page().grant.load();
  EXPECT_TRUE(until([&] { return !holds_width(state_of(kB)) && a_->page().grant.load() > before; }));
  b_->signal(SIGCONT);
  EXPECT_TRUE(goes_on(*b_));
  EXPECT_TRUE(goes_on(*a_));
}

// What its shim knows of its work stands still while it captures, and its next call waits at the gate.
TEST_F(Live, ACaptureThatBeganWhileWorkWasInFlightEnds) {
  start_a();
  b_ = gpu_.start({"300", "capture", "20"});
  ASSERT_NE(b_, nullptr);
  ASSERT_TRUE(PacedGpu::pace(driver_, kB, {.request_percent = 30}, *b_));
  const std::uint64_t before = b_->kernels();
  EXPECT_TRUE(until([&] { return b_->kernels() > before + 40; }));  // two rounds
  EXPECT_TRUE(goes_on(*a_));
}

TEST_F(Live, WithoutTheNodeGatesAreOpen) {
  start_a();
  b_ = gpu_.start({"300", "deep", "20"});
  ASSERT_TRUE(PacedGpu::pace(driver_, kB, {.request_percent = 30}, *b_));
  EXPECT_TRUE(goes_on(*b_));
  // A node that is killed closes its sockets, and opens no gate. That its thread lives on here only makes it harder.
  gpu_.close_node();
  for (const Client* client : {a_.get(), b_.get()}) {
    for (const auto& connection : client->connections) connection->cut();
  }
  EXPECT_TRUE(until([&] { return a_->page().pace.load() == 0 && b_->page().pace.load() == 0; }));
  EXPECT_TRUE(goes_on(*a_));
  EXPECT_TRUE(goes_on(*b_));
}

}  // namespace
}  // namespace fairlead::pacing_tests
