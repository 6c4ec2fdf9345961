// Modules, launches and outcomes.
#include "softgpu/ptx/machine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "softgpu/ptx/ptx_evaluator.h"

namespace softgpu::ptx {
namespace {

using ::testing::HasSubstr;
using testing::header;
using testing::load_error;
using testing::load_or_fail;
using testing::now_ns;
using testing::pack_arguments;
using testing::run_kernel;
using testing::TestDevice;
using u32 = std::uint32_t;

struct Unsupported {
  const char* instruction;
  LoadError::Kind kind;
  const char* message;
};

class LoadRefuses : public ::testing::TestWithParam<Unsupported> {};

TEST_P(LoadRefuses, ByNameAndLine) {
  const LoadError error =
      load_error(header() + ".entry k() {\n.reg .b32 %r<4>; .reg .b64 %d<4>; .reg .f32 %f<4>; .reg .pred %p<4>;\n" +
                 GetParam().instruction + "\nret;\n}\n");
  EXPECT_EQ(error.kind, GetParam().kind) << error.message;
  EXPECT_EQ(error.line, 6) << error.message;
  EXPECT_THAT(error.message, HasSubstr(GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(
    Instructions, LoadRefuses,
    ::testing::Values(Unsupported{"wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0}, %d0, %d1, 1, 1, 1;",
                                  LoadError::Kind::kUnsupported, "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16"},
                      Unsupported{"cp.async.bulk.commit_group;", LoadError::Kind::kUnsupported, "cp.async.bulk"},
                      Unsupported{"tensormap.replace.tile.rank.global.b1024.b32 [%d0], 1;",
                                  LoadError::Kind::kUnsupported, "tensormap.replace"},
                      Unsupported{"add.wonderful.s32 %r0, %r1, %r2;", LoadError::Kind::kUnsupported, ".wonderful"},
                      Unsupported{"add.sat.u32 %r0, %r1, %r2;", LoadError::Kind::kUnsupported, ".sat"},
                      Unsupported{"add.s32 %r0, %r1;", LoadError::Kind::kSyntax, "add.s32"},
                      Unsupported{"sin.approx.f64 %d0, %d1;", LoadError::Kind::kUnsupported, "sin.approx.f64"},
                      Unsupported{"mov.u32 %r0, %pm8;", LoadError::Kind::kUnsupported, "%pm8"},
                      Unsupported{"mov.u64 %d0, nowhere;", LoadError::Kind::kUnresolvedSymbol, "nowhere"},
                      Unsupported{"bra NOWHERE;", LoadError::Kind::kUnresolvedSymbol, "NOWHERE"},
                      Unsupported{"call.uni missing, ();", LoadError::Kind::kUnresolvedSymbol, "missing"},
                      Unsupported{"setp.lt.s32 %r0, %r1, %r2;", LoadError::Kind::kSyntax, "predicate"},
                      Unsupported{"tex.2d.v4.f32.s32 {%f0,%f1,%f2,%f3}, [t, {%r0,%r1}];",
                                  LoadError::Kind::kUnresolvedSymbol, "not defined"},
                      Unsupported{"st.const.u32 [%d0], %r0;", LoadError::Kind::kUnsupported, "read-only"}));

TEST(Module, DescribesItsKernels) {
  TestDevice device;
  const auto module = load_or_fail(
      header() +
          ".visible .entry b(.param .u32 x, .param .u64 y, .param .align 16 .b8 z[20]) .reqntid 64 { ret; }\n"
          ".visible .entry a() { .local .align 8 .b8 l[20]; ret; }\n",
      device);
  ASSERT_NE(module, nullptr);
  EXPECT_EQ(module->kernel_names(), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(module->kernel("c"), nullptr);
  const KernelInfo& info = module->kernel("b")->info();
  ASSERT_EQ(info.parameters.size(), 3u);
  EXPECT_EQ(info.parameters[1].offset, 8u);
  EXPECT_EQ(info.parameters[2].offset, 16u);
  EXPECT_EQ(info.parameter_bytes, 36u);
  EXPECT_EQ(info.max_threads, 64u);
  EXPECT_EQ(module->kernel("a")->info().local_bytes, 32u);
  EXPECT_EQ(module->kernel("a")->info().max_threads, 1024u);
}

const std::string kIndices =
    ".visible .entry k(.param .u64 p) {\n.reg .b64 %a, %b; .reg .b32 %r<16>;\nld.param.u64 %a, [p];\n"
    "mov.u32 %r0, %ctaid.x; mov.u32 %r1, %ctaid.y; mov.u32 %r2, %ctaid.z; mov.u32 %r3, %nctaid.x; mov.u32 %r4, "
    "%nctaid.y;\n"
    "mad.lo.u32 %r5, %r2, %r4, %r1; mad.lo.u32 %r5, %r5, %r3, %r0;\n"
    "mov.u32 %r6, %tid.x; mov.u32 %r7, %tid.y; mov.u32 %r8, %tid.z; mov.u32 %r9, %ntid.x; mov.u32 %r10, %ntid.y; "
    "mov.u32 %r11, %ntid.z;\n"
    "mad.lo.u32 %r12, %r8, %r10, %r7; mad.lo.u32 %r12, %r12, %r9, %r6; mul.lo.u32 %r13, %r9, %r10; mul.lo.u32 %r13, "
    "%r13, %r11;\n"
    "mad.lo.u32 %r14, %r5, %r13, %r12; mul.wide.u32 %b, %r14, 4; add.u64 %a, %a, %b; add.u32 %r14, %r14, 1; "
    "st.global.u32 [%a], %r14; ret;\n}\n";

TEST(Launch, EveryThreadOfEveryBlockRunsOnce) {
  TestDevice device;
  const auto module = load_or_fail(header() + kIndices, device);
  ASSERT_NE(module, nullptr);
  const auto out = device.upload(std::vector<u32>(3 * 2 * 4 * 7 * 3 * 2));
  EXPECT_EQ(run_kernel(*module, device, "k", {3, 2, 4}, {7, 3, 2}, out).fault, FaultKind::kNone);
  const auto results = device.download<u32>(out, 3 * 2 * 4 * 7 * 3 * 2);
  for (u32 i = 0; i < results.size(); ++i) EXPECT_EQ(results[i], i + 1);
}

TEST(Launch, ResultsAndCountsDoNotDependOnWorkers) {
  TestDevice device;
  const auto module = load_or_fail(header() + kIndices, device);
  ASSERT_NE(module, nullptr);
  const auto out = device.upload(std::vector<u32>(600 * 96));
  const auto arguments = pack_arguments(module->kernel("k")->info(), out);
  Launch launch;
  launch.grid = {600};
  launch.block = {96};
  launch.parameters = arguments;
  const Outcome one = module->kernel("k")->run(device, launch);
  launch.workers = 4;
  const Outcome four = module->kernel("k")->run(device, launch);
  EXPECT_EQ(one.warp_instructions, four.warp_instructions);
  EXPECT_EQ(one.lane_instructions, four.lane_instructions);
  EXPECT_EQ(one.lane_instructions, one.warp_instructions * 32);
  EXPECT_EQ(one.global_bytes, four.global_bytes);
  EXPECT_EQ(one.global_bytes, 600u * 96 * 4);
}

TEST(Launch, ManyMayRunAtOnce) {
  TestDevice device;
  const auto module = load_or_fail(header() + kIndices, device);
  ASSERT_NE(module, nullptr);
  const auto a = device.upload(std::vector<u32>(6400)), b = device.upload(std::vector<u32>(6400));
  std::thread other([&] { EXPECT_EQ(run_kernel(*module, device, "k", {100}, {64}, a).fault, FaultKind::kNone); });
  EXPECT_EQ(run_kernel(*module, device, "k", {100}, {64}, b).fault, FaultKind::kNone);
  other.join();
  EXPECT_EQ(device.download<u32>(a, 6400), device.download<u32>(b, 6400));
}

const std::string kEndless = ".visible .entry k() {\nLOOP: bra LOOP;\n}\n";

TEST(Launch, EndsAtItsDeadline) {
  TestDevice device;
  const auto module = load_or_fail(header() + kEndless, device);
  ASSERT_NE(module, nullptr);
  Launch launch;
  launch.grid = {4};
  const std::atomic<std::uint64_t> deadline = now_ns() + 2'000'000;
  launch.deadline_ns = &deadline;
  const Outcome outcome = module->kernel("k")->run(device, launch);
  EXPECT_EQ(outcome.fault, FaultKind::kLaunchTimeout);
  EXPECT_GT(outcome.warp_instructions, 0u);
}

TEST(Launch, ADeadlineMayMoveWhileThreadsPause) {
  TestDevice device;
  const auto module = load_or_fail(header() + kEndless, device);
  ASSERT_NE(module, nullptr);
  std::atomic<std::uint64_t> deadline = 1;  // long over
  int pauses = 0;
  const std::function<void()> pause = [&] { deadline = ++pauses < 5 ? UINT64_MAX : 1; };
  Launch launch;
  launch.deadline_ns = &deadline;
  launch.pause = &pause;
  EXPECT_EQ(module->kernel("k")->run(device, launch).fault, FaultKind::kLaunchTimeout);
  EXPECT_EQ(pauses, 5);
}

TEST(Launch, EndsWhenCancelled) {
  TestDevice device;
  const auto module = load_or_fail(header() + kEndless, device);
  ASSERT_NE(module, nullptr);
  std::atomic<bool> cancel{false};
  Launch launch;
  launch.cancel = &cancel;
  std::thread canceller([&] { cancel = true; });
  EXPECT_EQ(module->kernel("k")->run(device, launch).fault, FaultKind::kCancelled);
  canceller.join();
}

// Block 0 waits for a flag that block 5 sets.
TEST(Launch, ABlockMayWaitForALaterOne) {
  TestDevice device;
  const auto module = load_or_fail(
      header() +
          ".visible .entry k(.param .u64 p) {\n.reg .b64 %a; .reg .b32 %r<4>; .reg .pred %q;\nld.param.u64 %a, [p]; "
          "mov.u32 %r0, %ctaid.x;\n"
          "setp.eq.u32 %q, %r0, 5; @%q st.release.gpu.global.u32 [%a], 1;\nsetp.ne.u32 %q, %r0, 0; @%q ret;\n"
          "WAIT: ld.acquire.gpu.global.u32 %r1, [%a]; setp.eq.u32 %q, %r1, 0; @%q bra WAIT;\nst.global.u32 [%a+4], 7; "
          "ret;\n}\n",
      device);
  ASSERT_NE(module, nullptr);
  const auto cell = device.upload(std::vector<u32>{0, 0});
  EXPECT_EQ(run_kernel(*module, device, "k", {6}, {32}, cell).fault, FaultKind::kNone);
  EXPECT_EQ(device.download<u32>(cell, 2)[1], 7u);
}

// 200 blocks meet at a counter in the grid workspace, then each reads what its neighbour has written before.
TEST(Launch, CooperativeGridsSynchronise) {
  TestDevice device;
  const auto module = load_or_fail(
      header() +
          ".visible .entry k(.param .u64 p) {\n.reg .b64 %a<4>, %w; .reg .b32 %r<8>; .reg .pred %q;\nld.param.u64 %a0, "
          "[p]; mov.u32 %r0, %ctaid.x;\n"
          "mov.u32 %r1, %envreg1; mov.u32 %r2, %envreg2; mov.b64 %w, {%r2, %r1};\n"
          "mul.wide.u32 %a1, %r0, 4; add.u64 %a1, %a0, %a1; add.u32 %r3, %r0, 1; st.global.u32 [%a1], %r3; membar.gl;\n"
          "red.add.u32 [%w], 1;\nWAIT: ld.acquire.gpu.u32 %r4, [%w]; setp.lt.u32 %q, %r4, 200; @%q bra WAIT;\n"
          "add.u32 %r5, %r0, 1; rem.u32 %r5, %r5, 200; mul.wide.u32 %a2, %r5, 4; add.u64 %a2, %a0, %a2; ld.global.u32 "
          "%r6, [%a2];\n"
          "st.global.u32 [%a1+800], %r6; ret;\n}\n",
      device);
  ASSERT_NE(module, nullptr);
  const auto cells = device.upload(std::vector<u32>(400));
  const auto arguments = pack_arguments(module->kernel("k")->info(), cells);
  for (const unsigned workers : {1u, 3u}) {
    Launch launch;
    launch.grid = {200};
    launch.parameters = arguments;
    launch.cooperative = true;
    launch.workers = workers;
    const Outcome outcome = module->kernel("k")->run(device, launch);
    ASSERT_EQ(outcome.fault, FaultKind::kNone) << outcome.fault_detail;
    const auto results = device.download<u32>(cells, 400);
    for (u32 i = 0; i < 200; ++i) EXPECT_EQ(results[200 + i], (i + 1) % 200 + 1);
  }
}

TEST(Launch, TrapEndsIt) {
  TestDevice device;
  const auto module = load_or_fail(header() +
                                       ".visible .entry k() { .reg .b32 %r; .reg .pred %p; mov.u32 %r, %tid.x; "
                                       "setp.eq.u32 %p, %r, 3; @%p trap; ret; }\n",
                                   device);
  ASSERT_NE(module, nullptr);
  const Outcome outcome = run_kernel(*module, device, "k", {1}, {32});
  EXPECT_EQ(outcome.fault, FaultKind::kLaunchFailed);
  EXPECT_THAT(outcome.fault_detail, HasSubstr("kernel k, block (0,0,0), thread (3,0,0), PTX line 4: trap"));
}

std::string bytes(const std::string& text) {
  std::string out;
  for (const char c : text) out += std::to_string(static_cast<int>(c)) + ", ";
  return out + "0";
}

TEST(Printf, FormatsItsArguments) {
  TestDevice device;
  std::string printed;
  const std::string format = "%d|%5.2f|%s|%lld|%x|%c|%%\n";
  const auto module = load_or_fail(
      header() +
          ".extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);\n.global .align 1 .b8 fmt[] = {" +
          bytes(format) + "};\n.global .align 1 .b8 word[] = {" + bytes("word") +
          "};\n"
          ".visible .entry k() {\n.local .align 8 .b8 args[48]; .reg .b64 %a<6>; .reg .b32 %r<3>;\nmov.u64 %a0, args; "
          "cvta.local.u64 %a1, %a0; mov.u32 %r0, %tid.x;\n"
          "st.local.u32 [%a0], %r0; st.local.f64 [%a0+8], 0d4009000000000000; mov.u64 %a2, word; cvta.global.u64 %a2, "
          "%a2; st.local.u64 [%a0+16], %a2;\n"
          "st.local.u64 [%a0+24], -5; st.local.u32 [%a0+32], 255; st.local.u32 [%a0+36], 65;\n"
          "mov.u64 %a3, fmt; cvta.global.u64 %a4, %a3;\n"
          "{ .param .b64 p0; .param .b64 p1; .param .b32 ret; st.param.b64 [p0], %a4; st.param.b64 [p1], %a1; call.uni "
          "(ret), vprintf, (p0, p1); ld.param.b32 %r1, [ret]; }\nret;\n}\n",
      device, [&](std::string_view text) { printed += text; });
  ASSERT_NE(module, nullptr);
  const Outcome outcome = run_kernel(*module, device, "k", {1}, {2});
  EXPECT_EQ(outcome.fault, FaultKind::kNone) << outcome.fault_detail;
  EXPECT_EQ(printed, "0| 3.12|word|-5|ff|A|%\n1| 3.12|word|-5|ff|A|%\n");
}

TEST(Assert, NamesTheExpression) {
  TestDevice device;
  const auto module = load_or_fail(header() + ".global .align 1 .b8 m[] = {" + bytes("x > 0") +
                                       "};\n.global .align 1 .b8 f[] = {" + bytes("file.cu") +
                                       "};\n.extern .func __assertfail(.param .b64 a, .param .b64 b, .param .b32 c, "
                                       ".param .b64 d, .param .b64 e);\n.visible .entry k() {\n.reg .b64 %a<3>;\n"
                                       "mov.u64 %a0, m; mov.u64 %a1, f;\n{ .param .b64 a; .param .b64 b; .param .b32 "
                                       "c; .param .b64 d; .param .b64 e; st.param.b64 [a], %a0; st.param.b64 [b], %a1;"
                                       " st.param.b32 [c], 12; st.param.b64 [d], %a1; st.param.b64 [e], 1; call.uni "
                                       "__assertfail, (a, b, c, d, e); }\nret;\n}\n",
                                   device);
  ASSERT_NE(module, nullptr);
  const Outcome outcome = run_kernel(*module, device, "k", {1}, {1});
  EXPECT_EQ(outcome.fault, FaultKind::kAssert);
  EXPECT_THAT(outcome.fault_detail, HasSubstr("file.cu:12: file.cu: assertion `x > 0` failed"));
}

}  // namespace
}  // namespace softgpu::ptx
