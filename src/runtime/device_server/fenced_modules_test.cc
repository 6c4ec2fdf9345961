// What reaches the driver of a server of several tenants: text that the fence's verifier has judged, for this tenant's range.
#include "runtime/device_server/fenced_modules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/device_server/testing/software_gpu.h"

namespace fairlead {
namespace {

using ::testing::HasSubstr;

constexpr Instant kNow{};
constexpr char kModule[] =
    ".version 7.8\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 p) {\n"
    ".reg .b64 %a; .reg .b32 %v; ld.param.u64 %a, [p]; ld.global.u32 %v, [%a]; st.global.u32 [%a+4], %v; ret; }\n";

class FencedModulesTest : public testing::Test {
 protected:
  static constexpr Bytes kMemory{32 << 20};

  std::unique_ptr<DeviceObjects> objects_ =
      DeviceObjects::create(software_gpu(SOFTGPU_FOLDER), {.device = kMemory, .host = kMemory},
                            AddressSpaces::kPerTenant)
          .value();
  FencedModules modules_{software_gpu(SOFTGPU_FOLDER), *objects_};
  DeviceObjects::RangeIndex own_ = objects_->add_range().value();
  DeviceObjects::RangeIndex other_ = objects_->add_range().value();

  // Of the module, fenced for that range.
  FencedCode code_for(DeviceObjects::RangeIndex range) {
    fence::FenceOptions options = modules_.options_of(range);
    return {fence::fence_ptx(kModule, options).value().ptx, {}};
  }
};

TEST_F(FencedModulesTest, WhatIsFencedForItsRangeIsAccepted) {
  ASSERT_TRUE(modules_.place(kNow, own_, "m", 0));
  const FencedCode code = code_for(own_);
  const auto accepted = modules_.accept("m", code);
  ASSERT_TRUE(accepted) << accepted.error().message;
  EXPECT_EQ(*accepted, code.ptx);
  EXPECT_EQ(modules_.signatures("m").size(), 1u);
}

TEST_F(FencedModulesTest, WhatIsNotProvedIsNotAccepted) {
  ASSERT_TRUE(modules_.place(kNow, own_, "m", 0));
  const FencedCode code = code_for(own_);
  std::string without = code.ptx;
  const std::size_t mask = without.find("and.b64");
  without.erase(mask, without.find('\n', mask) + 1 - mask);
  for (const std::string& ptx : {std::string(kModule), without, code_for(other_).ptx}) {
    const auto accepted = modules_.accept("m", {ptx, {}});
    ASSERT_FALSE(accepted) << ptx;
    EXPECT_EQ(accepted.error().code, Errc::kInternal);
    EXPECT_THAT(accepted.error().message, HasSubstr("a fault of the fence and not of the module"));
  }
}

}  // namespace
}  // namespace fairlead
