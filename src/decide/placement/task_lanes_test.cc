#include "decide/placement/task_lanes.h"

#include <gtest/gtest.h>

namespace fairlead {
namespace {

TEST(TaskLanes, AreTakenOneByOne) {
  EXPECT_TRUE((TaskLanes{.lanes = 2, .running = 1}.takes(false)));
  EXPECT_FALSE((TaskLanes{.lanes = 2, .running = 2}.takes(false)));
}

TEST(TaskLanes, ALoadTakesOneWhereLoadsHaveNone) {
  EXPECT_TRUE((TaskLanes{.lanes = 2, .running = 1}.takes(true)));
  EXPECT_FALSE((TaskLanes{.lanes = 2, .running = 2}.takes(true)));
}

TEST(TaskLanes, ALoadGoesBesideAllThatCompute) {
  EXPECT_TRUE((TaskLanes{.lanes = 2, .loads_at_once = 1, .running = 2}.takes(true)));
  EXPECT_FALSE((TaskLanes{.lanes = 2, .loads_at_once = 1, .running = 3, .loading = 1}.takes(true)));
  EXPECT_TRUE((TaskLanes{.lanes = 2, .loads_at_once = 2, .running = 3, .loading = 1}.takes(true)));
}

TEST(TaskLanes, WhoLoadsDoesNotCompute) {
  EXPECT_TRUE((TaskLanes{.lanes = 2, .loads_at_once = 1, .running = 2, .loading = 1}.takes(false)));
  EXPECT_FALSE((TaskLanes{.lanes = 2, .loads_at_once = 1, .running = 3, .loading = 1}.takes(false)));
}

// One more than there are lanes, once it has loaded; not two.
TEST(TaskLanes, NobodyLoadsWhileOneMoreComputesThanThereAreLanes) {
  EXPECT_TRUE((TaskLanes{.lanes = 2, .loads_at_once = 1, .running = 2}.takes_any()));
  EXPECT_FALSE((TaskLanes{.lanes = 2, .loads_at_once = 1, .running = 3}.takes_any()));
}

}  // namespace
}  // namespace fairlead
