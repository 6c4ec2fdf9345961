// The SMs of a device in groups, on the software GPU as an H100: 132 SMs, 16 groups of 8 and 4 that are in none. Planted and caught: a group too many for a
// width, a width rounded down.
#include "gpu/sm_groups.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "base/check.h"

namespace fairlead {
namespace {

// In a process of its own: a driver is what it was when it was first asked.
class SmGroupsDeathTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(SOFTGPU_FOLDER "/libcuda.so.1")) GTEST_SKIP() << "softgpu is not built";
    GTEST_FLAG_SET(death_test_style, "threadsafe");
  }
  // What `check` expects of an H100 is so.
  static void expect_of_h100(void (*check)(const CudaContext&, const SmGroups&)) {
    const auto child = [check] {
      const std::string home = std::filesystem::temp_directory_path() / fmt::format("sm-groups-{}", ::getpid());
      ::setenv("SOFTGPU_PROFILE", "h100-80", 1);
      ::setenv("SOFTGPU_HOME", home.c_str(), 1);
      {
        const auto gpu = CudaContext::open(SOFTGPU_FOLDER, 0);
        FL_CHECK(gpu.has_value(), "{}", gpu.error().message);
        const auto groups = SmGroups::create(**gpu);
        FL_CHECK(groups.has_value(), "{}", groups.error().message);
        check(**gpu, **groups);
      }
      std::filesystem::remove_all(home);
      ::_exit(HasFailure() ? 1 : 0);
    };
    EXPECT_EXIT(child(), testing::ExitedWithCode(0), "");
  }
};

TEST_F(SmGroupsDeathTest, AreAsManyAsFitIntoAWidth) {
  expect_of_h100([](const CudaContext&, const SmGroups& groups) {
    EXPECT_EQ(groups.count(), 16u);
    EXPECT_EQ(groups.within(49), 8u);  // the header's example
    EXPECT_EQ(groups.percent_of(8), 49);
    EXPECT_EQ(groups.within(48), 7u) << "63 of 132 SMs";
    EXPECT_EQ(groups.within(100), 16u);
    EXPECT_EQ(groups.percent_of(16), 97);
    EXPECT_EQ(groups.within(1), 1u);
    EXPECT_EQ(groups.percent_of(1), 7);
    EXPECT_EQ(groups.sms_of(3), 24u);
    for (int percent = 7; percent <= 100; ++percent) EXPECT_LE(groups.percent_of(groups.within(percent)), percent);
  });
}

TEST_F(SmGroupsDeathTest, AContextHasTheSmsOfItsGroups) {
  expect_of_h100([](const CudaContext& gpu, const SmGroups& groups) {
    const auto context = groups.make(SmGroups::Set(0b1010'0000'0000'0001));
    FL_CHECK(context.has_value(), "{}", context.error().message);
    decltype(cuGreenCtxGetDevResource)* ask = nullptr;
    FL_CHECK(gpu.driver().bind(ask, "cuGreenCtxGetDevResource").has_value(), "cuGreenCtxGetDevResource");
    CUdevResource sms{};
    EXPECT_EQ(ask(*context, &sms, CU_DEV_RESOURCE_TYPE_SM), CUDA_SUCCESS);
    EXPECT_EQ(sms.sm.smCount, 24u);
    const auto stream = groups.make_stream(*context);
    FL_CHECK(stream.has_value(), "{}", stream.error().message);
    groups.destroy(*context, std::span(&*stream, 1));
    EXPECT_EQ(ask(*context, &sms, CU_DEV_RESOURCE_TYPE_SM), CUDA_ERROR_INVALID_HANDLE);
  });
}

}  // namespace
}  // namespace fairlead
