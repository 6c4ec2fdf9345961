#include "model/cut_tag.h"

#include <gtest/gtest.h>

#include "model/function.h"

namespace fairlead {
namespace {

TEST(CutTag, IsTrueUnlessSomebodySaysFalse) {
  EXPECT_TRUE(may_cut_kernels({}).value());
  EXPECT_TRUE(may_cut_kernels({{"gpu:cut-kernels", "true"}}).value());
  EXPECT_FALSE(may_cut_kernels({{"gpu:cut-kernels", "false"}}).value());
}

TEST(CutTag, AnotherWordIsRefusedWhereAFunctionIsMade) {
  FunctionConfig config;
  config.tags = {{"gpu:cut-kernels", "false"}};
  EXPECT_TRUE(gpu_settings(config));
  config.tags = {{"gpu:cut-kernels", "off"}};
  ASSERT_FALSE(gpu_settings(config));
  EXPECT_EQ(gpu_settings(config).error().message, "tag gpu:cut-kernels is 'off'; it must be true or false");
}

}  // namespace
}  // namespace fairlead
