// What the fence clears, and what it leaves alone because nothing of another kernel can be seen there: by the fenced text.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gpu/fence/fence.h"
#include "gpu/fence/testing/leftover_checker.h"

namespace fairlead::fence {
namespace {

using ::testing::HasSubstr;
using testing::leftover_read;
using ::testing::Not;

constexpr FenceOptions kOptions{.base = 0x700000000000, .bytes = std::uint64_t{1} << 32};

std::string module_of(const std::string& body, const std::string& preamble = "", const std::string& version = "7.8") {
  return ".version " + version + "\n.target sm_90\n.address_size 64\n" + preamble +
         "\n.visible .entry kernel(.param .u64 p)\n{\n.reg .b64 %rd<8>; .reg .b32 %r<8>; .reg .pred %p<4>;\n"
         "ld.param.u64 %rd1, [p];\n" +
         body + "\nret;\n}\n";
}

FencedModule fence(const std::string& body, const std::string& preamble = "") {
  Result<FencedModule> fenced = fence_ptx(module_of(body, preamble), kOptions);
  EXPECT_TRUE(fenced) << fenced.error().message;
  if (!fenced) return {};
  EXPECT_EQ(leftover_read(fenced->ptx), "") << fenced->ptx;
  return *fenced;
}

std::string refusal(const std::string& body, const std::string& preamble = "") {
  const Result<FencedModule> fenced = fence_ptx(module_of(body, preamble), kOptions);
  EXPECT_FALSE(fenced) << fenced->ptx;
  return fenced ? "" : fenced.error().message;
}

TEST(Clears, AKernelThatReadsOnlyWhatItHasWrittenClearsNothing) {
  EXPECT_EQ(fence("mov.u32 %r1, 5; st.global.u32 [%rd1], %r1;").functions[0].prologue, 0u);
  EXPECT_EQ(fence("mov.u32 %r1, 5; st.shared.u32 [tile], %r1; bar.sync 0;", ".shared .b32 tile;").functions[0].prologue,
            0u);
  EXPECT_EQ(fence(".local .b32 frame; mov.u32 %r1, 5; st.local.u32 [frame], %r1;").functions[0].prologue, 0u);
}

TEST(Clears, RegistersThatEveryWayWritesAreNotSet) {
  const char* const kBodies[] = {
      "setp.eq.u64 %p1, %rd1, 0; @%p1 bra B; mov.u32 %r1, 1; bra C; B: mov.u32 %r1, 2; C: st.global.u32 [%rd1], %r1;",
      "mov.u32 %r1, 0; L: add.u32 %r1, %r1, 1; mov.u32 %r2, %r1; setp.lt.u32 %p1, %r2, 9; @%p1 bra L;"
      "st.global.u32 [%rd1], %r2;",
      "T: .branchtargets A, B; mov.u32 %r2, 0; brx.idx %r2, T; A: mov.u32 %r1, 1; bra C; B: mov.u32 %r1, 2;"
      "C: st.global.u32 [%rd1], %r1;",
      "setp.eq.u64 %p1, %rd1, 0; @%p1 bra B; mov.u32 %r1, 1; st.global.u32 [%rd1], %r1; B: ret; st.global.u32 [%rd1], "
      "%r3;",
      "setp.lt.u32 %p1|%p2, 1, 2; selp.u32 %r1, 1, 0, %p2; mov.b64 {%r2, %r3}, %rd1; add.cc.u32 %r1, %r1, %r2;"
      "addc.u32 %r1, %r1, %r3; st.global.u32 [%rd1], %r1;",
  };
  for (const char* const body : kBodies) EXPECT_EQ(fence(body).functions[0].prologue, 0u) << fence(body).ptx;
}

TEST(Clears, ARegisterThatAWayLeavesOutIsSetOnce) {
  const FencedModule fenced = fence(
      "setp.eq.u64 %p1, %rd1, 0; @%p1 bra B; mov.u32 %r1, 1; B: st.global.u32 [%rd1], %r1; st.global.u32 [%rd1], %r1;");
  EXPECT_EQ(fenced.functions[0].prologue, 1u);
  EXPECT_THAT(fenced.ptx, HasSubstr("mov.b32 %r1, 0;\nld.param.u64 %rd1, [p];"));
}

TEST(Clears, OfEveryKindOfRegister) {
  const FencedModule fenced = fence(
      ".reg .b16 %h; .reg .f32 %f; .reg .f64 %d; .reg .b128 %q; .reg .f16x2 %x; st.global.b16 [%rd1], %h;"
      "@%p3 st.global.f32 [%rd1], %f; st.global.f64 [%rd1], %d; mov.b128 {%rd2, %rd3}, %q; st.global.b32 [%rd1], %x;");
  for (const char* const line : {"mov.b16 %h, 0;", "mov.b32 %f, 0;", "mov.b64 %d, 0;", "mov.pred %p3, 0;",
                                 "mov.b128 %q, {%__fence_zero, %__fence_zero};", "mov.b32 %x, 0;"}) {
    EXPECT_THAT(fenced.ptx, HasSubstr(line));
  }
}

TEST(Clears, ARegisterOfAScopeIsSetAtTheFunctionsStart) {
  const FencedModule fenced = fence("L: { .reg .b32 %r1; st.global.u32 [%rd1], %r1; mov.u32 %r1, 4; } bra L;");
  EXPECT_THAT(fenced.ptx, HasSubstr("mov.b32 %__fence_r0, 0;"));
  EXPECT_THAT(fenced.ptx, HasSubstr(", %__fence_r0;\nmov.u32 %__fence_r0, 4;"));
}

TEST(Clears, TheCarry) {
  EXPECT_THAT(fence("addc.u32 %r1, 0, 0; st.global.u32 [%rd1], %r1;").ptx,
              HasSubstr("add.cc.u32 %__fence_carry, %__fence_carry, %__fence_carry;"));
}

TEST(Clears, SharedMemoryIsClearedWhereAFunctionReadsIt) {
  const std::string reader = ".shared .b32 tile; .func f() { .reg .b32 %r; ld.shared.u32 %r, [tile]; ret; }";
  const auto is_cleared = [](const FencedModule& fenced) { return fenced.functions.back().prologue > 30; };
  EXPECT_TRUE(is_cleared(fence("call f;", reader)));
  EXPECT_TRUE(is_cleared(fence("call g;", reader + ".func g() { call f; ret; }")));
  EXPECT_TRUE(is_cleared(fence("P: .callprototype _ (); mov.u64 %rd2, f; call %rd2, P;", reader)));
  EXPECT_FALSE(is_cleared(fence("call g;", reader + ".func g() { ret; }")));
}

TEST(Clears, ByTheClusterWhereItsBlocksReadEachOthers) {
  EXPECT_THAT(fence("ld.shared::cluster.u32 %r1, [%rd1];").ptx,
              HasSubstr("__fence_cleared:\nbarrier.cluster.arrive;\nbarrier.cluster.wait;\n"));
  EXPECT_THAT(fence("ld.shared.u32 %r1, [%rd1];").ptx, HasSubstr("__fence_cleared:\nbar.sync 0;\n"));
}

TEST(Clears, AVariableThatNobodyNamesIsLeftOut) {
  EXPECT_THAT(fence(".shared .b32 unused; .shared .b32 used; ld.shared.u32 %r1, [used];").ptx,
              Not(HasSubstr("unused")));
}

TEST(Clears, DynamicMemoryBeginsWhereTheLargestAlignmentSays) {
  EXPECT_THAT(fence("ld.shared.u32 %r1, [wide];", ".extern .shared .align 128 .b8 wide[];").ptx,
              HasSubstr(".extern .shared .align 128 .b8 __fence_dynamic[];"));
}

TEST(Clears, GenericAddressesAreOfSharedMemoryOnlyWhereThereIsAny) {
  const FencedModule fenced = fence("ld.u32 %r1, [%rd1];");
  EXPECT_THAT(fenced.ptx, Not(HasSubstr("isspacep.shared")));
  EXPECT_EQ(fenced.functions[0].prologue, 0u);
}

TEST(Clears, LoadsFromLocalMemoryStayInItsVariables) {
  const FencedModule fenced = fence(
      ".local .b8 frame[40]; mov.u64 %rd2, frame; add.u64 %rd3, %rd2, %rd1; ld.local.u32 %r1, [%rd3]; ld.u32 %r2, "
      "[%rd3];");
  EXPECT_THAT(fenced.ptx, HasSubstr("and.b64 %__fence_t0, %__fence_t0, 0x3f;\nadd.s64 %__fence_t0, %__fence_t0, "
                                    "%__fence_arena;\nld.local.u32 %r1, [%__fence_t0];"));
  EXPECT_THAT(fenced.ptx, HasSubstr("st.local.v4.b32 [__fence_arena+64]"));
  EXPECT_THAT(fence(".local .b8 frame[4000]; ld.local.u32 %r1, [frame];").ptx,
              HasSubstr("setp.lt.u64 %q, %__fence_l0, 4096;"));
}

TEST(Clears, ADiscardThrowsNothingAway) {
  EXPECT_THAT(fence("discard.global.L2 [%rd1], 128;").ptx, Not(HasSubstr("discard")));
}

TEST(Clears, CanBeLeftOutToMeasureThem) {
  FenceOptions options = kOptions;
  options.clears_leftovers = false;
  const auto fenced =
      fence_ptx(module_of("ld.shared.u32 %r1, [tile]; st.global.u32 [%rd1], %r2;", ".shared .b32 tile;"), options);
  ASSERT_TRUE(fenced);
  EXPECT_EQ(fenced->functions[0].prologue, 0u);
}

TEST(Clears, RefusesWhatCouldNotBeCleared) {
  constexpr const char* kRefused[][3] = {
      {"{ .param .b32 a; bra L; L: call f, (a); }", "behind a label", ".func f(.param .b32 a) { ret; }"},
      {"{ .param .b32 a; st.param.b32 [a], 0; call f, (a); }", "has 4 bytes, 'a' has 8",
       ".func f(.param .b64 a) { ret; }"},
      {"{ .param .b32 a; st.param.b32 [a], 0; call f, (a, a); }", "2 parameters or results for 1",
       ".func f(.param .b32 a) { ret; }"},
      {"{ .param .b64 r; call (r), f, (); }", "has 8 bytes, 'r' has 4", ".func (.param .b32 r) f() { ret; }"},
      {"ld.param.u64 %rd2, [p+8];", "not inside parameter 'p' of 8 bytes", ""},
      {"call f;", "not inside parameter", ".func f(.param .b32 a) { .reg .b32 %r; ld.param.b32 %r, [a+4]; ret; }"},
      {"ld.local.u32 %r1, [%rd1];", "no variable in local memory", ""},
      {"shfl.sync.idx.b32 %nobody, %r1, 0, 31, -1;", "goes to no register", ""},
      {"shfl.sync.idx.b32 !%r1, %r1, 0, 31, -1;", "goes to no register", ""},
      {"mov.u32 %r1|nothing, 1;", "'nothing' is no register", ""},
      {"ret;", "its result has 8 bytes", ".extern .func (.param .b64 r) vprintf(.param .b64 f, .param .b64 a);"},
  };
  for (const auto& [body, reason, preamble] : kRefused) EXPECT_THAT(refusal(body, preamble), HasSubstr(reason)) << body;
  const auto old = fence_ptx(module_of("ld.shared.u32 %r1, [%rd1];", "", "3.2"), kOptions);
  ASSERT_FALSE(old);
  EXPECT_THAT(old.error().message, HasSubstr("that needs .version 4.1, the module has 3.2"));
}

TEST(Clears, TheCheckerSeesWhatIsReadFirst) {
  const auto function = [](const std::string& lines) {
    return ".visible .entry k ()\n{\n.reg .b32 %r<4>;\n.reg .pred %p;\n" + lines + "ret;\n}\n";
  };
  EXPECT_EQ(leftover_read(function("mov.u32 %r1, 0;\nadd.u32 %r1, %r1, 1;\n")), "");
  for (const char* const lines :
       {"add.u32 %r1, %r1, 1;\n", "setp.eq.u32 %p, 0, 0;\n@%p mov.u32 %r1, 1;\n", "@%p ret;\n",
        "setp.eq.u32 %p, 0, 0;\n@%p bra L;\nmov.u32 %r1, 0;\nL:\nmov.u32 %r2, %r1;\n", "addc.u32 %r1, 0, 0;\n",
        "{\n.reg .b32 %r1;\nmov.u32 %r1, 0;\n}\nmov.u32 %r2, %r1;\n", "st.shared.u32 [%r1], 0;\n",
        "mov.u32 %r0, 0;\nld.shared.u32 %r1, [%r0];\n", ".param .align 4 .b32 a;\ncall f, (a);\n",
        ".local .align 16 .b8 __fence_arena[32];\nld.local.u32 %r1, [__fence_arena+0];\n"}) {
    EXPECT_NE(leftover_read(function(lines)), "") << lines;
  }
  EXPECT_NE(leftover_read(".func (.param .align 4 .b32 r) f ()\n{\nret;\n}\n"), "");
}

}  // namespace
}  // namespace fairlead::fence
