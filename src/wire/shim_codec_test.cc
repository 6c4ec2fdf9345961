#include "wire/shim_codec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "base/rng.h"

namespace fairlead::wire {
namespace {

using testing::HasSubstr;

Frame moved(FrameKind answered, MoveResult result, std::uint64_t bytes) {
  Frame frame = make_frame(FrameKind::kMoved);
  frame.body.moved = {answered, result, bytes, 5, 7};
  return frame;
}

std::string refusal(const Frame& frame) {
  const auto decoded = decode_shim_frame(packet_of(frame));
  return decoded ? "accepted" : decoded.error().message;
}

TEST(ShimCodec, FramesOfAShimComeBackAsTheyWere) {
  Frame frames[] = {make_frame(FrameKind::kHello),         moved(FrameKind::kSwapIn, MoveResult::kPartly, 9),
                    make_frame(FrameKind::kNeedRoom),      make_frame(FrameKind::kNeedStaging),
                    make_frame(FrameKind::kReturnStaging), make_frame(FrameKind::kWantMemory)};
  frames[0].body.hello = {77, 1, 12};
  frames[2].body.need_room = {4096, 3};
  frames[3].body.need_staging = {kStagingGranule, 4};
  frames[4].body.return_staging = {2 * kStagingGranule, kStagingGranule};
  for (const Frame& frame : frames) {
    const auto decoded = decode_shim_frame(packet_of(frame));
    ASSERT_TRUE(decoded) << decoded.error().message;
    EXPECT_EQ(packet_of(*decoded), packet_of(frame)) << frame_kind_name(frame.kind);
  }
}

TEST(ShimCodec, AnotherSizeIsRefusedAndNamed) {
  const Frame frame = make_frame(FrameKind::kWantMemory);
  std::string bytes(packet_of(frame));
  for (const std::string& packet : {std::string(), bytes.substr(1), bytes + "x"}) {
    const auto decoded = decode_shim_frame(packet);
    ASSERT_FALSE(decoded);
    EXPECT_EQ(decoded.error().code, Errc::kCorrupt);
    EXPECT_THAT(decoded.error().message, HasSubstr("it must be 40"));
  }
}

TEST(ShimCodec, WhatOnlyTheNodeSendsIsRefused) {
  for (const FrameKind kind :
       {FrameKind::kWelcome, FrameKind::kSwapOut, FrameKind::kSwapIn, FrameKind::kRoom, FrameKind::kStaging}) {
    EXPECT_THAT(refusal(make_frame(kind)), HasSubstr("only the node sends it"));
  }
  EXPECT_THAT(refusal(make_frame(static_cast<FrameKind>(0))), HasSubstr("kind is 0"));
  EXPECT_THAT(refusal(make_frame(static_cast<FrameKind>(12))), HasSubstr("between 1 and 11"));
}

TEST(ShimCodec, EveryBoundIsNamedWithItsFieldAndValue) {
  EXPECT_THAT(refusal(moved(FrameKind::kHello, MoveResult::kDone, 0)), HasSubstr("Moved: answered is 1"));
  EXPECT_THAT(refusal(moved(FrameKind::kSwapIn, static_cast<MoveResult>(5), 0)), HasSubstr("result is 5"));
  EXPECT_THAT(refusal(moved(FrameKind::kSwapIn, MoveResult::kDone, kMaxFrameBytes + 1)), HasSubstr("Moved: bytes is"));
  EXPECT_THAT(refusal(make_frame(FrameKind::kHello)), HasSubstr("Hello: pid is 0"));
  EXPECT_THAT(refusal(make_frame(FrameKind::kNeedRoom)), HasSubstr("NeedRoom: bytes is 0"));
  Frame staging = make_frame(FrameKind::kNeedStaging);
  staging.body.need_staging.bytes = kStagingGranule + 1;
  EXPECT_THAT(refusal(staging), HasSubstr("multiple of 2097152"));
  Frame back = make_frame(FrameKind::kReturnStaging);
  back.body.return_staging = {UINT64_MAX - kStagingGranule + 1, kStagingGranule};
  EXPECT_THAT(refusal(back), HasSubstr("ReturnStaging: offset is"));
}

// Any bytes are either refused or a frame within every bound. Most random packets end at their kind, so that is chosen.
TEST(ShimCodec, RandomBytesAreRefusedOrWithinBounds) {
  Rng rng(20);
  int accepted = 0;
  for (int round = 0; round < 200'000; ++round) {
    Frame frame = make_frame(FrameKind::kHello);
    std::uint64_t words[sizeof(Frame) / 8];
    for (std::uint64_t& word : words) word = rng.next() >> rng.below(64);
    std::memcpy(static_cast<void*>(&frame), words, sizeof frame);
    frame.kind = static_cast<FrameKind>(rng.below(14));
    const auto decoded = decode_shim_frame(packet_of(frame));
    if (!decoded) continue;
    ++accepted;
    if (decoded->kind == FrameKind::kMoved) {
      ASSERT_LE(decoded->body.moved.bytes, kMaxFrameBytes);
      ASSERT_LE(static_cast<std::uint32_t>(decoded->body.moved.result), 4u);
    }
    if (decoded->kind == FrameKind::kReturnStaging) {
      ASSERT_LE(decoded->body.return_staging.offset, kMaxFrameBytes);
    }
    if (decoded->kind == FrameKind::kNeedStaging) {
      ASSERT_EQ(decoded->body.need_staging.bytes % kStagingGranule, 0u);
    }
  }
  EXPECT_GT(accepted, 1'000);
}

TEST(ShimCodec, AMadeFrameHoldsNoStrayBytes) {
  const Frame frame = make_frame(FrameKind::kWelcome);
  const std::string_view bytes = packet_of(frame);
  EXPECT_EQ(bytes.substr(4), std::string(36, '\0'));
}

}  // namespace
}  // namespace fairlead::wire
