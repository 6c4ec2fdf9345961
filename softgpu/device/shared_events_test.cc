#include "softgpu/device/shared_events.h"

#include <gtest/gtest.h>

#include "softgpu/device/device_testing.h"

namespace softgpu {
namespace {

using testing::as_client;
using testing::Child;
using testing::Client;
using testing::kSmall;
using testing::Observer;
using testing::open_client;
using testing::TemporaryHome;

SharedEvents open_events(const Client& client) {
  return SharedEvents::open(client.machine, *client.clients, client.self).value();
}

constexpr SharedEvents::Name kFirst = {0, 1};  // of a new machine

TEST(SharedEvents, TheDeathOfASecondRecorderCompletesOnlyItsOwnRecording) {
  const TemporaryHome home(kSmall);
  Observer observer;
  const SharedEvents events = SharedEvents::open(observer.machine, observer.clients, {}).value();
  Child first([] {
    SharedEvents own = open_events(open_client());
    EXPECT_TRUE(own.create());
    EXPECT_EQ(own.submit(kFirst), 1U);
  });
  ASSERT_TRUE(first.ran());
  Child second([] { EXPECT_EQ(open_events(open_client()).submit(kFirst), 2U); });
  ASSERT_TRUE(second.ran());
  EXPECT_FALSE(events.reached(kFirst, 1));
  EXPECT_FALSE(events.reached(kFirst, 2));
  second.kill();
  EXPECT_TRUE(events.reached(kFirst, 2));
  EXPECT_FALSE(events.reached(kFirst, 1));
  first.kill();
  EXPECT_TRUE(events.reached(kFirst, 1));
}

TEST(SharedEvents, ALivingSecondRecorderDoesNotHoldUpTheDead) {
  const TemporaryHome home(kSmall);
  Observer observer;
  const SharedEvents events = SharedEvents::open(observer.machine, observer.clients, {}).value();
  Child first([] {
    SharedEvents own = open_events(open_client());
    EXPECT_TRUE(own.create());
    own.submit(kFirst);
  });
  ASSERT_TRUE(first.ran());
  const Child second([] { open_events(open_client()).submit(kFirst); });
  first.kill();
  EXPECT_TRUE(events.reached(kFirst, 1));
  EXPECT_FALSE(events.reached(kFirst, 2));
}

TEST(SharedEvents, ALaterRecordingDoesNotCompleteAnEarlierOne) {
  const TemporaryHome home(kSmall);
  as_client([](Client& client) {
    SharedEvents events = open_events(client);
    const auto name = events.create().value();
    EXPECT_TRUE(events.reached(name, events.last(name)));  // never recorded
    const std::uint64_t first = events.submit(name);
    const std::uint64_t second = events.submit(name);
    events.complete(name, second);
    EXPECT_TRUE(events.reached(name, second));
    EXPECT_FALSE(events.reached(name, first));
    events.complete(name, first);
    EXPECT_TRUE(events.reached(name, first));
  });
}

TEST(SharedEvents, OfMoreRecordingsThanWordsTheOldEndWithALaterOne) {
  const TemporaryHome home(kSmall);
  as_client([](Client& client) {
    SharedEvents events = open_events(client);
    const auto name = events.create().value();
    std::uint64_t last = 0;
    for (unsigned i = 0; i < 2 * kRecordings; ++i) last = events.submit(name);
    EXPECT_FALSE(events.reached(name, 1));
    events.complete(name, 2);
    EXPECT_TRUE(events.reached(name, 1));
    EXPECT_FALSE(events.reached(name, last));
    events.destroy(name);
    const auto next = events.create().value();  // the same row
    EXPECT_EQ(next.row, name.row);
    EXPECT_TRUE(events.reached(next, events.last(next)));  // what the last use left is none of its own
    events.complete(name, last);
    EXPECT_FALSE(events.reached(next, events.submit(next)));
  });
}

}  // namespace
}  // namespace softgpu
