#include "softgpu/ptx/native/pattern_rows.h"

#include <array>
#include <cstring>

#include "softgpu/ptx/native/emission_test.h"

namespace softgpu::ptx::native {
namespace {

using testing::Stretch;
using testing::written;
using Tracked = std::vector<std::pair<std::int32_t, std::uint8_t>>;

constexpr Memory kFirstPattern{rsp, 0}, kSecondPattern{rsp, 32};

void store_state(Assembler& as, Memory pattern, PatternState state) {
  as.store(pattern + 24, static_cast<std::int32_t>(state));
}

TEST(PatternRows, PatternsLieOnTheStackInTheOrderOfTheirRows) {
  Assembler assembler;
  const Stretch stretch;
  PatternRows rows(assembler, stretch.segment(), Tracked{{256, 8}, {512, 4}});
  ASSERT_NE(rows.find(512), nullptr);
  EXPECT_EQ(rows.find(256)->memory().offset, 0);
  EXPECT_EQ(rows.find(512)->memory().offset, 32);
  EXPECT_EQ(rows.find(512)->bytes, 4);
  EXPECT_EQ(rows.find(768), nullptr);
}

TEST(PatternRows, InALoopAPatternMayComeRound) {
  Stretch stretch;
  stretch.add(Action::kAdd, 256, 256, 512);
  stretch.add(Action::kBranch, kNoRow);
  const Tracked tracked{{256, 8}, {512, 8}};
  Assembler assembler;
  EXPECT_FALSE(PatternRows(assembler, stretch.segment(), tracked).find(256)->is_stale);
  stretch.become_loop();
  PatternRows rows(assembler, stretch.segment(), tracked);
  EXPECT_TRUE(rows.find(256)->is_stale);
  EXPECT_FALSE(rows.find(512)->is_stale) << "which nobody writes";
}

TEST(PatternRows, ConstantsAreKnownFromTheBeginning) {
  alignas(64) std::array<std::byte, 256> pool{};
  const std::uint64_t value = 0x1234;
  std::memcpy(pool.data(), &value, sizeof value);
  Program program(nullptr);
  program.constants_end = pool.data() + pool.size();
  Assembler assembler;
  const Stretch stretch;
  PatternRows constant(assembler, stretch.segment(), Tracked{{-256, 8}});
  constant.prepare(program);
  EXPECT_EQ(assembler.finish(), written([](Assembler& as) {
              as.move(rax, 0x1234);
              as.store(kFirstPattern, rax);
              as.store(kFirstPattern + 8, rax);
              as.store(kFirstPattern + 16, 0);
              store_state(as, kFirstPattern, PatternState::kKnown);
            }));
  Assembler other;
  PatternRows row(other, stretch.segment(), Tracked{{256, 8}});
  row.prepare(program);
  EXPECT_EQ(other.finish(), written([](Assembler& as) { store_state(as, kFirstPattern, PatternState::kUnknown); }));
}

TEST(PatternRows, AWrittenRowLosesItsPattern) {
  Assembler assembler;
  const Stretch stretch;
  PatternRows rows(assembler, stretch.segment(), Tracked{{0, 8}, {256, 8}});
  rows.set_uniform(*rows.find(256), rax);
  EXPECT_TRUE(rows.find(256)->is_stale);
  const std::size_t before = assembler.size();
  rows.changed(512);
  EXPECT_EQ(assembler.size(), before) << "a row without a pattern";
  rows.changed(256);
  EXPECT_FALSE(rows.find(256)->is_stale);
  const std::vector<std::uint8_t> code = assembler.finish();
  EXPECT_EQ((std::vector<std::uint8_t>{code.begin() + static_cast<std::ptrdiff_t>(before), code.end()}),
            written([](Assembler& as) { store_state(as, kSecondPattern, PatternState::kUnknown); }));
}

TEST(PatternRows, ASlowCallIsToldWhatIsTracked) {
  Assembler assembler;
  const Stretch stretch;
  PatternRows rows(assembler, stretch.segment(), Tracked{{0, 8}, {256, 4}});
  rows.find(256)->is_stale = true;
  const TrackedRow known = describe(rows.rows(), 256), other = describe(rows.rows(), 512);
  EXPECT_EQ(known.pattern, 1);
  EXPECT_EQ(known.bytes, 4);
  EXPECT_TRUE(known.is_stale);
  EXPECT_EQ(other.pattern, -1);
  EXPECT_EQ(other.row, 512);
  EXPECT_EQ(describe(rows.rows(), kNoRow).pattern, -1);
}

}  // namespace
}  // namespace softgpu::ptx::native
