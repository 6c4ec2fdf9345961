// Divergence, calls and barriers.
#include <gtest/gtest.h>

#include <functional>

#include "softgpu/ptx/ptx_evaluator.h"

namespace softgpu::ptx {
namespace {

using testing::evaluate;
using testing::header;
using testing::load_or_fail;
using testing::run_kernel;
using testing::TestDevice;
using u32 = std::uint32_t;

std::vector<u32> lanes() {
  std::vector<u32> values(32);
  for (u32 i = 0; i < 32; ++i) values[i] = i;
  return values;
}

void expect_lanes(const std::string& body, const std::function<u32(u32)>& reference) {
  const auto results = evaluate<u32>(body, lanes());
  for (u32 i = 0; i < 32; ++i) EXPECT_EQ(results[i], reference(i)) << "lane " << i;
}

TEST(Divergence, BranchesTakeBothWaysAndMeetAgain) {
  expect_lanes(
      "and.b32 %r0, %in0, 1; setp.eq.u32 %p0, %r0, 0; @%p0 bra EVEN;\n"
      "mov.u32 %out, 100; bra JOIN;\nEVEN: mov.u32 %out, 200;\nJOIN: activemask.b32 %r1; popc.b32 %r1, %r1; add.u32 "
      "%out, %out, %r1;",
      [](u32 lane) { return (lane % 2 != 0 ? 100u : 200u) + 32; });
}

TEST(Divergence, LanesLoopADifferentNumberOfTimes) {
  expect_lanes(
      "mov.u32 %out, 0; mov.u32 %r0, 0;\nLOOP: setp.ge.u32 %p0, %r0, %in0; @%p0 bra DONE;\n"
      "add.u32 %out, %out, %r0; add.u32 %r0, %r0, 1; bra LOOP;\n"
      "DONE: activemask.b32 %r1; popc.b32 %r1, %r1; mad.lo.u32 %out, %r1, 1000, %out;",
      [](u32 lane) { return lane * (lane - 1) / 2 + 32000; });
}

TEST(Divergence, NestedConditions) {
  expect_lanes(
      "mov.u32 %out, 0; setp.lt.u32 %p0, %in0, 16; @!%p0 bra HIGH;\n"
      "setp.lt.u32 %p1, %in0, 8; @%p1 bra LOW8; add.u32 %out, %out, 2; bra JOIN1;\nLOW8: add.u32 %out, %out, 1;\n"
      "JOIN1: add.u32 %out, %out, 10; bra END;\nHIGH: add.u32 %out, %out, 5;\nEND: add.u32 %out, %out, 100;",
      [](u32 lane) { return lane < 8    ? 111u
                            : lane < 16 ? 112u
                                        : 105u; });
}

// A lock between the lanes of one warp: it ends only if every lane makes progress (Volta), whoever waits for whom.
TEST(Divergence, ASpinLockBetweenLanesEnds) {
  TestDevice device;
  const auto module = load_or_fail(
      header() +
          ".visible .entry k(.param .u64 p) {\n.reg .b64 %a; .reg .b32 %r<4>; .reg .pred %q;\nld.param.u64 %a, [p];\n"
          "SPIN: atom.global.cas.b32 %r1, [%a], 0, 1; setp.ne.u32 %q, %r1, 0; @%q bra SPIN;\n"
          "ld.volatile.global.u32 %r2, [%a+4]; add.u32 %r2, %r2, 1; st.volatile.global.u32 [%a+4], %r2;\n"
          "membar.gl; atom.global.exch.b32 %r3, [%a], 0;\nret;\n}\n",
      device);
  ASSERT_NE(module, nullptr);
  const auto counter = device.upload(std::vector<u32>{0, 0});
  const Outcome outcome = run_kernel(*module, device, "k", {1}, {64}, counter);
  EXPECT_EQ(outcome.fault, FaultKind::kNone) << outcome.fault_detail;
  EXPECT_EQ(device.download<u32>(counter, 2)[1], 64u);
}

TEST(Divergence, IndexedBranches) {
  expect_lanes(
      "and.b32 %r0, %in0, 3; TABLE: .branchtargets L0, L1, L2, L3;\nbrx.idx %r0, TABLE;\n"
      "L0: mov.u32 %out, 10; bra END;\nL1: mov.u32 %out, 11; bra END;\nL2: mov.u32 %out, 12; bra END;\n"
      "L3: mov.u32 %out, 13;\nEND: activemask.b32 %r1; popc.b32 %r1, %r1; mad.lo.u32 %out, %r1, 100, %out;",
      [](u32 lane) { return 10 + lane % 4 + 3200; });
}

TEST(Divergence, SomeLanesReturnEarly) {
  expect_lanes("mov.u32 %out, 7; setp.gt.u32 %p0, %in0, 3; @%p0 bra REST; exit;\nREST: add.u32 %out, %in0, 0;",
               [](u32 lane) { return lane > 3 ? lane : 0u; });
}

const char* kRecursion =
    ".func (.param .b32 out) fib(.param .b32 n) {\n.reg .b32 %r<6>; .reg .pred %p;\nld.param.u32 %r0, [n];\n"
    "setp.lt.u32 %p, %r0, 2; @%p bra BASE;\n"
    "{ .param .b32 a; .param .b32 r; sub.u32 %r1, %r0, 1; st.param.b32 [a], %r1; call.uni (r), fib, (a); ld.param.b32 "
    "%r2, [r]; }\n"
    "{ .param .b32 a; .param .b32 r; sub.u32 %r1, %r0, 2; st.param.b32 [a], %r1; call.uni (r), fib, (a); ld.param.b32 "
    "%r3, [r]; }\n"
    "add.u32 %r4, %r2, %r3; st.param.b32 [out], %r4; ret;\nBASE: st.param.b32 [out], %r0; ret;\n}\n";

std::string call_kernel(const std::string& call) {
  return ".visible .entry k(.param .u64 p) {\n.reg .b64 %a, %b; .reg .b32 %r<4>; .reg .pred %q;\nld.param.u64 %a, [p]; "
         "mov.u32 %r0, %tid.x;\n"
         "mul.wide.u32 %b, %r0, 4; add.u64 %a, %a, %b;\n" +
         call + "\nst.global.u32 [%a], %r1; ret;\n}\n";
}

TEST(Calls, RecurseToADifferentDepthPerLane) {
  TestDevice device;
  const auto module = load_or_fail(header() + kRecursion +
                                       call_kernel("and.b32 %r2, %r0, 15; {.param .b32 x; .param .b32 y; st.param.b32 "
                                                   "[x], %r2; call.uni (y), fib, (x); ld.param.b32 %r1, [y];}"),
                                   device);
  ASSERT_NE(module, nullptr);
  const auto out = device.upload(std::vector<u32>(32));
  EXPECT_EQ(run_kernel(*module, device, "k", {1}, {32}, out).fault, FaultKind::kNone);
  std::vector<u32> fib{0, 1};
  while (fib.size() < 16) fib.push_back(fib[fib.size() - 1] + fib[fib.size() - 2]);
  const auto results = device.download<u32>(out, 32);
  for (u32 i = 0; i < 32; ++i) EXPECT_EQ(results[i], fib[i % 16]);
}

TEST(Calls, EndlessRecursionIsAFault) {
  TestDevice device;
  const auto module =
      load_or_fail(header() + ".func f() { call.uni f, (); ret; }\n" + call_kernel("call.uni f, ();"), device);
  ASSERT_NE(module, nullptr);
  const auto out = device.upload(std::vector<u32>(32));
  const Outcome outcome = run_kernel(*module, device, "k", {1}, {32}, out);
  EXPECT_EQ(outcome.fault, FaultKind::kLaunchFailed);
  EXPECT_NE(outcome.fault_detail.find("call stack"), std::string::npos);
}

const char* kTwoFunctions =
    ".func (.param .b32 o) twice(.param .b32 i) { .reg .b32 %r; .reg .b64 %d<9>; mov.u64 %d1, 1; ld.param.u32 %r, [i]; "
    "add.u32 %r, %r, %r; st.param.b32 [o], %r; ret; }\n"
    ".func (.param .b32 o) square(.param .b32 i) { .reg .b32 %r; ld.param.u32 %r, [i]; mul.lo.u32 %r, %r, %r; "
    "st.param.b32 [o], %r; ret; }\n";

TEST(Calls, PointersToFunctionsDifferByLane) {
  TestDevice device;
  const auto module =
      load_or_fail(header() + kTwoFunctions + ".global .u64 table[2] = {twice, square};\n" +
                       call_kernel("{.reg .b64 %f, %t; .reg .b32 %s; and.b32 %s, %r0, 1; mov.u64 %t, table; "
                                   "mul.wide.u32 %f, %s, 8; add.u64 %t, %t, %f;"
                                   " ld.global.u64 %f, [%t]; .param .b32 x; .param .b32 y; st.param.b32 [x], %r0;\n"
                                   "proto: .callprototype (.param .b32 _) _ (.param .b32 _);\ncall (y), %f, (x), "
                                   "proto; ld.param.b32 %r1, [y];}"),
                   device);
  ASSERT_NE(module, nullptr);
  const auto out = device.upload(std::vector<u32>(32));
  const Outcome outcome = run_kernel(*module, device, "k", {1}, {32}, out);
  EXPECT_EQ(outcome.fault, FaultKind::kNone) << outcome.fault_detail;
  const auto results = device.download<u32>(out, 32);
  for (u32 i = 0; i < 32; ++i) EXPECT_EQ(results[i], i % 2 == 0 ? 2 * i : i * i);
}

TEST(Calls, ACallThroughABadPointerIsAFault) {
  TestDevice device;
  const auto module = load_or_fail(
      header() +
          call_kernel(
              "{.reg .b64 %f; mov.u64 %f, 4096;\nproto: .callprototype _ ();\ncall %f, (), proto; mov.u32 %r1, 0;}"),
      device);
  ASSERT_NE(module, nullptr);
  const auto out = device.upload(std::vector<u32>(32));
  EXPECT_EQ(run_kernel(*module, device, "k", {1}, {32}, out).fault, FaultKind::kInvalidPc);
}

// Lane 0 passes 1, 2, .. 20 to lane 1 through a word; all others wait until lane 1 has seen them. `waiting` is the loop of
// the others, whose code comes first.
void expect_passed_on(const std::string& waiting) {
  TestDevice device;
  const auto module = load_or_fail(
      header() +
          ".visible .entry k(.param .u64 p) {\n.reg .b64 %a; .reg .b32 %r<4>; .reg .pred %q<2>;\n"
          "ld.param.u64 %a, [p]; mov.u32 %r0, %tid.x; mov.u32 %r2, 1;\n"
          "setp.eq.u32 %q0, %r0, 0; @%q0 bra PRODUCE; setp.eq.u32 %q0, %r0, 1; @%q0 bra CONSUME;\n" +
          waiting +
          "\nret;\nPRODUCE: ld.volatile.global.u32 %r1, [%a]; setp.ne.u32 %q0, %r1, 0; @%q0 bra PRODUCE;\n"
          "st.volatile.global.u32 [%a], %r2; add.u32 %r2, %r2, 1; setp.le.u32 %q0, %r2, 20; @%q0 bra PRODUCE; ret;\n"
          "CONSUME: ld.volatile.global.u32 %r1, [%a]; setp.ne.u32 %q0, %r1, %r2; @%q0 bra CONSUME;\n"
          "st.volatile.global.u32 [%a], 0; add.u32 %r2, %r2, 1; setp.le.u32 %q0, %r2, 20; @%q0 bra CONSUME;\n"
          "st.volatile.global.u32 [%a+4], 1; ret;\n}\n",
      device);
  ASSERT_NE(module, nullptr);
  const auto words = device.upload(std::vector<u32>{0, 0});
  const Outcome outcome = run_kernel(*module, device, "k", {1}, {32}, words);
  EXPECT_EQ(outcome.fault, FaultKind::kNone) << outcome.fault_detail;
  EXPECT_EQ(device.download<u32>(words, 2), (std::vector<u32>{0, 1}));
}

TEST(Divergence, ThreeGroupsThatWaitForEachOtherAllProceed) {
  expect_passed_on("WAIT: ld.volatile.global.u32 %r1, [%a+4]; setp.eq.u32 %q0, %r1, 0; @%q0 bra WAIT;");
}

TEST(Divergence, AGroupThatDividesInItsLoopGivesWayToo) {
  expect_passed_on(
      "WAIT: and.b32 %r3, %r0, 1; setp.eq.u32 %q1, %r3, 0; @%q1 bra EVEN; add.u32 %r2, %r2, 1; bra BOTH;\n"
      "EVEN: add.u32 %r2, %r2, 2;\nBOTH: ld.volatile.global.u32 %r1, [%a+4]; setp.eq.u32 %q0, %r1, 0; @%q0 bra WAIT;");
}

// Each thread writes its index to shared memory and reads its mirror image's after the barrier.
std::string reverse_kernel(const std::string& barrier) {
  return header() +
         ".shared .align 4 .b8 buffer[4096];\n.visible .entry k(.param .u64 p) {\n"
         ".reg .b64 %a<8>; .reg .b32 %r<8>; .reg .pred %q<4>;\nld.param.u64 %a0, [p]; mov.u32 %r0, %tid.x; mov.u64 "
         "%a1, buffer;\n"
         "mul.wide.u32 %a2, %r0, 4; add.u64 %a3, %a1, %a2; st.shared.u32 [%a3], %r0;\n" +
         barrier +
         "\nmov.u32 %r1, %ntid.x; sub.u32 %r1, %r1, %r0; sub.u32 %r1, %r1, 1; mul.wide.u32 %a4, %r1, 4; add.u64 %a4, "
         "%a1, %a4;\n"
         "ld.shared.u32 %r2, [%a4]; add.u64 %a5, %a0, %a2; st.global.u32 [%a5], %r2; ret;\n}\n";
}

void expect_reversed(const std::string& barrier, u32 threads) {
  TestDevice device;
  const auto module = load_or_fail(reverse_kernel(barrier), device);
  ASSERT_NE(module, nullptr);
  const auto out = device.upload(std::vector<u32>(threads));
  const Outcome outcome = run_kernel(*module, device, "k", {1}, {threads}, out);
  ASSERT_EQ(outcome.fault, FaultKind::kNone) << outcome.fault_detail;
  const auto results = device.download<u32>(out, threads);
  for (u32 i = 0; i < threads; ++i) EXPECT_EQ(results[i], threads - 1 - i);
}

TEST(Barriers, SeparateWritesFromReads) {
  expect_reversed("bar.sync 0;", 256);
  expect_reversed("barrier.sync 3;", 1000);
  expect_reversed("barrier.cta.sync.aligned 0, 128;", 128);
}

TEST(Barriers, ArriveInDivergentCode) {
  expect_reversed(
      "and.b32 %r5, %r0, 1; setp.eq.u32 %q0, %r5, 0; @%q0 bra EVEN; bar.sync 0; bra DONE;\nEVEN: bar.sync 0;\nDONE:",
      96);
}

TEST(Barriers, ThreadsThatHaveEndedAreNotWaitedFor) {
  TestDevice device;
  const auto module =
      load_or_fail(header() +
                       ".visible .entry k(.param .u64 p) {\n.reg .b64 %a; .reg .b32 %r<4>; .reg .pred "
                       "%q;\nld.param.u64 %a, [p]; mov.u32 %r0, %tid.x;\n"
                       "setp.lt.u32 %q, %r0, 40; @%q exit;\nbar.sync 0;\nred.global.add.u32 [%a], 1; ret;\n}\n",
                   device);
  ASSERT_NE(module, nullptr);
  const auto out = device.upload(std::vector<u32>{0});
  EXPECT_EQ(run_kernel(*module, device, "k", {1}, {128}, out).fault, FaultKind::kNone);
  EXPECT_EQ(device.download<u32>(out, 1)[0], 88u);
}

TEST(Barriers, Reduce) {
  TestDevice device;
  const auto module = load_or_fail(
      header() +
          ".visible .entry k(.param .u64 p) {\n.reg .b64 %a, %b; .reg .b32 %r<8>; .reg .pred %q<4>;\nld.param.u64 %a, "
          "[p]; mov.u32 %r0, %tid.x;\n"
          "setp.lt.u32 %q0, %r0, 50; bar.red.popc.u32 %r1, 0, %q0; bar.red.and.pred %q1, 0, %q0; bar.red.or.pred %q2, "
          "0, !%q0;\n"
          "selp.b32 %r2, 1000, 0, %q1; selp.b32 %r3, 10000, 0, %q2; add.u32 %r1, %r1, %r2; add.u32 %r1, %r1, %r3;\n"
          "mul.wide.u32 %b, %r0, 4; add.u64 %a, %a, %b; st.global.u32 [%a], %r1; ret;\n}\n",
      device);
  ASSERT_NE(module, nullptr);
  const auto out = device.upload(std::vector<u32>(96));
  EXPECT_EQ(run_kernel(*module, device, "k", {1}, {96}, out).fault, FaultKind::kNone);
  for (const u32 value : device.download<u32>(out, 96)) EXPECT_EQ(value, 10050u);
}

// Half the warps produce, half consume, through two named barriers of 128 threads.
TEST(Barriers, ProducersArriveWithoutWaiting) {
  TestDevice device;
  const auto module = load_or_fail(
      header() +
          ".shared .align 4 .b8 cell[4];\n.visible .entry k(.param .u64 p) {\n.reg .b64 %a, %b; .reg .b32 %r<8>; .reg "
          ".pred %q;\n"
          "ld.param.u64 %a, [p]; mov.u32 %r0, %tid.x; setp.ge.u32 %q, %r0, 64; @%q bra CONSUME;\n"
          "setp.ne.u32 %q, %r0, 5; @%q bra SKIP; st.shared.u32 [cell], 77;\nSKIP: membar.cta; bar.arrive 1, 128; ret;\n"
          "CONSUME: bar.sync 1, 128; ld.shared.u32 %r1, [cell]; mul.wide.u32 %b, %r0, 4; add.u64 %a, %a, %b; "
          "st.global.u32 [%a+-256], %r1; ret;\n}\n",
      device);
  ASSERT_NE(module, nullptr);
  const auto out = device.upload(std::vector<u32>(64));
  const Outcome outcome = run_kernel(*module, device, "k", {1}, {128}, out);
  EXPECT_EQ(outcome.fault, FaultKind::kNone) << outcome.fault_detail;
  for (const u32 value : device.download<u32>(out, 64)) EXPECT_EQ(value, 77u);
}

TEST(Barriers, OneThatCanNeverCompleteIsAFault) {
  TestDevice device;
  const auto module = load_or_fail(header() + ".visible .entry k() { bar.sync 0, 128; ret; }\n", device);
  ASSERT_NE(module, nullptr);
  const Outcome outcome = run_kernel(*module, device, "k", {1}, {64});
  EXPECT_EQ(outcome.fault, FaultKind::kLaunchTimeout);
  EXPECT_NE(outcome.fault_detail.find("barrier"), std::string::npos);
}

}  // namespace
}  // namespace softgpu::ptx
