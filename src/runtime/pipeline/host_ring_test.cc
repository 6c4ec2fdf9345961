// Slots of a ring as the node sees them, and that nothing of one is left. Planted and caught: a word that goes on from what a dead writer
// left; a ring that grows with its first use instead of at once.
#include "runtime/pipeline/host_ring.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

namespace fairlead {
namespace {

using testing::HasSubstr;
using wire::StageRingShape;

std::uint32_t word_of(const HostRing& ring, std::uint32_t slot) {
  std::uint32_t word = 0;
  EXPECT_EQ(::pread(ring.descriptor(), &word, sizeof word, static_cast<off_t>(ring.shape().word_offset(slot))), 4);
  return word;
}

TEST(HostRing, EachUseBeginsWhereTheOneBeforeEnded) {
  const auto ring = HostRing::make({2, 3 * StageRingShape::kChunk}).value();
  const wire::RingSlot first = ring->write(1, 4);
  EXPECT_EQ(first.start, 3U);
  EXPECT_EQ(word_of(*ring, 1), 3U);
  EXPECT_EQ(ring->read(1, 9), (wire::RingSlot{.buffer = 9, .slot = 1, .start = 3, .ring = ring->number()}));
  const std::uint32_t left = 4;  // by a writer that died after a chunk
  ASSERT_EQ(::pwrite(ring->descriptor(), &left, sizeof left, static_cast<off_t>(ring->shape().word_offset(1))), 4);
  EXPECT_EQ(ring->write(1, 4).start, 6U);
  EXPECT_EQ(word_of(*ring, 1), 6U);
  ring->let_go(1);
  EXPECT_EQ(word_of(*ring, 1), 9U);
  EXPECT_EQ(ring->write(0, 0).start, 3U);
}

TEST(HostRing, TakesItsMemoryAtOnceAndCannotShrink) {
  const auto ring = HostRing::make({4, 100'000}).value();
  struct stat file {};
  ASSERT_EQ(::fstat(ring->descriptor(), &file), 0);
  EXPECT_GE(file.st_blocks * 512, ring->bytes().count());
  EXPECT_NE(::ftruncate(ring->descriptor(), 0), 0);
}

TEST(HostRing, RefusesWhatIsBeyondItsBounds) {
  EXPECT_THAT(HostRing::make({0, 1}).error().message, HasSubstr("0 slots"));
  EXPECT_THAT(HostRing::make({65, 1}).error().message, HasSubstr("at most 64"));
  EXPECT_THAT(HostRing::make({1, ~std::uint64_t{0}}).error().message, HasSubstr("at most"));
}

TEST(HostRing, NumbersAreNeverUsedAgain) {
  const std::uint64_t first = HostRing::make({1, 1}).value()->number();
  EXPECT_GT(HostRing::make({1, 1}).value()->number(), first);
}

}  // namespace
}  // namespace fairlead
