// A kernel cannot keep the machine from looking at the clock, whatever its code looks like.
#include <gtest/gtest.h>

#include <string>

#include "softgpu/ptx/ptx_evaluator.h"

namespace softgpu::ptx {
namespace {

using testing::header;
using testing::load_or_fail;
using testing::TestDevice;
using u32 = std::uint32_t;

// ---- kernels

// `body` once or `count` times, for each thread; a kernel of a hundred looks at the clock has far to go.
std::string looping(const std::string& body, const std::string& declarations = "") {
  return header() + declarations +
         ".visible .entry k(.param .u64 p, .param .u32 count) {\n.reg .u64 %a; .reg .u32 %r<8>, %i, %n, %lane;\n"
         ".reg .f32 %f<4>; .reg .pred %q<4>;\n"
         "ld.param.u64 %a, [p]; ld.param.u32 %n, [count]; mov.u32 %lane, %laneid; mov.u32 %i, 0;\n"
         "mov.f32 %f0, 0f3F800000; mov.f32 %f1, %f0; mov.u32 %r0, 0;\n"
         "LOOP:\n" +
         body + "\nadd.u32 %i, %i, 1; setp.lt.u32 %q0, %i, %n; @%q0 bra LOOP;\nret;\n}\n";
}

struct Shape {
  unsigned threads = 256;
  unsigned blocks = 2;
  bool cooperative = false;
  u32 count = 2'000'000;
};

// Cancels the kernel at its hundredth look, and asks what it has executed. `straight` is how many instructions it executes
// without a branch back; a block's warps may each be in the midst of as many.
void expect_stopped(const std::string& text, Shape shape = {}, std::uint64_t straight = 1000) {
  constexpr int kLooks = 100;
  constexpr std::uint64_t kStep = 1 << 14;  // of launch.cc
  TestDevice device;
  const auto module = load_or_fail(text, device);
  ASSERT_NE(module, nullptr);
  const auto words = device.upload(std::vector<u32>(1024));
  const auto arguments = testing::pack_arguments(module->kernel("k")->info(), words, shape.count);
  std::atomic<bool> cancel{false};
  int looks = 0;
  const std::function<void()> pause = [&] { cancel = ++looks >= kLooks; };
  Launch launch;
  launch.grid = {shape.blocks};
  launch.block = {shape.threads};
  launch.parameters = arguments;
  launch.cooperative = shape.cooperative;
  launch.cancel = &cancel;
  launch.pause = &pause;
  const Outcome outcome = module->kernel("k")->run(device, launch);
  EXPECT_EQ(outcome.fault, FaultKind::kCancelled) << "it ended by itself, after " << looks << " looks";
  EXPECT_LE(outcome.warp_instructions, kLooks * (kStep + straight));
}

TEST(Endless, LoopsOverABarrier) {
  expect_stopped(looping("bar.sync 0;"));
  expect_stopped(looping("bar.sync 0;\nbar.sync 1;"), {.threads = 1024});
  expect_stopped(looping("setp.lt.u32 %q1, %i, 5; bar.red.popc.u32 %r1, 0, %q1;"), {.threads = 96});
  expect_stopped(looping("bar.sync 0;"), {.threads = 32});
}

TEST(Endless, LoopsOverAWarpBarrier) {
  expect_stopped(looping("bar.warp.sync -1;"));
  expect_stopped(looping("vote.sync.any.pred %q1, 1, -1;"));
}

TEST(Endless, LoopsOfDividedWarps) {
  expect_stopped(
      looping("and.b32 %r1, %lane, 1; setp.eq.u32 %q1, %r1, 0; @%q1 bra EVEN; add.u32 %r2, %r2, 1; bra BOTH;\n"
              "EVEN: add.u32 %r2, %r2, 2;\nBOTH:"));
  // Every lane in a loop of its own.
  expect_stopped(
      looping("setp.lt.u32 %q1, %lane, 16; @%q1 bra LOW;\n"
              "HIGH: add.u32 %i, %i, 1; setp.lt.u32 %q0, %i, %n; @%q0 bra HIGH; ret;\nLOW:"));
}

TEST(Endless, LoopsOfDividedWarpsOverABarrier) {
  expect_stopped(looping("and.b32 %r1, %lane, 1; setp.eq.u32 %q1, %r1, 0; @%q1 bra EVEN; bar.sync 0; bra BOTH;\n"
                         "EVEN: bar.sync 0;\nBOTH:"),
                 {.count = 300'000});
}

TEST(Endless, Sleeps) {
  expect_stopped(looping("nanosleep.u32 1000000;"));
}

TEST(Endless, SpinsOnAtomics) {
  expect_stopped(looping("atom.global.cas.b32 %r1, [%a], 1, 2; atom.global.add.u32 %r1, [%a+4], 1;"),
                 {.count = 200'000});
}

TEST(Endless, LongStretchesOfNativeCode) {
  std::string sums;
  for (int i = 0; i < 250; ++i) sums += "fma.rn.f32 %f1, %f1, %f0, %f0;\n";
  expect_stopped(looping(sums), {.count = 20'000}, 8 * 300);
}

TEST(Endless, LongStretchesWithoutABranch) {
  std::string sums;
  for (int i = 0; i < 10'000; ++i) sums += "mad.lo.u32 %r1, %r1, %lane, %r0;\npopc.b32 %r0, %r1;\n";
  expect_stopped(looping(sums), {.threads = 1024, .count = 50}, 32 * 20'010);
}

TEST(Endless, GridsThatSynchronise) {
  expect_stopped(looping("ld.acquire.gpu.global.u32 %r1, [%a]; setp.ne.u32 %q1, %r1, 0; @%q1 bra LOOP;"),
                 {.blocks = 64, .cooperative = true, .count = 300'000});
}

TEST(Endless, Calls) {
  expect_stopped(looping("call.uni f, ();", ".func f() { ret; }\n"));
  // A tree of calls without a loop: 2^30 of them.
  std::string tree = ".func f0() { ret; }\n";
  for (int i = 1; i <= 30; ++i) {
    const std::string below = "f" + std::to_string(i - 1);
    tree += ".func f" + std::to_string(i) + "() { call.uni " + below + ", (); call.uni " + below + ", (); ret; }\n";
  }
  expect_stopped(looping("call.uni f30, ();", tree), {.threads = 32, .blocks = 1, .count = 1});
}

TEST(Endless, BranchesThroughATable) {
  expect_stopped(
      looping("and.b32 %r1, %i, 1;\nadd.u32 %i, %i, 1; setp.ge.u32 %q0, %i, %n; @%q0 ret;\n"
              "table: .branchtargets LOOP, LOOP;\nbrx.idx.uni %r1, table;"));
}

TEST(Endless, Floods) {
  const std::string print =
      ".extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);\n"
      ".global .align 1 .b8 fmt[] = {120, 120, 10, 0};\n";
  expect_stopped(looping("{ .reg .u64 %f; .param .b64 p0; .param .b64 p1; .param .b32 result; mov.u64 %f, fmt;\n"
                         "cvta.global.u64 %f, %f; st.param.b64 [p0], %f; st.param.b64 [p1], 0;\n"
                         "call.uni (result), vprintf, (p0, p1); }",
                         print),
                 {.count = 20'000});
}

// A block that spins does not keep its warps, nor other blocks, from running.
TEST(Endless, WarpsThatWaitForEachOtherProceed) {
  TestDevice device;
  const auto module =
      load_or_fail(header() +
                       ".visible .entry k(.param .u64 p) {\n.reg .u64 %a; .reg .u32 %r<4>, %w, %next; .reg .pred %q;\n"
                       "ld.param.u64 %a, [p]; mov.u32 %w, %tid.x; shr.u32 %w, %w, 5; mov.u32 %r0, %ctaid.x;\n"
                       "mad.lo.u32 %w, %r0, 8, %w; add.u32 %next, %w, 1;\n"
                       "WAIT: ld.volatile.global.u32 %r1, [%a]; setp.ne.u32 %q, %r1, %w; @%q bra WAIT;\n"
                       "st.volatile.global.u32 [%a], %next; ret;\n}\n",
                   device);
  ASSERT_NE(module, nullptr);
  const auto word = device.upload(std::vector<u32>{0});
  const Outcome outcome = testing::run_kernel(*module, device, "k", {6}, {256}, word);
  EXPECT_EQ(outcome.fault, FaultKind::kNone) << outcome.fault_detail;
  EXPECT_EQ(device.download<u32>(word, 1)[0], 48u);
}

}  // namespace
}  // namespace softgpu::ptx
