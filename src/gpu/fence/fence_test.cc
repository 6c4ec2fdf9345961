#include "gpu/fence/fence.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gpu/fence/testing/leftover_checker.h"
#include "gpu/fence/testing/verified.h"

namespace fairlead::fence {
namespace {

using testing::fault_of;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr FenceOptions kOptions{.base = 0x700000000000, .bytes = std::uint64_t{1} << 32};

std::string module_of(const std::string& body, const std::string& preamble = "") {
  return ".version 7.8\n.target sm_90\n.address_size 64\n" + preamble +
         "\n.visible .entry kernel(.param .u64 p)\n{\n.reg .b64 %rd<8>; .reg .b32 %r<8>; .reg .pred %p<4>;\n"
         ".shared .align 8 .b64 bar;\nld.param.u64 %rd1, [p];\n" +
         body + "\nret;\n}\n";
}

FencedModule fence(const std::string& body, const std::string& preamble = "") {
  Result<FencedModule> fenced = fence_ptx(module_of(body, preamble), kOptions);
  EXPECT_TRUE(fenced) << fenced.error().message;
  if (!fenced) return {};
  EXPECT_EQ(fault_of(fenced->ptx, kOptions), "") << fenced->ptx;
  EXPECT_EQ(testing::leftover_read(fenced->ptx), "") << fenced->ptx;
  return *fenced;
}

std::string refusal(const std::string& body, const std::string& preamble = "") {
  const Result<FencedModule> fenced = fence_ptx(module_of(body, preamble), kOptions);
  EXPECT_FALSE(fenced) << fenced->ptx;
  return fenced ? "" : fenced.error().message;
}

TEST(Fence, MasksAnAddressInTwoInstructions) {
  const FencedModule fenced = fence("ld.global.u32 %r1, [%rd1];");
  EXPECT_THAT(fenced.ptx, HasSubstr("and.b64 %__fence_a0, %rd1, 0xffffffff;\nor.b64 %__fence_a0, %__fence_a0, "
                                    "0x700000000000;\nld.global.u32 %r1, [%__fence_a0];"));
  ASSERT_EQ(fenced.functions.size(), 1u);
  EXPECT_EQ(fenced.functions[0].added, 2u);
  EXPECT_EQ(fenced.functions[0].accesses, 1u);
}

TEST(Fence, AccessesThroughOneRegisterShareAFence) {
  const FencedModule fenced =
      fence("ld.global.u32 %r1, [%rd1]; ld.global.u32 %r2, [%rd1+4]; st.global.u32 [%rd1-8], %r1;");
  EXPECT_EQ(fenced.functions[0].added, 2u);
  EXPECT_THAT(fenced.ptx, HasSubstr("[%__fence_a0+-8]"));
}

TEST(Fence, ARegisterWrittenAnewIsFencedAnew) {
  const FencedModule fenced = fence("ld.global.u64 %rd1, [%rd1]; ld.global.u64 %rd1, [%rd1];");
  EXPECT_EQ(fenced.functions[0].added, 4u);
}

TEST(Fence, AnOffsetBeyondTheGuardZoneIsAddedBeforeTheFence) {
  const FencedModule fenced = fence("ld.global.u32 %r1, [%rd1+65536];");
  EXPECT_THAT(fenced.ptx, HasSubstr("add.s64 %__fence_t0, %rd1, 65536;\nand.b64 %__fence_t1, %__fence_t0"));
}

TEST(Fence, APointerComputedBeforeALoopIsFencedBeforeIt) {
  const FencedModule fenced = fence(
      "mov.u32 %r1, 0; L: ld.global.u32 %r2, [%rd1]; add.u32 %r1, %r1, 1;"
      "setp.lt.u32 %p1, %r1, 9; @%p1 bra L;");
  EXPECT_LT(fenced.ptx.find("and.b64 %__fence_a0"), fenced.ptx.find("L:"));
}

TEST(Fence, ALabelEndsWhatIsKnownOfAnAddress) {
  const FencedModule fenced = fence(
      "setp.eq.u64 %p1, %rd1, 0; @%p1 bra L; ld.global.u32 %r1, [%rd1]; L:"
      "ld.global.u32 %r1, [%rd1];");
  EXPECT_EQ(fault_of(fenced.ptx, kOptions), "");
}

TEST(Fence, VariablesMoveToTheRange) {
  FenceOptions options = kOptions;
  options.variables_address = kOptions.base + 0x2000;
  const std::string ptx = module_of("mov.u64 %rd2, table; ld.global.u32 %r1, [table+4]; ld.global.u32 %r2, [%rd2];",
                                    ".global .align 4 .u32 table[2] = {7, 9}; .global .u64 where = table+4;"
                                    ".global .f32 half = 0.5;");
  const Result<FencedModule> fenced = fence_ptx(ptx, options);
  ASSERT_TRUE(fenced) << fenced.error().message;
  EXPECT_THAT(fenced->ptx, HasSubstr("mov.b64 %rd2, 0x700000002000;"));
  EXPECT_THAT(fenced->ptx, HasSubstr("mov.b64 %__fence_t1, 0x700000002004;"));
  EXPECT_THAT(fenced->ptx, Not(HasSubstr("table")));
  const std::vector<std::uint8_t> expected = {7, 0, 0, 0, 9, 0, 0, 0, 4, 0x20, 0, 0, 0, 0x70, 0, 0, 0, 0, 0, 0x3f};
  ASSERT_EQ(fenced->variables.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(std::to_integer<std::uint8_t>(fenced->variables[i]), expected[i]) << i;
  }
}

TEST(Fence, ConstantsStayUntilTheirAddressIsTaken) {
  const std::string weights = ".const .align 4 .f32 weights[4] = {0f3F800000, 0f40000000};";
  EXPECT_THAT(fence("ld.const.f32 %r1, [weights+4];", weights).ptx, HasSubstr("weights[4] = {0f3F800000, 0f40000000}"));
  const FencedModule taken =
      fence("mov.u64 %rd2, weights; cvta.const.u64 %rd2, %rd2; ld.const.f32 %r1, [weights+4];", weights);
  EXPECT_EQ(taken.variables.size(), 16u);
  EXPECT_THAT(taken.ptx, HasSubstr("ld.global.f32 %r1, [%__fence_t1]"));
}

TEST(Fence, GenericAddressesMayBeShared) {
  const FencedModule fenced = fence("ld.u32 %r1, [%rd1];");
  EXPECT_THAT(fenced.ptx, HasSubstr("isspacep.shared"));
  EXPECT_THAT(fenced.ptx, Not(HasSubstr("isspacep.local"))) << "there is no local memory to reach";
}

TEST(Fence, StoresToLocalMemoryStayInItsVariables) {
  const FencedModule fenced = fence(
      ".local .align 4 .b8 stack[40]; mov.u64 %rd2, stack; st.local.u32 [%rd2+4], %r1;"
      "add.u64 %rd3, %rd2, %rd1; st.local.u32 [%rd3], %r1;");
  EXPECT_THAT(fenced.ptx, HasSubstr(".local .align 16 .b8 __fence_arena["));
  EXPECT_THAT(fenced.ptx, HasSubstr("st.local.u32 [__fence_arena+4], %r1;"));
  EXPECT_THAT(fenced.ptx, HasSubstr("and.b64 %__fence_t0, %__fence_t0, 0x3f;"));
}

TEST(Fence, ATableBranchIsClamped) {
  EXPECT_THAT(fence("T: .branchtargets A, B; brx.idx %r1, T; A: B:").ptx, HasSubstr("min.u32 %__fence_w0, %r1, 1;"));
}

TEST(Fence, AnIndirectCallReachesFunctionsOfItsKindOnly) {
  const std::string functions =
      ".func one(.param .b64 a) { ret; } .func two(.param .b64 a) { ret; }"
      ".func other(.param .b32 a) { ret; }";
  const FencedModule fenced = fence(
      "mov.u64 %rd2, one; mov.u64 %rd2, other; P: .callprototype _ (.param .b64 _);"
      "{ .param .b64 x; st.param.b64 [x], %rd1; call %rd2, (x), P; }",
      functions);
  EXPECT_THAT(fenced.ptx, HasSubstr("call one, (x);"));
  EXPECT_THAT(fenced.ptx, Not(HasSubstr("call two"))) << "nobody takes its address";
  EXPECT_THAT(fenced.ptx, Not(HasSubstr("call other"))) << "its parameter has another size";
  EXPECT_THAT(fenced.ptx, Not(HasSubstr("call %rd2")));
}

TEST(Fence, PrintfPrintsNothing) {
  const FencedModule fenced = fence("{ .param .b64 f; .param .b64 a; .param .b32 r; call (r), vprintf, (f, a); }",
                                    ".extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);");
  EXPECT_THAT(fenced.ptx, HasSubstr("call (r), __fence_vprintf, (f, a);"));
  EXPECT_THAT(fenced.notes, ::testing::ElementsAre("printf prints nothing and returns -1"));
}

TEST(Fence, SharedInstructionsNameTheirSpace) {
  EXPECT_THAT(fence("mbarrier.init.b64 [%rd1], 4;").ptx, HasSubstr("mbarrier.init.shared.b64 [%__fence_t0], 4;"));
}

struct Refused {
  const char* body;
  const char* reason;
  const char* preamble = "";
};

TEST(Fence, RefusesWithKernelLineInstructionAndReason) {
  EXPECT_EQ(
      refusal("\n\ntex.1d.v4.f32.s32 {%r1, %r2, %r3, %r4}, [%rd1, {%r1}];"),
      "function 'kernel', line 12: 'tex.1d.v4.f32.s32 {%r1, %r2, %r3, %r4}, [%rd1];': textures are reached by handle, "
      "not by address, so nothing bounds them");
}

TEST(Fence, RefusesWhatItCannotFence) {
  constexpr Refused kRefused[] = {
      {"cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd1], 16, [%r2];", "in bulk"},
      {"cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%rd1], [%r1], %r2;", "in bulk"},
      {"multimem.ld_reduce.global.add.u32 %r1, [%rd1];", "other devices"},
      {"alloca.u64 %rd2, 16;", "stack"},
      {"stackrestore.u64 %rd1;", "stack pointer"},
      {"wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%r1}, %rd1, %rd2, 1, 1, 1, 0, 0;", "descriptors"},
      {"frobnicate.u32 %r1, [%rd1];", "not known"},
      {"cvt.u32.u64$ %r1, %rd1;", "no modifier"},
      {"st.async.b32 [%rd1], %r1, [%r2];", "shared::cluster"},
      {"mov.b64 %rd2, %envreg1;", "cooperative"},
      {"cvta.param.u64 %rd2, %rd1;", "parameters"},
      {"mapa.u64 %rd2, %rd1, %r1;", "generic form"},
      {"add.u64 %rd2, table, 4;", "no register", ".global .u32 table;"},
      {"call malloc, (%rd1);", "outside the module", ".extern .func malloc(.param .b64 n);"},
      {"atom.const.add.u32 %r1, [%rd1], 1;", "no such access"},
      {"ld.shared.global.u32 %r1, [%rd1];", "two spaces"},
      {"wmma.load.a.sync.aligned.row.m16n16k16.global.shared.f16 {%r1}, [%rd1], 16;", "two spaces"},
      {"ld.global.b32 [%rd1];", "no destination"},
      {"call nothing;", "no function of this module"},
      {"call %rd1;", ".callprototype"},
      {"mov.u64 %rd2, kernel;", "no variable"},
      {"bra kernel;", "no label"},
      {"brx.idx %r1, T;", "no .branchtargets"},
      {"ld.global.u32 %r1, [bar];", "no variable in global memory"},
      {"st.param.u64 [%rd1], %rd1;", "by name"},
      {"st.local.u32 [%rd1], %r1;", "no variable in local memory"},
      {"wmma.load.a.sync.aligned.row.m16n16k16.f16 {%r1}, [%rd1], 16;", ".global or .shared"},
      {"ld.u32 %r1, [%rd1]; /* unfinished", "expected"},
      {"mov.b64 %__fence_a0, %rd1;", "keeps for itself"},
      {"ld.global.u32 %r1, [far];", ".extern", ".extern .global .u32 far;"},
      {"f: ret;", "calls itself", ".func deep() { .local .b8 stack[64]; call deep; ret; }"},
      {".local .b8 big[1048576];", "limit"},
      {"{ T: .branchtargets L; brx.idx %r1, T; } { T: .branchtargets L, L; } L:", "'T' is the name of two tables"},
      {".local .b8 a[64]; st.local.v8.b32 [a], {%r1, %r1, %r1, %r1, %r1, %r1, %r1, %r1};", "at most 16 bytes"},
      {".local .b8 a[64]; ld.v4.b64 {%rd1, %rd2, %rd3, %rd4}, [%rd1];", "at most 16 bytes"},
      {"T: .branchtargets L, kernel; L:", "'kernel' is no label of this function"},
      {"ldmatrix.sync.aligned.m8n8.x1.global.b16 {%r1}, [%rd1];", "in shared memory only"},
      {"prefetch.global.local.L1 [%rd1];", "two spaces"},
      {"wmma.load.a.sync.aligned.row.m16n16k16.global {%r1}, [%rd1], 16;", "its shape or its type"},
      {"ret;", "level of the module", ".texref t;"},
      {"ret;", "more than 2^32 elements", ".shared .b8 s[4294967296][4294967296];"},
      {"ret;", "'#'", "#include \"x\"\n"},
  };
  for (const Refused& refused : kRefused) {
    EXPECT_THAT(refusal(refused.body, refused.preamble), HasSubstr(refused.reason)) << refused.body;
  }
}

TEST(Fence, RowsOfAFragmentNeedAGuard) {
  FenceOptions options = kOptions;
  options.guard_bytes = 0;
  const std::string load =
      "wmma.load.a.sync.aligned.row.m16n16k16.global.f16 {%r1, %r2, %r3, %r4, %r5, %r6, %r7, %r0}, [%rd1];";
  const Result<FencedModule> fenced = fence_ptx(module_of(load), options);
  ASSERT_FALSE(fenced);
  EXPECT_THAT(fenced.error().message, HasSubstr("its rows take up to 4096 bytes, guard_bytes is 0"));
}

TEST(Fence, NothingIsSmuggledThroughTheHeader) {
  const std::string smuggled =
      ".entry evil(.param .u64 p) { .reg .b64 %a; ld.param.u64 %a, [p]; st.global.u64 [%a], %a; }";
  for (const std::string head : {".version 7.8 ", ".version 7.8\n.target sm_90 ", ".version 7.8\n.target sm_90, "}) {
    const Result<FencedModule> fenced = fence_ptx(head + smuggled + "\n.address_size 64\n", kOptions);
    if (fenced) {
      EXPECT_EQ(fault_of(fenced->ptx, kOptions), "") << fenced->ptx;
    }
  }
  EXPECT_FALSE(fence_ptx(".version 7.8 \"x\"\n.target sm_90\n.address_size 64\n", kOptions));
  EXPECT_FALSE(fence_ptx(".version 7.8\n.target sm_90\n.address_size 32\n", kOptions));
}

TEST(Fence, RefusesRangesThatAreNone) {
  const auto message = [](const FenceOptions& options) { return fence_ptx(module_of(""), options).error().message; };
  EXPECT_THAT(message({.base = 1 << 20, .bytes = 3 << 20}), HasSubstr("bytes is 0x300000, it must be a power of two"));
  EXPECT_THAT(message({.base = 1 << 20, .bytes = 1 << 21}), HasSubstr("base is 0x100000"));
  EXPECT_THAT(message({.base = 1 << 21, .bytes = 1 << 21, .guard_bytes = 1 << 30}), HasSubstr("guard_bytes"));
  EXPECT_THAT(message({.base = 1 << 21, .bytes = 1 << 21, .variables_address = 1}),
              HasSubstr("variables_address is 0x1"));
}

TEST(Fence, TheSameTextGivesTheSameText) {
  const std::string ptx = module_of("ld.global.u32 %r1, [%rd1];");
  EXPECT_EQ(fence_ptx(ptx, kOptions)->ptx, fence_ptx(ptx, kOptions)->ptx);
}

}  // namespace
}  // namespace fairlead::fence
