#include "decide/core/pin_check.h"

#include <gmock/gmock.h>

namespace fairlead {
namespace {

using ::testing::HasSubstr;

constexpr PinBounds kHalf{.percent = 50, .tenant_percent = 50, .staging = Bytes(std::int64_t{8} << 30)};

PinAsked asks(PinKind pin, int gib, TenantId tenant = TenantId(1)) {
  return {.tenant = tenant, .pin = pin, .memory = mib(1024 * gib)};
}
std::string said(const PinAsked& asked, const std::vector<PinAsked>& others = {}, bool several = false) {
  const Status status = check_pin(asked, others, {mib(16384)}, kHalf, several);
  return status ? "" : status.error().message;
}

TEST(PinCheck, OneThatNoGpuHasRoomForIsRefusedWithTheBound) {
  EXPECT_EQ(said(asks(PinKind::kDevice, 8)), "");
  EXPECT_THAT(said(asks(PinKind::kDevice, 9)),
              HasSubstr("gpu:pin is device with gpu:memory-mib 9216; that makes 9216 MiB, and what "
                        "everybody pins on one GPU may take 8192 MiB"));
}

TEST(PinCheck, AllTogetherAreBounded) {
  EXPECT_EQ(said(asks(PinKind::kDevice, 4), {asks(PinKind::kDevice, 4), asks(PinKind::kHost, 4)}), "");
  EXPECT_THAT(said(asks(PinKind::kDevice, 5), {asks(PinKind::kDevice, 4)}), HasSubstr("that makes 9216 MiB"));
  EXPECT_THAT(said(asks(PinKind::kHost, 3), {asks(PinKind::kHost, 2)}), HasSubstr("--host-memory may take 4096 MiB"));
}

TEST(PinCheck, ATenantHasItsPartWhereThereAreSeveral) {
  EXPECT_EQ(said(asks(PinKind::kDevice, 5)), "");
  EXPECT_THAT(said(asks(PinKind::kDevice, 5), {}, true),
              HasSubstr("what one tenant pins on one GPU may take 4096 MiB"));
  EXPECT_THAT(said(asks(PinKind::kDevice, 3), {asks(PinKind::kDevice, 2)}, true), HasSubstr("what one tenant pins"));
  EXPECT_EQ(said(asks(PinKind::kDevice, 3), {asks(PinKind::kDevice, 2, TenantId(2))}, true), "");
}

TEST(PinCheck, WhatNobodyKnowsBoundsNothing) {
  EXPECT_TRUE(check_pin(asks(PinKind::kDevice, 9), {}, {}, kHalf, false));
  EXPECT_TRUE(check_pin(asks(PinKind::kDevice, 9), {}, {Bytes(0)}, kHalf, false));
  EXPECT_TRUE(check_pin(asks(PinKind::kDevice, 0), {}, {mib(1)}, kHalf, false));
  EXPECT_TRUE(check_pin(asks(PinKind::kHost, 9), {}, {}, {.staging = Bytes(0)}, false));
}

}  // namespace
}  // namespace fairlead
