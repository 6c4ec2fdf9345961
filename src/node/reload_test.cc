#include "node/reload.h"

#include <gmock/gmock.h>

namespace fairlead {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(Reload, NothingNewChangesNothing) {
  const Reload plan = plan_reload(ServeOptions(), ServeOptions());
  EXPECT_THAT(plan.changed, IsEmpty());
  EXPECT_THAT(plan.unchanged, IsEmpty());
}

TEST(Reload, WhatCanChangeDoesAndWhatCannotIsNamed) {
  ServeOptions wanted;
  wanted.log_level = "debug";
  wanted.queue_limit = 5;
  wanted.drain_seconds = 2.5;
  wanted.instances_per_gpu = 16;
  wanted.listen = {"127.0.0.1:1", "127.0.0.1:2"};
  const Reload plan = plan_reload(ServeOptions(), wanted);
  EXPECT_THAT(plan.changed, ElementsAre("--drain is 2.5, it was 30", "--log-level is debug, it was info",
                                        "--queue-limit is 5, it was 10000"));
  EXPECT_THAT(plan.unchanged,
              ElementsAre("--listen is 127.0.0.1:1, 127.0.0.1:2 after a restart; the node runs on with 127.0.0.1:9001",
                          "--pool is 16 after a restart; the node runs on with 32"));
  EXPECT_EQ(plan.options.log_level, "debug");
  EXPECT_EQ(plan.options.queue_limit, 5);
  EXPECT_EQ(plan.options.drain_seconds, 2.5);
  EXPECT_EQ(plan.options.instances_per_gpu, 32);
  EXPECT_THAT(plan.options.listen, ElementsAre("127.0.0.1:9001"));
}

TEST(Reload, WhatWaitsForARestartIsNamedAgainUntilItIsTakenBack) {
  ServeOptions running, wanted;
  wanted.instances_per_gpu = 16;
  running = plan_reload(running, wanted).options;
  EXPECT_THAT(plan_reload(running, wanted).unchanged, testing::SizeIs(1));
  EXPECT_THAT(plan_reload(running, ServeOptions()).unchanged, IsEmpty());
}

ServeOptions with(SlotChoice slots, std::optional<int> lanes = std::nullopt) {
  ServeOptions options;
  options.slots = slots;
  options.task_lanes = lanes;
  return options;
}

TEST(Reload, SlotsChangeFromOneNumberToAnother) {
  const SlotChoice two{.most = 2, .is_given = true}, four{.most = 4, .is_given = true}, unsaid;
  const SlotChoice automatic{.most = 8, .is_dynamic = true, .is_given = true};
  EXPECT_EQ(plan_reload(with(two), with(four)).options.slots.most, 4);
  EXPECT_THAT(plan_reload(with(two), with(automatic)).unchanged,
              ElementsAre("--slots is auto:8 after a restart; the node runs on with 2"));
  EXPECT_EQ(plan_reload(with(automatic), with(two)).options.slots, automatic);
  // Whether lanes are measured depends on whether D is given, unless they are given themselves.
  EXPECT_THAT(plan_reload(with(unsaid), with(four)).unchanged,
              ElementsAre("--slots is 4 after a restart; the node runs on with the default (2)"));
  EXPECT_EQ(plan_reload(with(unsaid, 0), with(four, 0)).options.slots.most, 4);
}

TEST(Reload, TenantsChangeWhileTheNodeRuns) {
  ServeOptions none, one, other;
  one.tenants = {{.name = "vision", .share = {.weight = 2}}};
  other.tenants = {{.name = "vision", .share = {.weight = 3, .max_concurrency = 4}}};
  EXPECT_THAT(plan_reload(one, other).changed, ElementsAre("--tenant is vision:3:4, it was vision:2"));
  EXPECT_EQ(plan_reload(one, other).options.tenants.front().share.weight, 3);
  EXPECT_THAT(plan_reload(none, one).changed,
              ElementsAre("--tenant is vision:2, it was the default (all have weight 1)"));
  EXPECT_THAT(plan_reload(one, none).options.tenants, IsEmpty());
  ServeOptions ignores;
  ignores.ignore_tenants = true;
  EXPECT_THAT(plan_reload(none, ignores).unchanged, testing::SizeIs(1));
}

}  // namespace
}  // namespace fairlead
