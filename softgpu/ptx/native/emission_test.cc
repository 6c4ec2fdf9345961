#include "softgpu/ptx/native/emission_test.h"

#include "softgpu/ptx/native/writers.h"

namespace softgpu::ptx::native {
namespace {

using testing::Stretch;
using testing::written;
using Tracked = std::vector<std::pair<std::int32_t, std::uint8_t>>;

// An emission of a stretch, with runtime functions that nobody calls.
class EmissionTest : public ::testing::Test {
 protected:
  static SlowResult access(Warp&, const SlowCall&, Pattern*) { return SlowResult::kDone; }
  static void arithmetic(Warp&, const SlowCall&, Pattern*) {}
  static void materialise(Warp&, const SlowCall&, Pattern*) {}
  static void expect_call(Assembler& as, const void* function, const SlowCall& call) {
    VectorCode(as).zero_upper();
    as.move(rdi, rbx);
    as.move(rsi, reinterpret_cast<std::uint64_t>(&call));
    as.move(rdx, rsp);
    as.call(function);
  }

  struct Emitter {
    Emitter(const Stretch& stretch, const Tracked& tracked)
        : flow(stretch.flow()),
          frame(assembler, stretch.segment(), flow, slow),
          emission{assembler, VectorCode(assembler), {assembler, flow}, {assembler, stretch.segment(), tracked}, slow,
                   frame} {}
    RowFlow flow;
    Assembler assembler;
    Runtime runtime{access, arithmetic, materialise};
    std::deque<SlowCall> calls;
    SlowWays slow{assembler, runtime, calls};
    CodeFrame frame;
    Emission emission;
  };
  Stretch stretch;
};

TEST_F(EmissionTest, AResultStaysInItsRegisters) {
  stretch.add(Action::kThreadIndex, 0);
  Emitter emitter(stretch, {});
  emitter.emission.define(0, 1);
  EXPECT_EQ(emitter.emission.registers.slot_of(0), 1);
  EXPECT_EQ(emitter.assembler.size(), 0u);
}

TEST_F(EmissionTest, ATrackedResultGoesToTheFrameAndLosesItsPattern) {
  stretch.add(Action::kThreadIndex, 0);
  Emitter emitter(stretch, {{0, 4}});
  emitter.emission.define(0, 1);
  EXPECT_EQ(emitter.emission.registers.slot_of(0), -1);
  EXPECT_EQ(emitter.assembler.finish(), written([](Assembler& as) {
              for (int i = 0; i < kParts; ++i) VectorCode(as).store(Memory{rbp, 32 * i}, 4 + i);
              as.store(Memory{rsp, 24}, static_cast<std::int32_t>(PatternState::kUnknown));
            }));
}

// The register is that of a sink, in which lanes were before.
TEST_F(EmissionTest, AMaskTakesTheRowFromTheRegisters) {
  stretch.add(Action::kPredicate, 0);
  Emitter emitter(stretch, {});
  emitter.emission.define(0, 1);
  emitter.emission.define_mask(0);
  EXPECT_EQ(emitter.emission.registers.slot_of(0), -1);
  EXPECT_EQ(emitter.assembler.finish(), written([](Assembler& as) { as.store32(Memory{rbp, 0}, rax); }));
}

TEST_F(EmissionTest, AStaleRowIsBroughtOnceAndOutOfLine) {
  stretch.add(Action::kBinary, 256, 0, 0);
  Emitter emitter(stretch, {{0, 4}});
  emitter.emission.patterns.find(0)->is_stale = true;
  for (int i = 0; i < 2; ++i) emitter.emission.bring_row(0);
  emitter.emission.bring_row(kNoRow);
  emitter.emission.bring_row(512);
  const std::size_t straight = emitter.assembler.size();
  emitter.slow.emit_deferred();
  EXPECT_FALSE(emitter.emission.patterns.find(0)->is_stale);
  ASSERT_EQ(emitter.calls.size(), 1u);
  EXPECT_TRUE(emitter.calls[0].a.is_stale) << "the call writes the row because it was stale";
  EXPECT_EQ(emitter.assembler.finish(), written([&](Assembler& as) {
              const Assembler::Label stale = as.label(), back = as.label();
              as.compare(Memory{rsp, 24}, 0);
              as.jump_if(Condition::kEqual, stale);
              as.bind(back);
              EXPECT_EQ(as.size(), straight);
              as.bind(stale);
              expect_call(as, reinterpret_cast<const void*>(materialise), emitter.calls[0]);
              as.jump(back);
            }));
}

// A slow way belongs to its place: what is done to registers behind it does not concern it.
TEST_F(EmissionTest, CodeOutOfLineKnowsTheRegistersOfItsPlace) {
  stretch.add(Action::kMove, 0, 256);
  stretch.add(Action::kBinary, 768, 512, 512);
  Emitter emitter(stretch, {{0, 8}, {256, 8}});
  emitter.emission.registers.hold(512, 2);
  write_pattern(emitter.emission, stretch.step(0));
  emitter.emission.registers.hold(1024, 2);
  const std::size_t straight = emitter.assembler.size();
  emitter.slow.emit_deferred();
  const std::vector<std::uint8_t> code = emitter.assembler.finish();
  const std::vector<std::uint8_t> cold(code.begin() + static_cast<std::ptrdiff_t>(straight), code.end());
  const std::vector<std::uint8_t> expected = written([&](Assembler& as) {
    for (int i = 0; i < kParts; ++i) VectorCode(as).store(Memory{rbp, 512 + 32 * i}, 8 + i);
    expect_call(as, reinterpret_cast<const void*>(arithmetic), emitter.calls.at(0));
    for (int i = 0; i < kParts; ++i) VectorCode(as).load(8 + i, Memory{rbp, 512 + 32 * i});
  });
  ASSERT_GT(cold.size(), expected.size());
  EXPECT_EQ((std::vector<std::uint8_t>{cold.begin(), cold.begin() + static_cast<std::ptrdiff_t>(expected.size())}),
            expected);
  EXPECT_TRUE(emitter.emission.patterns.find(0)->is_stale);
}

TEST_F(EmissionTest, WhatIsDeferredMayDeferMore) {
  Emitter emitter(stretch, {});
  std::vector<int> order;
  for (int i = 0; i < 100; ++i) {
    emitter.slow.defer([&, i] {
      order.push_back(i);
      if (i < 50) emitter.slow.defer([&, i] { order.push_back(100 + i); });
    });
  }
  emitter.slow.emit_deferred();
  ASSERT_EQ(order.size(), 150u);
  for (int i = 0; i < 150; ++i) EXPECT_EQ(order[static_cast<std::size_t>(i)], i);
}

TEST_F(EmissionTest, AWayOutCountsTheStepsBehindIt) {
  stretch.add(Action::kLoad, 0, 256);
  stretch.add(Action::kBinary, 512, 0, 0);
  stretch.meaning(0).space = Space::kGlobal;
  Emitter emitter(stretch, {});
  emitter.frame.count(2);
  EXPECT_EQ(emitter.assembler.finish(), written([](Assembler& as) {
              as.add(warp_field(&Warp::instructions), 2);
              as.multiply(rcx, r12, 2);
              as.add(warp_field(&Warp::lane_instructions), rcx);
              as.multiply(rcx, r12, 4);
              as.add(warp_field(&Warp::global_bytes), rcx);
            }));
}

// A row that code behind the segment reads is written from its pattern, one that nobody reads is not.
TEST_F(EmissionTest, PatternsAreWrittenForThoseWhoReadThem) {
  stretch.add(Action::kMove, 0, 256);
  stretch.add(Action::kMove, 512, 256);
  stretch.live(0, 0, 9);
  Emitter emitter(stretch, {{0, 8}, {512, 8}, {256, 8}});
  for (const int row : {0, 512}) emitter.emission.patterns.find(row)->is_stale = true;
  emitter.frame.leave(nullptr, 0, 1, emitter.emission.patterns.rows());
  ASSERT_EQ(emitter.calls.size(), 1u);
  EXPECT_EQ(emitter.calls[0].a.row, 0);
}

}  // namespace
}  // namespace softgpu::ptx::native
