#include "softgpu/ptx/decode/row_allocation.h"

#include <gtest/gtest.h>

#include <string>

#include "softgpu/ptx/program.h"
#include "softgpu/ptx/text/parser.h"

namespace softgpu::ptx {
namespace {

// Rows of the registers of a kernel with %r<8> (registers 0 to 7), %d<2> (8, 9) and %p (10).
RowAllocation rows_of(const std::string& body, std::string& text) {
  text = ".entry k() {\n.reg .b32 %r<8>; .reg .b64 %d<2>; .reg .pred %p;\n" + body + "\n}\n";
  const ParseResult parsed = parse(text);
  EXPECT_FALSE(parsed.error);
  return allocate_rows(parsed.module.functions.at(0));
}

TEST(RowAllocation, RegistersThatFollowEachOtherShareARow) {
  std::string text;
  const auto result = rows_of("mov.u32 %r0, 1; add.u32 %r1, %r0, 1; mov.u32 %r2, 2; add.u32 %r3, %r2, %r1;", text);
  EXPECT_NE(result.rows[0], result.rows[1]) << "a source's row is not its own instruction's destination";
  EXPECT_EQ(result.rows[2], result.rows[0]);
  EXPECT_NE(result.rows[2], result.rows[1]) << "%r1 is still to be read";
  EXPECT_EQ(result.rows[4], kNoRow);
  EXPECT_EQ(result.peak_words, 3u);
}

TEST(RowAllocation, WidthsAreKeptApart) {
  std::string text;
  const auto result = rows_of("mov.u32 %r0, 1; add.u32 %r1, %r0, 1; mov.u64 %d0, 2; add.u64 %d1, %d0, 1;", text);
  EXPECT_NE(result.rows[8], result.rows[0]);
  EXPECT_EQ(result.frame_bytes, 2u * 128 + 2 * 256);
}

TEST(RowAllocation, AValueThatGoesRoundALoopKeepsItsRowThroughout) {
  std::string text;
  const auto result = rows_of(
      "mov.u32 %r0, 1;\nLOOP: add.u32 %r1, %r0, 1; mov.u32 %r2, %r1; setp.lt.u32 %p, %r2, 9; @%p bra LOOP;\nret;",
      text);
  EXPECT_NE(result.rows[2], result.rows[0]) << "%r0 is read again in the next iteration";
}

TEST(RowAllocation, AValueWrittenUnderAGuardMayBeOlder) {
  std::string text;
  const auto result = rows_of(
      "mov.u32 %r0, 1;\nLOOP: setp.lt.u32 %p, %r0, 9; @%p mov.u32 %r1, 5; add.u32 %r2, %r1, 1; mov.u32 %r3, %r2;\n"
      "@%p bra LOOP;\nret;",
      text);
  EXPECT_NE(result.rows[3], result.rows[1]) << "where the guard fails, %r1 is the last iteration's";
}

TEST(RowAllocation, TablesOfLabelsMakeLoops) {
  std::string text;
  const auto result = rows_of(
      "T: .branchtargets A, B;\nmov.u32 %r0, 1;\nA: add.u32 %r1, %r0, 1;\nmov.u32 %r2, 0; brx.idx %r2, T;\nB: ret;",
      text);
  EXPECT_NE(result.rows[2], result.rows[0]);
}

}  // namespace
}  // namespace softgpu::ptx
