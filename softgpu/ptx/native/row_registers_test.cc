#include "softgpu/ptx/native/row_registers.h"

#include "softgpu/ptx/native/emission_test.h"

namespace softgpu::ptx::native {
namespace {

using testing::Stretch;
using testing::written;

constexpr std::int32_t kRow[] = {0, 128, 256, 384, 512};

// Four results, of which the first is read last: row 3 needs a slot while rows 0 to 2 hold all of them.
class RowRegistersTest : public ::testing::Test {
 protected:
  static Stretch four_results() {
    Stretch out;
    for (int i = 0; i < 4; ++i) out.add(Action::kThreadIndex, kRow[i]);
    out.add(Action::kBinary, kRow[4], kRow[1], kRow[2]);
    out.add(Action::kBinary, kRow[4], kRow[4], kRow[3]);
    out.add(Action::kBinary, kRow[4], kRow[4], kRow[0]);
    return out;
  }
  void hold_three() {
    for (int i = 0; i < 3; ++i) {
      registers.go_to(i);
      registers.hold(kRow[i], registers.take());
    }
  }
  static void store(Assembler& as, std::int32_t row, Vector first) {
    for (int i = 0; i < kParts; ++i) VectorCode(as).store(Memory{rbp, row} + 32 * i, first + i);
  }

  Stretch stretch = four_results();
  RowFlow flow = stretch.flow();
  Assembler assembler;
  RowRegisters registers{assembler, flow};
};

TEST_F(RowRegistersTest, ResultsTakeEmptySlotsWithoutCode) {
  hold_three();
  EXPECT_EQ(registers.slot_of(kRow[0]), 0);
  EXPECT_EQ(registers.slot_of(kRow[2]), 2);
  EXPECT_EQ(registers.slot_of(kRow[3]), -1);
  EXPECT_EQ(registers.slot_of(kNoRow), -1) << "an empty slot holds no row";
  EXPECT_EQ(assembler.size(), 0u);
}

TEST_F(RowRegistersTest, TheRowThatIsNeededLastGivesWayAndIsWritten) {
  hold_three();
  registers.go_to(3);
  EXPECT_EQ(registers.take(), 0);
  EXPECT_EQ(assembler.finish(), written([](Assembler& as) { store(as, kRow[0], 0); }));
}

TEST_F(RowRegistersTest, SourcesKeepTheirSlots) {
  hold_three();
  registers.go_to(3);
  EXPECT_EQ(registers.take(0, -1), 1) << "of rows read in the same step the first gives way";
  EXPECT_EQ(registers.take(0, 1), 2);
}

TEST_F(RowRegistersTest, ARowThatNobodyReadsGivesWayFirstAndIsNotWritten) {
  hold_three();
  registers.go_to(4);
  EXPECT_TRUE(registers.is_dead_behind(kRow[1], 4));
  EXPECT_FALSE(registers.is_dead_behind(kRow[0], 4));
  EXPECT_EQ(registers.take(), 1);
  EXPECT_EQ(assembler.size(), 0u);
}

TEST_F(RowRegistersTest, WhatIsAliveIsWrittenBackAndReadAgain) {
  hold_three();
  registers.go_to(4);
  registers.write_back(registers.now());
  registers.read_back(registers.now().slots);
  EXPECT_EQ(assembler.finish(), written([](Assembler& as) {
              store(as, kRow[0], 0);
              for (int row = 0; row < 3; ++row) {
                for (int i = 0; i < kParts; ++i) VectorCode(as).load(4 * row + i, Memory{rbp, kRow[row]} + 32 * i);
              }
            }));
}

TEST_F(RowRegistersTest, ARowIsWrittenForAReaderOfMemoryOnce) {
  hold_three();
  for (int i = 0; i < 2; ++i) EXPECT_EQ(registers.in_memory(kRow[1]).offset, kRow[1]);
  registers.go_to(3);
  registers.take(0, 2);
  EXPECT_EQ(assembler.finish(), written([](Assembler& as) { store(as, kRow[1], 4); }));
}

TEST_F(RowRegistersTest, PartsAreReadWhereTheyAre) {
  hold_three();
  EXPECT_EQ(registers.source(kRow[1], 2).vector, 6);
  EXPECT_EQ(registers.source(kRow[3], 2).memory.offset, kRow[3] + 64);
  EXPECT_EQ(registers.source(-128, 1).memory.base, r13) << "a constant";
  EXPECT_EQ(registers.in_register(kRow[2], 3, kScratch), 11);
  EXPECT_EQ(assembler.size(), 0u);
  EXPECT_EQ(registers.in_register(kRow[3], 3, kScratch), kScratch);
  EXPECT_GT(assembler.size(), 0u);
}

TEST_F(RowRegistersTest, APlaceKeepsWhatWasHeldThere) {
  hold_three();
  const Place place = registers.now().with_step(1);
  registers.forget(kRow[2]);
  EXPECT_EQ(registers.slot_of(kRow[2]), -1);
  EXPECT_EQ(place.slots.of(kRow[2]), 2);
  EXPECT_EQ(place.step, 1);
}

TEST_F(RowRegistersTest, ARowIsHeldInOneSlotOnly) {
  hold_three();
  registers.hold(kRow[0], 2);
  EXPECT_EQ(registers.slot_of(kRow[0]), 2);
  EXPECT_EQ(registers.now().slots[0].row, kNoRow);
}

}  // namespace
}  // namespace softgpu::ptx::native
