#include "decide/sharing/sharing_mode.h"

#include <gmock/gmock.h>

namespace fairlead {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

TEST(SharingMode, NamesAreReadBack) {
  for (const std::string& name : sharing_mode_names()) EXPECT_EQ(sharing_mode_name(*sharing_mode_from(name)), name);
  const auto wrong = sharing_mode_from("vgpu");
  ASSERT_FALSE(wrong);
  EXPECT_THAT(wrong.error().message, HasSubstr("'vgpu', it must be one of none, mps, mig"));
}

TEST(MpsClients, AreSixtyFromCuda131On) {
  EXPECT_EQ(mps_client_limit("12.9"), 48u);
  EXPECT_EQ(mps_client_limit("13.0"), 48u);
  EXPECT_EQ(mps_client_limit("13.1"), 60u);
  EXPECT_EQ(mps_client_limit("14.0"), 60u);
  EXPECT_EQ(mps_client_limit("?"), 48u);
  EXPECT_EQ(mps_client_limit("13"), 48u);
}

TEST(ShareEnvironment, WithoutMpsIsTheDeviceAlone) {
  EXPECT_THAT(share_environment({.device_uuid = "MIG-1", .mps_pipe_directory = "", .share = {.width_percent = 30}}),
              ElementsAre(Pair("CUDA_VISIBLE_DEVICES", "MIG-1")));
}

TEST(ShareEnvironment, OfAClientNamesPipeShareAndLimit) {
  const InstanceShare share{
      .device_uuid = "GPU-1", .mps_pipe_directory = "/s/mps/1", .share = {.width_percent = 30, .memory = mib(1536)}};
  EXPECT_THAT(
      share_environment(share),
      ElementsAre(Pair("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", "30"), Pair("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", "0=1536M"),
                  Pair("CUDA_MPS_PIPE_DIRECTORY", "/s/mps/1"), Pair("CUDA_VISIBLE_DEVICES", "GPU-1")));
}

}  // namespace
}  // namespace fairlead
