// State spaces, bounds, alignment and atomics.
#include <gtest/gtest.h>

#include <numeric>

#include "softgpu/ptx/ptx_evaluator.h"
#include "softgpu/ptx/types.h"

namespace softgpu::ptx {
namespace {

using testing::evaluate;
using testing::header;
using testing::load_error;
using testing::load_or_fail;
using testing::run_kernel;
using testing::TestDevice;
using u32 = std::uint32_t;
using u64 = std::uint64_t;

// A kernel of (pointer p, 64-bit value v), with the thread's index in %r0.
std::string kernel(const std::string& body, const std::string& declarations = "") {
  return header() + declarations +
         ".visible .entry k(.param .u64 p, .param .u64 v) {\n.reg .b64 %a<8>; .reg .b32 %r<8>; .reg .f32 %f<8>; .reg "
         ".b16 %h<4>;"
         " .reg .pred %q<4>;\nld.param.u64 %a0, [p]; ld.param.u64 %a1, [v]; mov.u32 %r0, %tid.x;\n" +
         body + "\nret;\n}\n";
}

Outcome run(const std::string& text, TestDevice& device, u64 p, u64 v, unsigned threads = 32) {
  const auto module = load_or_fail(text, device);
  if (module == nullptr) return {};
  return run_kernel(*module, device, "k", {1}, {threads}, p, v);
}

struct Access {
  const char* name;
  const char* body;
  FaultKind fault;
};

class MemoryFault : public ::testing::TestWithParam<Access> {};

// p points to 64 words; v is the first byte behind them.
TEST_P(MemoryFault, IsRaisedWithTheAddress) {
  TestDevice device;
  const u64 p = device.upload(std::vector<u32>(64));
  const Outcome outcome =
      run(kernel(GetParam().body, ".shared .align 8 .b8 s[64];\n.const .align 4 .b8 c[8];\n"), device, p, p + 256);
  EXPECT_EQ(outcome.fault, GetParam().fault) << outcome.fault_detail;
  if (outcome.fault != FaultKind::kNone) {
    EXPECT_NE(outcome.fault_detail.find("PTX line"), std::string::npos) << outcome.fault_detail;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Accesses, MemoryFault,
    ::testing::Values(
        Access{"LastWord", "ld.global.u32 %r1, [%a1+-4];", FaultKind::kNone},
        Access{"OneBehind", "ld.global.u32 %r1, [%a1];", FaultKind::kIllegalAddress},
        Access{"OneBefore", "ld.global.u32 %r1, [%a0+-4];", FaultKind::kIllegalAddress},
        Access{"Straddling", "ld.global.u64 %a2, [%a1+-4];", FaultKind::kMisalignedAddress},
        Access{"Null", "mov.u64 %a2, 0; ld.global.u32 %r1, [%a2];", FaultKind::kIllegalAddress},
        Access{"Wrapping", "mov.u64 %a2, -4; ld.global.u32 %r1, [%a2];", FaultKind::kIllegalAddress},
        Access{"RowRunsOver", "mul.wide.u32 %a2, %r0, 4; add.u64 %a2, %a2, %a0; ld.global.u32 %r1, [%a2+132];",
               FaultKind::kIllegalAddress},
        Access{"RowFits", "mul.wide.u32 %a2, %r0, 4; add.u64 %a2, %a2, %a0; ld.global.u32 %r1, [%a2+128];",
               FaultKind::kNone},
        Access{"StoreBehind", "st.global.u32 [%a1], %r0;", FaultKind::kIllegalAddress},
        Access{"StoreMisaligned", "st.global.u32 [%a0+2], %r0;", FaultKind::kMisalignedAddress},
        Access{"ScatterOverEnd", "mul.wide.u32 %a2, %r0, 12; add.u64 %a2, %a2, %a0; st.global.u32 [%a2], %r0;",
               FaultKind::kIllegalAddress},
        Access{"VectorMisaligned", "ld.global.v2.u32 {%r1, %r2}, [%a0+4];", FaultKind::kMisalignedAddress},
        Access{"VectorBehind", "ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%a1];", FaultKind::kIllegalAddress},
        Access{"AtomicBehind", "atom.global.add.u32 %r1, [%a1], 1;", FaultKind::kIllegalAddress},
        Access{"AtomicMisaligned", "red.global.add.u32 [%a0+1], 1;", FaultKind::kMisalignedAddress},
        Access{"SharedEnd", "mov.u64 %a2, s; ld.shared.u32 %r1, [%a2+60];", FaultKind::kNone},
        Access{"SharedBehind", "mov.u64 %a2, s; ld.shared.u32 %r1, [%a2+64];", FaultKind::kIllegalAddress},
        Access{"SharedBefore", "mov.u64 %a2, s; ld.shared.u32 %r1, [%a2+-4];", FaultKind::kIllegalAddress},
        Access{"SharedNarrow", "mov.u32 %r1, s; ld.shared.u32 %r2, [%r1+64];", FaultKind::kIllegalAddress},
        Access{"SharedNarrowNegative", "mov.u32 %r1, s; ld.shared.u32 %r2, [%r1+-4];", FaultKind::kIllegalAddress},
        Access{"SharedRowOver", "mul.wide.u32 %a2, %r0, 4; st.shared.u32 [%a2], %r0;", FaultKind::kIllegalAddress},
        Access{"GenericSharedBehind", "mov.u64 %a2, s; cvta.shared.u64 %a2, %a2; ld.u32 %r1, [%a2+64];",
               FaultKind::kIllegalAddress},
        Access{"ConstEnd", "mov.u64 %a2, c; ld.const.u32 %r1, [%a2+4];", FaultKind::kNone},
        Access{"ConstBehind", "mov.u64 %a2, c; ld.const.u32 %r1, [%a2+8];", FaultKind::kIllegalAddress},
        Access{"ConstReachesNoGlobals", "ld.const.u32 %r1, [%a0];", FaultKind::kIllegalAddress},
        Access{"LocalBehind", ".local .align 4 .b8 l[16]; mov.u64 %a2, l; ld.local.u32 %r1, [%a2+16];",
               FaultKind::kIllegalAddress},
        Access{"LocalEnd", ".local .align 4 .b8 l[16]; mov.u64 %a2, l; ld.local.u32 %r1, [%a2+12];", FaultKind::kNone},
        Access{"ParamBehind", "mov.u64 %a2, p; ld.param.u64 %a3, [%a2+16];", FaultKind::kIllegalAddress},
        Access{"ParamEnd", "mov.u64 %a2, p; ld.param.u64 %a3, [%a2+8];", FaultKind::kNone}),
    [](const auto& access) { return std::string(access.param.name); });

TEST(MemoryFaultDetail, NamesBlockThreadAndAddress) {
  TestDevice device;
  const u64 p = device.upload(std::vector<u32>(64));
  const Outcome outcome =
      run(kernel("setp.ne.u32 %q0, %r0, 37; @%q0 bra OUT;\nst.global.u32 [%a1], %r0;\nOUT:"), device, p, p + 4096, 64);
  EXPECT_EQ(outcome.fault, FaultKind::kIllegalAddress);
  EXPECT_EQ(outcome.fault_address, p + 4096);
  EXPECT_NE(outcome.fault_detail.find("thread (37,0,0), PTX line 8"), std::string::npos) << outcome.fault_detail;
}

TEST(Memory, AFreedAllocationIsNoLongerReachable) {
  TestDevice device;
  const auto module = load_or_fail(kernel("ld.global.u32 %r1, [%a0];"), device);
  const u64 p = device.upload(std::vector<u32>(4));
  EXPECT_EQ(run_kernel(*module, device, "k", {1}, {32}, p, p).fault, FaultKind::kNone);
  device.release(p);
  EXPECT_EQ(run_kernel(*module, device, "k", {1}, {32}, p, p).fault, FaultKind::kIllegalAddress);
}

TEST(Memory, CountsGlobalTrafficOfActiveLanesOnly) {
  TestDevice device;
  const u64 p = device.upload(std::vector<u32>(64));
  const std::string body =
      "setp.lt.u32 %q0, %r0, 5; mul.wide.u32 %a2, %r0, 4; add.u64 %a2, %a2, %a0; ld.global.u32 %r1, [%a2];\n"
      "@%q0 st.global.u32 [%a2], %r1;\nst.shared.u32 [s], %r1; @%q0 red.global.add.u32 [%a0], 1;";
  const Outcome outcome = run(kernel(body, ".shared .align 4 .b8 s[4];\n"), device, p, 0, 40);
  ASSERT_EQ(outcome.fault, FaultKind::kNone) << outcome.fault_detail;
  EXPECT_EQ(outcome.global_bytes, 40u * 4 + 5 * 4 + 5 * 4);
  // Two warps of 11 instructions; the second's guarded ones are issued for nobody.
  EXPECT_EQ(outcome.warp_instructions, 2u * 11);
  EXPECT_EQ(outcome.lane_instructions, 40u * 11);
}

TEST(Memory, PatternsOfAddressesLoadTheSameAsLaneByLane) {
  std::vector<u32> table(256);
  std::iota(table.begin(), table.end(), 1000u);
  TestDevice device;
  const u64 data = device.upload(table);
  // Each index expression of the lane: consecutive, uniform, two rows of 16, reversed, strided.
  for (const auto& [expression, index] :
       std::vector<std::pair<std::string, u32 (*)(u32)>>{{"mov.u32 %r1, %r0;", [](u32 i) { return i; }},
                                                         {"mov.u32 %r1, 9;", [](u32) { return 9u; }},
                                                         {"and.b32 %r1, %r0, 15;", [](u32 i) { return i & 15; }},
                                                         {"shr.u32 %r1, %r0, 4;", [](u32 i) { return i >> 4; }},
                                                         {"sub.u32 %r1, 31, %r0;", [](u32 i) { return 31 - i; }},
                                                         {"mul.lo.u32 %r1, %r0, 7;", [](u32 i) { return i * 7; }},
                                                         {"xor.b32 %r1, %r0, 1;", [](u32 i) { return i ^ 1; }}}) {
    for (const unsigned threads : {32u, 21u}) {
      const std::string body = expression +
                               " mul.wide.u32 %a2, %r1, 4; add.u64 %a3, %a1, %a2; ld.global.u32 %r2, [%a3];\n"
                               "mul.wide.u32 %a4, %r0, 4; add.u64 %a4, %a0, %a4; st.global.u32 [%a4], %r2;\n"
                               "add.u64 %a5, %a0, 256; add.u64 %a5, %a5, %a2; st.global.u32 [%a5], %r0;";
      const u64 out = device.upload(std::vector<u32>(400, 0xffffffff));
      ASSERT_EQ(run(kernel(body), device, out, data, threads).fault, FaultKind::kNone);
      const auto results = device.download<u32>(out, 400);
      for (u32 i = 0; i < threads; ++i) {
        EXPECT_EQ(results[i], 1000 + index(i)) << expression;
        const u32 stored = results[64 + index(i)];
        EXPECT_EQ(index(stored), index(i)) << expression;
      }
      EXPECT_EQ(results[threads], 0xffffffffu);
    }
  }
}

// Several accesses through one address row, with the row, the lanes or the element size changing in between.
TEST(Memory, APatternIsForgottenWhenItsRowChanges) {
  std::vector<u32> table(256);
  std::iota(table.begin(), table.end(), 0u);
  TestDevice device;
  const u64 data = device.upload(table), out = device.upload(std::vector<u32>(32 * 6));
  const std::string body =
      "mul.wide.u32 %a2, %r0, 4; add.u64 %a3, %a1, %a2; mul.wide.u32 %a4, %r0, 24; add.u64 %a4, %a0, %a4;\n"
      "ld.global.u32 %r1, [%a3]; ld.global.u32 %r2, [%a3+4]; ld.global.u16 %r3, [%a3];\n"
      "add.u64 %a3, %a3, %a2; ld.global.u32 %r4, [%a3];\n"
      "setp.lt.u32 %q0, %r0, 9; @%q0 add.u64 %a3, %a3, 8; ld.global.u32 %r5, [%a3];\n"
      "@%q0 ld.global.u32 %r6, [%a3+4]; @!%q0 mov.u32 %r6, 7;\n"
      "st.global.u32 [%a4], %r1; st.global.u32 [%a4+4], %r2; st.global.u32 [%a4+8], %r3; st.global.u32 [%a4+12], %r4;\n"
      "st.global.u32 [%a4+16], %r5; st.global.u32 [%a4+20], %r6;";
  const Outcome outcome = run(kernel(body), device, out, data);
  ASSERT_EQ(outcome.fault, FaultKind::kNone) << outcome.fault_detail;
  const auto results = device.download<u32>(out, 32 * 6);
  for (u32 i = 0; i < 32; ++i) {
    const u32 moved = 2 * i + (i < 9 ? 2 : 0);
    const std::vector<u32> wanted{i, i + 1, i, 2 * i, moved, i < 9 ? moved + 1 : 7};
    EXPECT_EQ(std::vector<u32>(results.begin() + 6 * i, results.begin() + 6 * i + 6), wanted) << "lane " << i;
  }
}

TEST(Memory, ALoadMayReplaceItsOwnAddress) {
  TestDevice device;
  const u64 end = device.upload(std::vector<u64>{42});
  const u64 middle = device.upload(std::vector<u64>{end});
  const u64 start = device.upload(std::vector<u64>{middle}), out = device.upload(std::vector<u64>(1));
  const std::string body =
      "ld.global.u64 %a1, [%a1]; ld.global.u64 %a1, [%a1]; ld.global.u64 %a1, [%a1]; st.global.u64 [%a0], %a1;";
  ASSERT_EQ(run(kernel(body), device, out, start).fault, FaultKind::kNone);
  EXPECT_EQ(device.download<u64>(out, 1)[0], 42u);
}

TEST(Memory, VectorsAndNarrowTypes) {
  TestDevice device;
  const u64 in = device.upload(std::vector<u32>{0x80ff7f01, 2, 3, 4});
  const u64 out = device.upload(std::vector<u32>(8));
  const std::string body =
      "ld.global.v4.u32 {%r1, %r2, _, %r4}, [%a1]; st.global.v2.u32 [%a0], {%r4, %r2};\n"
      "ld.global.s8 %r1, [%a1+2]; ld.global.u8 %r2, [%a1+2]; st.global.v2.b32 [%a0+8], {%r1, %r2};\n"
      "ld.global.s16 %r3, [%a1+2]; st.global.u32 [%a0+16], %r3; st.global.u8 [%a0+20], %r3; ld.global.u16 %h0, [%a1]; "
      "st.global.u16 [%a0+22], %h0;";
  ASSERT_EQ(run(kernel(body), device, out, in, 1).fault, FaultKind::kNone);
  EXPECT_EQ(device.download<u32>(out, 6), (std::vector<u32>{4, 2, 0xffffffff, 0xff, 0xffff80ff, 0x7f0100ff}));
}

TEST(Memory, BracesAroundOneRegisterMeanTheRegister) {
  TestDevice device;
  const u64 out = device.upload(std::vector<u32>{7, 0});
  const std::string body = "ld.global.b32 {%r0}, [%a0]; add.u32 %r0, %r0, 1; st.global.b32 [%a0+4], {%r0};\n";
  ASSERT_EQ(run(kernel(body), device, out, 0, 1).fault, FaultKind::kNone);
  EXPECT_EQ(device.download<u32>(out, 2), (std::vector<u32>{7, 8}));
}

TEST(Memory, GenericAddressesReachEverySpace) {
  TestDevice device;
  const u64 out = device.upload(std::vector<u32>(32 * 3));
  const std::string body =
      ".local .align 4 .b8 l[8]; mov.u64 %a2, l; cvta.local.u64 %a2, %a2; mov.u64 %a3, s; cvta.shared.u64 %a3, %a3;\n"
      "st.u32 [%a2+4], %r0; mul.wide.u32 %a4, %r0, 4; add.u64 %a3, %a3, %a4; add.u32 %r1, %r0, 100; st.u32 [%a3], "
      "%r1;\n"
      "ld.u32 %r2, [%a2+4]; ld.u32 %r3, [%a3]; mul.wide.u32 %a5, %r0, 12; add.u64 %a5, %a0, %a5;\n"
      "st.u32 [%a5], %r2; st.u32 [%a5+4], %r3; isspacep.shared %q0, %a3; isspacep.global %q1, %a5; isspacep.local %q2, "
      "%a5;\n"
      "selp.b32 %r4, 1, 0, %q0; selp.b32 %r5, 2, 0, %q1; selp.b32 %r6, 4, 0, %q2; add.u32 %r4, %r4, %r5; add.u32 %r4, "
      "%r4, %r6;\n"
      "cvta.to.global.u64 %a6, %a5; st.global.u32 [%a6+8], %r4;";
  const Outcome outcome = run(kernel(body, ".shared .align 4 .b8 s[128];\n"), device, out, 0);
  ASSERT_EQ(outcome.fault, FaultKind::kNone) << outcome.fault_detail;
  const auto results = device.download<u32>(out, 96);
  for (u32 i = 0; i < 32; ++i) {
    EXPECT_EQ(results[3 * i], i);
    EXPECT_EQ(results[3 * i + 1], i + 100);
    EXPECT_EQ(results[3 * i + 2], 3u);
  }
}

template <class T>
std::pair<T, std::vector<T>> atomic(const std::string& operation, const std::string& type, T initial, T operand,
                                    T second = {}) {
  TestDevice device;
  const u64 cell = device.upload(std::vector<T>{initial});
  const u64 operands = device.upload(std::vector<T>{operand, second});
  const bool is_wide = sizeof(T) == 8;
  const std::string x = is_wide ? "%a4" : "%r1", y = is_wide ? "%a5" : "%r2", z = is_wide ? "%a6" : "%r3";
  const std::string bits = is_wide ? "b64" : "b32";
  const bool compares = operation == "cas";
  const std::string body = "ld.global." + bits + " " + x + ", [%a1]; ld.global." + bits + " " + y + ", [%a1+" +
                           std::to_string(sizeof(T)) + "];\natom.global." + operation + "." + type + " " + z +
                           ", [%a0], " + x + (compares ? ", " + y : "") + ";";
  EXPECT_EQ(run(kernel(body), device, cell, operands).fault, FaultKind::kNone);
  return {device.download<T>(cell, 1)[0], {}};
}

TEST(Atomics, EveryLaneTakesPart) {
  EXPECT_EQ((atomic<u32>("add", "u32", 5, 3).first), 5u + 32 * 3);
  EXPECT_EQ((atomic<u64>("add", "u64", 1ull << 40, 1ull << 33).first), (1ull << 40) + 32 * (1ull << 33));
  EXPECT_EQ((atomic<float>("add", "f32", 0.5f, 0.25f).first), 8.5f);
  EXPECT_EQ((atomic<double>("add", "f64", 0.5, 0.25).first), 8.5);
  EXPECT_EQ((atomic<std::int32_t>("min", "s32", 5, -3).first), -3);
  EXPECT_EQ((atomic<u32>("max", "u32", 5, 0xfffffffd).first), 0xfffffffdu);
  EXPECT_EQ((atomic<u32>("and", "b32", 0xff, 0x0f).first), 0x0fu);
  EXPECT_EQ((atomic<u32>("or", "b32", 0xf0, 0x0f).first), 0xffu);
  EXPECT_EQ((atomic<u32>("xor", "b32", 0xf0, 0x0f).first), 0xf0u) << "32 lanes cancel out";
  EXPECT_EQ((atomic<u32>("exch", "b32", 1, 9).first), 9u);
  EXPECT_EQ((atomic<u32>("inc", "u32", 0, 9).first), 32u % 10);
  EXPECT_EQ((atomic<u32>("dec", "u32", 4, 9).first), 2u) << "4 down to 0 in four steps, then 28 in a cycle of ten";
  EXPECT_EQ((atomic<u32>("cas", "b32", 7, 7, 8).first), 8u);
  EXPECT_EQ((atomic<u64>("cas", "b64", 7, 6, 8).first), 7u);
}

TEST(Atomics, ReturnTheOldValueInLaneOrder) {
  TestDevice device;
  const u64 out = device.upload(std::vector<u32>(33));
  const std::string body =
      "atom.shared.add.u32 %r1, [s], 2; mul.wide.u32 %a2, %r0, 4; add.u64 %a2, %a0, %a2; st.global.u32 [%a2], %r1;";
  const std::string clear = "setp.eq.u32 %q0, %r0, 0; @%q0 st.shared.u32 [s], 10; bar.sync 0;\n";
  ASSERT_EQ(run(kernel(clear + body, ".shared .align 4 .b8 s[4];\n"), device, out, 0).fault, FaultKind::kNone);
  const auto results = device.download<u32>(out, 32);
  for (u32 i = 0; i < 32; ++i) EXPECT_EQ(results[i], 10 + 2 * i);
}

TEST(Atomics, PairsOfHalves) {
  EXPECT_EQ((atomic<u32>("add.noftz", "f16x2", 0x3c003c00, 0x00003c00).first), 0x3c005020u)
      << "1 + 32 = 33 below, 1 above";
}

TEST(Variables, InitialValuesMayBeAddresses) {
  TestDevice device;
  const auto module =
      load_or_fail(header() +
                       ".global .align 4 .u32 a[4] = {1, 2, 3};\n.const .align 8 .u64 table[2] = {a, generic(a)+8};\n"
                       ".visible .entry k(.param .u64 p) { .reg .b64 %a, %b; .reg .b32 %r; ld.param.u64 %a, [p];\n"
                       "ld.const.u64 %b, [table+8]; ld.u32 %r, [%b]; st.global.u32 [%a], %r; ld.global.u32 %r, [a+12]; "
                       "st.global.u32 [%a+4], %r; ret; }\n",
                   device);
  ASSERT_NE(module, nullptr);
  const u64 out = device.upload(std::vector<u32>{9, 9});
  ASSERT_EQ(run_kernel(*module, device, "k", {1}, {1}, out).fault, FaultKind::kNone);
  EXPECT_EQ(device.download<u32>(out, 2), (std::vector<u32>{3, 0}));
  ASSERT_NE(module->global("a"), nullptr);
  EXPECT_EQ(module->global("a")->size, 16u);
  EXPECT_EQ(module->global("b"), nullptr);
}

TEST(Variables, AnIndexCountsElements) {
  TestDevice device;
  const auto module =
      load_or_fail(header() +
                       ".global .align 4 .u32 a[4] = {1, 2, 3};\n.global .align 8 .v2 .u32 pairs[2] = {4, 5, 6, 7};\n"
                       ".visible .entry k(.param .u64 p) { .reg .b64 %o, %a; .reg .b32 %r; .local .b16 l[4];\n"
                       "ld.param.u64 %o, [p]; mov.u64 %a, a[2]; ld.global.u32 %r, [%a]; st.global.u32 [%o], %r;\n"
                       "ld.global.u32 %r, [pairs[1]+4]; st.global.u32 [%o+4], %r;\n"
                       "mov.u32 %r, l[3]; sub.u32 %r, %r, l; st.global.u32 [%o+8], %r; ret; }\n",
                   device);
  ASSERT_NE(module, nullptr);
  const u64 out = device.upload(std::vector<u32>{9, 9, 9});
  ASSERT_EQ(run_kernel(*module, device, "k", {1}, {1}, out).fault, FaultKind::kNone);
  EXPECT_EQ(device.download<u32>(out, 3), (std::vector<u32>{3, 7, 6}));
}

TEST(Variables, AreReleasedWithTheModule) {
  TestDevice device;
  auto module = load_or_fail(header() + ".global .b8 a[100];\n.const .b8 b[4];\n", device);
  EXPECT_EQ(device.allocations(), 2u);
  module.reset();
  EXPECT_EQ(device.allocations(), 0u);
}

TEST(Variables, AFullDeviceIsReportedAndNothingKept) {
  TestDevice device;
  device.set_room(1000);
  const LoadResult result = load_module(header() + ".global .b8 a[100];\n.global .b8 b[2000];\n", device, nullptr);
  EXPECT_EQ(result.module, nullptr);
  EXPECT_EQ(result.error.kind, LoadError::Kind::kOutOfMemory);
  EXPECT_EQ(result.error.line, 5);
  EXPECT_EQ(device.allocations(), 0u);
}

TEST(Module, MoreConstantOrSharedMemoryThanThereIsIsRefused) {
  const auto error_of = [](const std::string& variable) {
    return load_error(header() + variable + "\n.entry k() { .reg .b32 %r; ld.u32 %r, [v]; ret; }\n");
  };
  EXPECT_EQ(error_of(".const .b8 v[65537];").message, "65537 bytes of constant memory; there are 65536");
  EXPECT_EQ(error_of(".const .b32 v[1744354882];").kind, LoadError::Kind::kUnsupported);
  EXPECT_EQ(error_of(".shared .b8 v[232449];").message, "232449 bytes of static shared memory; there are 232448");
  EXPECT_EQ(error_of(".shared .b8 v[232449];").line, 5);
}

TEST(SharedMemory, KernelsShareItsAddressesButNotItsSize) {
  TestDevice device;
  const auto module = load_or_fail(
      header() +
          ".shared .align 4 .b8 s1[1000];\n.shared .align 16 .b8 s2[64];\n.extern .shared .align 16 .b8 dynamic[];\n"
          ".entry a() { .reg .b32 %r; ld.shared.u32 %r, [s1]; ret; }\n.entry b() { .reg .b32 %r; ld.shared.u32 %r, "
          "[s2]; ret; }\n"
          ".entry c() { .reg .b32 %r; .reg .b64 %d; mov.u64 %d, dynamic; st.shared.u32 [%d+96], 1; ret; }\n",
      device);
  ASSERT_NE(module, nullptr);
  EXPECT_EQ(module->kernel("a")->info().static_shared_bytes, 1000u);
  EXPECT_EQ(module->kernel("b")->info().static_shared_bytes, 64u);
  EXPECT_EQ(module->kernel("c")->info().static_shared_bytes, 0u);
  Launch launch;
  launch.dynamic_shared_bytes = 100;
  EXPECT_EQ(module->kernel("c")->run(device, launch).fault, FaultKind::kNone);
  launch.dynamic_shared_bytes = 96;
  EXPECT_EQ(module->kernel("c")->run(device, launch).fault, FaultKind::kIllegalAddress);
}

}  // namespace
}  // namespace softgpu::ptx
