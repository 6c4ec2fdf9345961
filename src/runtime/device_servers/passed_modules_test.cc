#include "runtime/device_servers/passed_modules.h"

#include <gtest/gtest.h>

namespace fairlead {
namespace {

TEST(PassedModules, ThoseAskedForLastStay) {
  PassedModules passed(2);
  passed.add("a");
  passed.add("b");
  EXPECT_TRUE(passed.has("a"));
  passed.add("c");
  EXPECT_TRUE(passed.has("a"));
  EXPECT_FALSE(passed.has("b"));
  EXPECT_TRUE(passed.has("c"));
  passed.add("c");
  EXPECT_EQ(passed.size(), 2U);
}

}  // namespace
}  // namespace fairlead
