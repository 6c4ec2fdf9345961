// Names of PTX: scopes within functions, families, labels; and the constants and addresses that may stand for numbers.
#include <gtest/gtest.h>

#include <string>

#include "softgpu/ptx/ptx_evaluator.h"

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

// %out of lane 5 of a warp.
u32 result_of(const std::string& body) {
  return evaluate<u32>(body, std::vector<u32>{11})[5];
}

// ---- scopes

TEST(Scopes, KernelsHaveSharedVariablesOfOneNameAndTheirOwnSizes) {
  const auto kernel = [](const std::string& name, unsigned words) {
    return ".visible .entry " + name + "(.param .u64 p) {\n.shared .align 4 .b8 tile[" + std::to_string(4 * words) +
           "];\n.shared .align 4 .b8 other[4];\n.reg .u64 %a, %b, %d; .reg .u32 %r<4>;\n"
           "ld.param.u64 %a, [p]; mov.u32 %r0, %tid.x; mov.u64 %b, tile; mad.wide.u32 %b, %r0, 4, %b;\n"
           "st.shared.u32 [other], 77; st.shared.u32 [%b], %r0; bar.sync 0;\n"
           "mov.u32 %r1, " +
           std::to_string(words - 1) +
           "; sub.u32 %r1, %r1, %r0; mov.u64 %b, tile; mad.wide.u32 %b, %r1, 4, %b; ld.shared.u32 %r2, [%b];\n"
           "mad.wide.u32 %a, %r0, 4, %a; st.global.u32 [%a], %r2; ret;\n}\n";
  };
  TestDevice device;
  const auto module =
      load_or_fail(header() + kernel("small", 32) + kernel("large", 1024) + kernel("middle", 96), device);
  ASSERT_NE(module, nullptr);
  for (const auto& [name, words] : {std::pair{"large", 1024u}, std::pair{"small", 32u}, std::pair{"middle", 96u}}) {
    EXPECT_EQ(module->kernel(name)->info().static_shared_bytes, 4 * words + 4);
    const auto out = device.upload(std::vector<u32>(words));
    const Outcome outcome = run_kernel(*module, device, name, {1}, {words}, out);
    ASSERT_EQ(outcome.fault, FaultKind::kNone) << outcome.fault_detail;
    const auto results = device.download<u32>(out, words);
    for (u32 i = 0; i < words; ++i) ASSERT_EQ(results[i], words - 1 - i);
  }
}

TEST(Scopes, AFunctionsVariableHidesTheModules) {
  TestDevice device;
  const auto module =
      load_or_fail(header() +
                       ".global .u32 cell = 1;\n.shared .align 4 .b8 tile[16];\n"
                       ".visible .entry k(.param .u64 p) {\n.reg .u64 %a; .reg .u32 %r<4>;\nld.param.u64 %a, [p];\n"
                       "ld.global.u32 %r0, [cell]; st.global.u32 [%a], %r0; st.shared.u32 [tile], 5;\n"
                       "{ .global .u32 cell = 2; .shared .align 4 .b8 tile[64]; ld.global.u32 %r0, [cell]; "
                       "st.global.u32 [%a+4], %r0;\n"
                       "  st.shared.u32 [tile+60], 6; st.shared.u32 [tile], 6; }\n"
                       "{ .global .u32 cell = 3; ld.global.u32 %r0, [cell]; st.global.u32 [%a+8], %r0; }\n"
                       "ld.global.u32 %r0, [cell]; st.global.u32 [%a+12], %r0; ld.shared.u32 %r0, [tile]; "
                       "st.global.u32 [%a+16], %r0;\n"
                       "ret;\n}\n",
                   device);
  ASSERT_NE(module, nullptr);
  EXPECT_EQ(module->kernel("k")->info().static_shared_bytes, 80u);
  EXPECT_NE(module->global("cell"), nullptr);
  const auto out = device.upload(std::vector<u32>(5));
  const Outcome outcome = run_kernel(*module, device, "k", {1}, {1}, out);
  ASSERT_EQ(outcome.fault, FaultKind::kNone) << outcome.fault_detail;
  EXPECT_EQ(device.download<u32>(out, 5), (std::vector<u32>{1, 2, 3, 1, 5}));
}

TEST(Scopes, AFamilyInsideHidesRegistersOutside) {
  EXPECT_EQ(result_of(".reg .u32 q0, q1; mov.u32 q0, 1; mov.u32 q1, 2;\n"
                      "{ .reg .u32 q<4>; mov.u32 q0, 10; mov.u32 q1, 20; mov.u32 q3, 30; add.u32 %r0, q0, q3; }\n"
                      "mad.lo.u32 %out, q1, 100, q0; add.u32 %out, %out, %r0;"),
            201u + 40);
  EXPECT_EQ(
      result_of(".reg .u32 q<4>; mov.u32 q0, 1; mov.u32 q1, 2;\n"
                "{ .reg .u32 q1; mov.u32 q0, 5; mov.u32 q1, 20; { .reg .u32 q<2>; mov.u32 q1, 9; mov.u32 q0, 9; } \n"
                "mov.u32 %r0, q1; }\nmad.lo.u32 %out, q1, 100, q0; mad.lo.u32 %out, %r0, 1000, %out;"),
      20205u);
  // Members whose names end in more digits than their number has.
  EXPECT_EQ(result_of(".reg .u32 a1<3>, a<2>; mov.u32 a10, 4; mov.u32 a12, 5; mov.u32 a1, 7; mov.u32 a0, 8;\n"
                      "mad.lo.u32 %out, a10, 10, a12; mad.lo.u32 %out, %out, 10, a1; mad.lo.u32 %out, %out, 10, a0;"),
            4578u);
}

TEST(Scopes, LocalVariablesOfOneName) {
  EXPECT_EQ(result_of(".local .align 4 .b8 own[4]; st.local.u32 [own], 1;\n"
                      "{ .local .align 4 .b8 own[400]; st.local.u32 [own], 2; st.local.u32 [own+396], 3; }\n"
                      "ld.local.u32 %out, [own];"),
            1u);
}

TEST(Scopes, LabelsOfOneName) {
  const std::string loop =
      "{ .reg .u32 i; .reg .pred p; mov.u32 i, 0;\nLOOP: add.u32 %out, %out, 1; add.u32 i, i, 1; setp.lt.u32 p, i, 7;\n"
      "@p bra LOOP; bra DONE; add.u32 %out, %out, 1000; DONE: }\n";
  EXPECT_EQ(result_of("mov.u32 %out, 0;\n" + loop + loop + "{" + loop + "}"), 21u);
  // A use before the definition, of the label of the innermost scope that has one.
  EXPECT_EQ(result_of("mov.u32 %out, 1; bra OUT;\n"
                      "{ bra OUT; add.u32 %out, %out, 10; OUT: { bra OUT; } add.u32 %out, %out, 100; }\n"
                      "OUT: add.u32 %out, %out, 2;"),
            3u);
  EXPECT_EQ(result_of("mov.u32 %out, 1;\n"
                      "{ { bra OUT; } add.u32 %out, %out, 10; OUT: add.u32 %out, %out, 100; }\n"
                      "bra OUT; add.u32 %out, %out, 1000; OUT: add.u32 %out, %out, 2;"),
            103u);
}

TEST(Scopes, BranchTablesOfOneName) {
  const auto table = [](u32 add) {
    return "{ and.b32 %r0, %r15, 1; t: .branchtargets A, B; brx.idx %r0, t; A: add.u32 %out, %out, 1; bra END;\n"
           "B: add.u32 %out, %out, " +
           std::to_string(add) + "; END: }\n";
  };
  EXPECT_EQ(result_of("mov.u32 %r15, %laneid; mov.u32 %out, 0;\n" + table(10) + table(20)), 30u);
}

TEST(Scopes, ALabelTwiceInOneScopeIsRefused) {
  const LoadError error = load_error(header() + ".entry k() {\nL: bra L;\n{ L: bra L; }\nL: ret;\n}\n");
  EXPECT_EQ(error.line, 7);
  EXPECT_NE(error.message.find("label 'L' is defined twice"), std::string::npos) << error.message;
}

TEST(Scopes, ALabelOfAnotherScopeIsNotKnown) {
  const LoadError error = load_error(header() + ".entry k() {\n{ L: ret; }\n{ L: ret; }\nbra L;\n}\n");
  EXPECT_EQ(error.kind, LoadError::Kind::kUnresolvedSymbol);
}

TEST(Scopes, TooDeepAreRefused) {
  EXPECT_NE(load_error(header() + ".entry k() " + std::string(100'000, '{')).message.find("1,000"), std::string::npos);
}

// ---- constants

TEST(Constants, AreExpressions) {
  const auto value = [](const std::string& text) {
    return evaluate<u64>("mov.u64 %out, " + text + ";", std::vector<u32>{0})[0];
  };
  EXPECT_EQ(value("1+2*3"), 7u);
  EXPECT_EQ(value("(1+2)*3"), 9u);
  EXPECT_EQ(value("1<<4|3"), 19u);
  EXPECT_EQ(value("~0"), ~u64{0});
  EXPECT_EQ(value("~0xF0 & 0xFF"), 0x0fu);
  EXPECT_EQ(value("-8>>1"), static_cast<u64>(-4));
  EXPECT_EQ(value("0x8000000000000000>>63"), 1u);
  EXPECT_EQ(value("-7/2"), static_cast<u64>(-3));
  EXPECT_EQ(value("-7 % 3"), static_cast<u64>(-1));
  EXPECT_EQ(value("(.u64)-1 > 5 ? 10 : 20"), 10u);
  EXPECT_EQ(value("-1 > 5 ? 10 : 20"), 20u);
  EXPECT_EQ(value("0 ? 1 : 0 ? 2 : 3"), 3u);
  EXPECT_EQ(value("1 == 1 && !(2 != 2) || 0"), 1u);
  EXPECT_EQ(value("5 ^ 1"), 4u);
  EXPECT_EQ(value("3 <= 3"), 1u);
  EXPECT_EQ(value("1 << 64"), 0u);
  EXPECT_EQ(value("10 - 2 - 3"), 5u);
  EXPECT_EQ(value("WARP_SZ*2"), 64u);
  EXPECT_EQ(value("(.s64)0x8000000000000000/-1"), u64{1} << 63);
}

TEST(Constants, OfWhatCannotBeComputedAreRefused) {
  for (const std::string bad : {"1/0", "1%0", "1+", "(1", "1?2", "~", "1 << << 2", "1 2"}) {
    load_error(header() + ".entry k() { .reg .u64 %d; mov.u64 %d, " + bad + "; }\n");
  }
  EXPECT_NE(load_error(header() + ".entry k() { .reg .u64 %d; mov.u64 %d, " + std::string(100'000, '(') + "; }\n")
                .message.find("64 deep"),
            std::string::npos);
}

TEST(Constants, StandInExtentsInitialValuesAndOffsets) {
  TestDevice device;
  const auto module = load_or_fail(
      header() +
          ".global .u32 table[2*2+1] = {1<<3, ~0, (4>2)?7:8, -3+1};\n.shared .align 4 .b8 tile[1<<6];\n"
          ".visible .entry k(.param .u64 p) {\n.reg .u64 %a; .reg .u32 %r;\nld.param.u64 %a, [p];\n"
          "ld.global.u32 %r, [table+4*2]; st.global.u32 [%a+2*2], %r; ld.global.u32 %r, [table+3*4-8]; st.global.u32 "
          "[%a], "
          "%r;\nld.global.u32 %r, [table+12]; st.global.u32 [%a+16-8], %r; st.shared.u32 [tile+60], 1; ret;\n}\n",
      device);
  ASSERT_NE(module, nullptr);
  EXPECT_EQ(module->global("table")->size, 20u);
  const auto out = device.upload(std::vector<u32>(3));
  const Outcome outcome = run_kernel(*module, device, "k", {1}, {1}, out);
  ASSERT_EQ(outcome.fault, FaultKind::kNone) << outcome.fault_detail;
  EXPECT_EQ(device.download<u32>(out, 3), (std::vector<u32>{~0u, 7, static_cast<u32>(-2)}));
}

TEST(Constants, OfFloatingPointNeedNoPoint) {
  const auto value = [](const std::string& text) {
    return evaluate<double>("mov.f64 %out, " + text + ";", std::vector<u32>{0})[0];
  };
  EXPECT_EQ(value("1e3"), 1000.0);
  EXPECT_EQ(value("25E-2"), 0.25);
  EXPECT_EQ(value("-2e+1"), -20.0);
  EXPECT_EQ(value("1.5e2"), 150.0);
  EXPECT_EQ(result_of("mov.u32 %out, 0x1e3;"), 0x1e3u);
  EXPECT_EQ(result_of("mov.b32 %out, 0f3e000000;"), 0x3e000000u);
}

// ---- addresses and vectors

TEST(Arrays, AreIndexedByConstantsAndRegisters) {
  TestDevice device;
  const auto module = load_or_fail(
      header() +
          ".global .align 8 .u64 table[5] = {10, 20, 30, 40, 50};\n.shared .align 4 .u32 tile[8];\n"
          ".visible .entry k(.param .u64 p) {\n.reg .u64 %a, %d<8>; .reg .u32 %i, %r; .reg .s32 %s; .reg .pred %q;\n"
          "ld.param.u64 %a, [p]; mov.u32 %i, %tid.x; mov.s32 %s, -1; cvt.u64.u32 %d7, %i;\n"
          "ld.global.u64 %d0, table[1]; ld.global.u64 %d1, table[%i]; ld.global.u64 %d2, table[%i+2];\n"
          "mov.u64 %d3, table[4]; ld.global.u64 %d3, [%d3]; ld.global.u64 %d4, table[%d7]; ld.global.u64 %d5, "
          "table[%s+1];\n"
          "st.shared.u32 tile[%i], 7; ld.shared.u32 %r, tile[2-1]; cvt.u64.u32 %d6, %r;\n"
          "setp.ne.u32 %q, %i, 1; @%q ret;\n"
          "st.global.u64 [%a], %d0; st.global.u64 [%a+8], %d1; st.global.u64 [%a+16], %d2; st.global.u64 [%a+24], "
          "%d3;\n"
          "st.global.u64 [%a+32], %d4; st.global.u64 [%a+40], %d5; st.global.u64 [%a+48], %d6; ret;\n}\n",
      device);
  ASSERT_NE(module, nullptr);
  const auto out = device.upload(std::vector<u64>(7));
  const Outcome outcome = run_kernel(*module, device, "k", {1}, {2}, out);
  ASSERT_EQ(outcome.fault, FaultKind::kNone) << outcome.fault_detail;
  EXPECT_EQ(device.download<u64>(out, 7), (std::vector<u64>{20, 20, 40, 50, 20, 10, 7}));
}

TEST(Variables, OfAFamily) {
  TestDevice device;
  const auto module = load_or_fail(
      header() +
          ".func (.param .u32 r) sum(.param .u32 x, .param .u32 y) {\n.reg .u32 %r<2>; ld.param.u32 %r0, [x];\n"
          "ld.param.u32 %r1, [y]; add.u32 %r0, %r0, %r1; st.param.u32 [r], %r0; ret;\n}\n"
          ".visible .entry k(.param .u64 p) {\n.reg .u64 %a; .reg .u32 %r;\nld.param.u64 %a, [p];\n"
          "{ .param .u32 %P<2>; .param .u32 %R; st.param.u32 [%P0], 30; st.param.u32 [%P1], 4;\n"
          "call (%R), sum, (%P0, %P1); ld.param.u32 %r, [%R]; }\nst.global.u32 [%a], %r; ret;\n}\n",
      device);
  ASSERT_NE(module, nullptr);
  const auto out = device.upload(std::vector<u32>(1));
  ASSERT_EQ(run_kernel(*module, device, "k", {1}, {1}, out).fault, FaultKind::kNone);
  EXPECT_EQ(device.download<u32>(out, 1)[0], 34u);
}

TEST(Variables, ExternalSharedOnesWithASizeAreDefined) {
  TestDevice device;
  const auto module =
      load_or_fail(header() +
                       ".extern .shared .align 4 .b8 sized[256];\n.extern .shared .align 4 .b8 rest[];\n"
                       ".visible .entry k(.param .u64 p) {\n.reg .u64 %a; .reg .u32 %r;\nld.param.u64 %a, "
                       "[p]; st.shared.u32 [sized+252], 9; ld.shared.u32 %r, [sized+252];\n"
                       "st.global.u32 [%a], %r; mov.u32 %r, rest; st.global.u32 [%a+4], %r; ret;\n}\n",
                   device);
  ASSERT_NE(module, nullptr);
  EXPECT_EQ(module->kernel("k")->info().static_shared_bytes, 256u);
  const auto out = device.upload(std::vector<u32>(2));
  const Outcome outcome = run_kernel(*module, device, "k", {1}, {1}, out);
  ASSERT_EQ(outcome.fault, FaultKind::kNone) << outcome.fault_detail;
  EXPECT_EQ(device.download<u32>(out, 2), (std::vector<u32>{9, 256}));
}

TEST(SpecialRegisters, MoveAsVectors) {
  EXPECT_EQ(
      result_of("mov.v4.u32 {%r0, %r1, %r2, %r3}, %ntid; mad.lo.u32 %out, %r0, 10, %r1; mad.lo.u32 %out, %out, 10, "
                "%r2; add.u32 %out, %out, %r3;"),
      3211u);
  EXPECT_EQ(result_of("mov.v4.u32 {%r0, _, _, _}, %tid; add.u32 %out, %r0, 0;"), 5u);
}

}  // namespace
}  // namespace softgpu::ptx
