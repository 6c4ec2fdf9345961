#include "softgpu/ptx/decode/code_writer.h"

#include "softgpu/ptx/decode/decode_test.h"

namespace softgpu::ptx {
namespace {

using testing::OneFunction;

class CodeWriterTest : public ::testing::Test {
 protected:
  OneFunction one{
      ".entry k() { .reg .b32 %r;\nA: B: T: .branchtargets A, B; bad: .branchtargets A, nowhere;\nbrx.idx %r, T; }"};
  CodeWriter& writer = one.decoder().writer;
  const InstructionSet& isa = instruction_set();
};

TEST_F(CodeWriterTest, BranchesGoBehindTheirLabelsWhereverTheseAre) {
  writer.emit(isa.guard);
  writer.branch_to("B");
  writer.place_label("A");
  writer.place_label("B");
  writer.emit(isa.guard);
  writer.branch_to("A");
  ASSERT_TRUE(writer.resolve());
  const std::vector<Instruction>& all = one.code.instructions;
  EXPECT_EQ(all[0].target, &all[3]);
  EXPECT_EQ(all[3].target, &all[2]);
  EXPECT_EQ(all[1].target, nullptr);
  EXPECT_EQ(all[1].counted, 0) << "a label is no instruction";
}

TEST_F(CodeWriterTest, AGuardGoesBehindWhatItGuards) {
  const std::size_t guard = writer.position();
  writer.emit(isa.guard);
  for (int i = 0; i < 100; ++i) writer.emit(isa.unguard);
  writer.branch_here(guard);
  writer.emit(isa.function_end);
  ASSERT_TRUE(writer.resolve());
  EXPECT_EQ(one.code.instructions[0].target, &one.code.instructions[101]);
}

TEST_F(CodeWriterTest, TablesHaveTheTargetsOfTheirLabels) {
  const BranchTargets* table = writer.branch_table("T");
  writer.emit(isa.guard);
  writer.place_label("A");
  writer.place_label("B");
  ASSERT_TRUE(writer.resolve());
  ASSERT_EQ(table->targets.size(), 2u);
  EXPECT_EQ(table->targets[0], one.code.instructions.data() + 2);
  EXPECT_EQ(table->targets[1], one.code.instructions.data() + 3);
}

TEST_F(CodeWriterTest, WhatIsNotDefinedIsNamed) {
  writer.emit(isa.guard);
  writer.branch_to("C");
  EXPECT_FALSE(writer.resolve());
  EXPECT_EQ(one.error(), "branch to label 'C', which function 'k' does not define");
  EXPECT_EQ(one.decoder().text.error()->kind, LoadError::Kind::kUnresolvedSymbol);
}

TEST_F(CodeWriterTest, ATableWithAnUnknownLabelIsRefused) {
  one.begin(0);
  writer.branch_table("bad");
  writer.place_label("A");
  EXPECT_FALSE(writer.resolve());
  EXPECT_EQ(one.error(), "branch table 'bad' or one of its labels is not defined");
  EXPECT_EQ(one.decoder().text.error()->line, 3) << "of the branch";
}

TEST_F(CodeWriterTest, ALabelIsDefinedOnce) {
  writer.place_label("A");
  EXPECT_EQ(one.error(), "none");
  writer.place_label("A");
  EXPECT_EQ(one.error(), "label 'A' is defined twice");
}

TEST_F(CodeWriterTest, AHandlerThatIsMissingRefusesTheInstruction) {
  one.begin(0);
  writer.emit(nullptr);
  EXPECT_EQ(one.error(), "instruction brx.idx: this combination of types is not supported");
}

TEST_F(CodeWriterTest, AccessesHaveACacheSlotEach) {
  EXPECT_EQ(writer.emit_memory(isa.guard).slot, 0u);
  EXPECT_EQ(writer.emit_memory(isa.guard).slot, 1u);
  EXPECT_EQ(one.program.cache_slots, 2u);
}

TEST_F(CodeWriterTest, ListsStayWhereTheyAre) {
  std::vector<const RowList*> kept;
  for (int i = 0; i < 100; ++i) kept.push_back(writer.keep(RowList{{i}}));
  for (int i = 0; i < 100; ++i) EXPECT_EQ(kept[static_cast<std::size_t>(i)]->rows[0], i);
}

}  // namespace
}  // namespace softgpu::ptx
