#include "decide/residency/object_cache.h"

#include <gmock/gmock.h>

namespace fairlead {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr ObjectId kA(1), kB(2), kC(3), kD(4);

class ObjectCacheTest : public testing::Test {
 protected:
  void use(Bytes device, Bytes host, CacheEviction eviction = CacheEviction::kLru) {
    cache_ = std::make_unique<ObjectCache>(ObjectCacheOptions{.device = device, .host = host, .eviction = eviction});
  }
  static ObjectNeed input(ObjectId id, Bytes bytes = mib(2)) { return {id, bytes, ObjectKind::kInput}; }
  static ObjectNeed constant(ObjectId id, Bytes bytes = mib(2)) { return {id, bytes, ObjectKind::kConstant}; }
  static ObjectNeed output(ObjectId id, Bytes bytes = mib(2)) { return {id, bytes, ObjectKind::kOutput}; }

  CacheActions acquire(const std::vector<ObjectNeed>& needs, Bytes temporaries = Bytes(0)) {
    CacheActions actions;
    const Status acquired =
        cache_->acquire(Instant(Duration(++now_)), RequestId(++last_request_), needs, temporaries, actions);
    EXPECT_TRUE(acquired.has_value()) << acquired.error().message;
    return actions;
  }
  Error refused(const std::vector<ObjectNeed>& needs, Bytes temporaries = Bytes(0)) {
    CacheActions actions;
    const Status acquired =
        cache_->acquire(Instant(Duration(++now_)), RequestId(last_request_ + 1), needs, temporaries, actions);
    EXPECT_FALSE(acquired.has_value());
    EXPECT_THAT(actions, IsEmpty());
    return acquired.has_value() ? Error{} : acquired.error();
  }
  CacheActions release(std::uint64_t request = 0, bool completed = true) {
    CacheActions actions;
    cache_->release(RequestId(request == 0 ? last_request_ : request), completed, actions);
    return actions;
  }
  CacheActions once(const std::vector<ObjectNeed>& needs) {
    CacheActions actions = acquire(needs);
    EXPECT_THAT(release(), IsEmpty());
    return actions;
  }

  std::unique_ptr<ObjectCache> cache_;
  std::int64_t now_ = 0;
  std::uint64_t last_request_ = 0;
};

// The header's example.
TEST_F(ObjectCacheTest, ARequestNeverEvictsItsOwnHit) {
  use(mib(4), mib(64));
  once({constant(kA)});
  once({constant(kB)});  // A is the least recently used
  EXPECT_THAT(acquire({constant(kA), constant(kC)}),
              ElementsAre(CacheAction(EvictObject{kB}), CacheAction(LoadObject{kC, false})));
}

TEST_F(ObjectCacheTest, WhatIsOnTheDeviceNeedsNothing) {
  use(mib(4), mib(64));
  EXPECT_THAT(once({input(kA)}), ElementsAre(CacheAction(LoadObject{kA, false})));
  EXPECT_THAT(once({input(kA)}), IsEmpty());
  EXPECT_EQ(cache_->counters().hits, 1u);
  EXPECT_EQ(cache_->counters().misses, 1u);
}

TEST_F(ObjectCacheTest, AnEvictedInputComesBackFromTheHostTier) {
  use(mib(2), mib(64));
  once({input(kA)});
  once({input(kB)});
  EXPECT_THAT(once({input(kA)}), ElementsAre(CacheAction(EvictObject{kB}), CacheAction(LoadObject{kA, true})));
  EXPECT_EQ(cache_->counters().host_hits, 1u);
}

TEST_F(ObjectCacheTest, AnOutputIsWrittenBackBeforeItLeavesUnlessSomebodyFetchedIt) {
  use(mib(2), mib(64));
  EXPECT_THAT(once({output(kA)}), ElementsAre(CacheAction(PlaceOutput{kA})));
  EXPECT_THAT(once({output(kB)}),
              ElementsAre(CacheAction(WriteBack{kA}), CacheAction(EvictObject{kA}), CacheAction(PlaceOutput{kB})));
  cache_->written_back(kB);
  EXPECT_THAT(once({output(kC)}), ElementsAre(CacheAction(EvictObject{kB}), CacheAction(PlaceOutput{kC})));
  EXPECT_FALSE(cache_->on_host(kB));
}

TEST_F(ObjectCacheTest, TheHostTierForgetsInputsToTakeAnOutput) {
  use(mib(4), mib(4));
  once({input(kA)});
  once({output(kB)});
  once({input(kC)});              // evicts A, which stays on the host beside C
  EXPECT_THAT(once({input(kD)}),  // A is forgotten for B, which is written back, and C for D
              ElementsAre(CacheAction(ForgetObject{kA}), CacheAction(WriteBack{kB}), CacheAction(EvictObject{kB}),
                          CacheAction(ForgetObject{kC}), CacheAction(LoadObject{kD, false})));
}

TEST_F(ObjectCacheTest, OutputsWithoutRoomOnTheHostStayAndTheRequestIsRefused) {
  use(mib(2), mib(1));
  once({output(kA)});
  const Error error = refused({input(kB)});
  EXPECT_EQ(error.code, Errc::kResourceExhausted);
  EXPECT_THAT(error.message, HasSubstr("host tier of 1048576"));
  EXPECT_TRUE(cache_->on_device(kA));
}

TEST_F(ObjectCacheTest, LargerThanTheDeviceIsAnErrorThatNamesBoth) {
  use(mib(4), mib(64));
  const Error error = refused({input(kA), output(kB)}, mib(1));
  EXPECT_EQ(error.code, Errc::kTooLarge);
  EXPECT_THAT(error.message, HasSubstr("5242880"));
  EXPECT_THAT(error.message, HasSubstr("4194304"));
}

TEST_F(ObjectCacheTest, BesideWhatRunsThereIsNoRoomUntilItIsOver) {
  use(mib(4), mib(64));
  acquire({input(kA)}, mib(1));
  const std::uint64_t running = last_request_;
  EXPECT_EQ(refused({input(kB)}).code, Errc::kResourceExhausted);
  release(running);
  EXPECT_THAT(acquire({input(kB)}), ElementsAre(CacheAction(LoadObject{kB, false})));
  EXPECT_EQ(cache_->device_used(), mib(4));
}

TEST_F(ObjectCacheTest, OutputsOfAFailedRequestAreGone) {
  use(mib(4), mib(64));
  acquire({input(kA), output(kB)});
  EXPECT_THAT(release(0, false), ElementsAre(CacheAction(EvictObject{kB})));
  EXPECT_TRUE(cache_->on_device(kA));
  EXPECT_EQ(cache_->device_used(), mib(2));
}

TEST_F(ObjectCacheTest, WhatIsRemovedInUseGoesAtItsLastRelease) {
  use(mib(4), mib(64));
  acquire({input(kA)});
  CacheActions actions;
  cache_->remove(kA, actions);
  EXPECT_THAT(actions, IsEmpty());
  EXPECT_THAT(release(), ElementsAre(CacheAction(EvictObject{kA}), CacheAction(ForgetObject{kA})));
  EXPECT_EQ(cache_->host_used(), Bytes(0));
}

TEST_F(ObjectCacheTest, SingleUseEvictsWhatWasUsedOnceBeforeAllElse) {
  use(mib(4), mib(64), CacheEviction::kSingleUse);
  once({input(kA)});
  once({input(kA)});
  once({input(kB)});  // later than A, but once
  EXPECT_THAT(once({input(kC)}), ElementsAre(CacheAction(EvictObject{kB}), CacheAction(LoadObject{kC, false})));
}

TEST_F(ObjectCacheTest, LruEvictsWhatWasUsedLongestAgo) {
  use(mib(4), mib(64), CacheEviction::kLru);
  once({input(kA)});
  once({input(kA)});
  once({input(kB)});
  EXPECT_THAT(once({input(kC)}), ElementsAre(CacheAction(EvictObject{kA}), CacheAction(LoadObject{kC, false})));
}

TEST_F(ObjectCacheTest, CostKeepsAConstantThroughAScanOfInputs) {
  use(mib(8), mib(1024), CacheEviction::kCost);
  once({constant(kA)});
  for (std::uint64_t i = 10; i < 60; ++i) once({input(ObjectId(i))});
  EXPECT_TRUE(cache_->on_device(kA));
  use(mib(8), mib(1024), CacheEviction::kLru);
  once({constant(kA)});
  for (std::uint64_t i = 10; i < 60; ++i) once({input(ObjectId(i))});
  EXPECT_FALSE(cache_->on_device(kA));
}

TEST_F(ObjectCacheTest, CostLetsWhatWasPopularLongAgoGo) {
  use(mib(4), mib(1024), CacheEviction::kCost);
  for (int i = 0; i < 20; ++i) once({constant(kA)});
  for (int round = 0; round < 200 && cache_->on_device(kA); ++round) {
    once({constant(kB)});
    once({constant(kC)});
  }
  EXPECT_FALSE(cache_->on_device(kA));
}

TEST_F(ObjectCacheTest, MissingCountsWhatWouldBeLoaded) {
  use(mib(8), mib(64));
  once({constant(kA)});
  EXPECT_EQ(cache_->missing({constant(kA), input(kB), output(kC)}), mib(2));
}

}  // namespace
}  // namespace fairlead
