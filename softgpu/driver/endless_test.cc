// Kernels that never end: each ends at its limit, loses its turn to other processes, and ends with its context.
#include <poll.h>

#include <cstdio>
#include <string>
#include <string_view>
#include <thread>

#include "softgpu/driver/driver_testing.h"

namespace softgpu::testing {
namespace {

// A test that would hang fails instead.
constexpr unsigned kPatienceS = 60;

// Each sets words[1] and then runs until words[0] is not 0.
struct Endless {
  const char* name;
  const char* body;  // behind LOOP; sets %r1 to words[0]
  bool cooperative = false;
};

constexpr Endless kEndless[] = {
    {"over_a_barrier", "bar.sync 0; ld.volatile.global.u32 %r1, [%d]; bar.sync 0;"},
    {"over_a_reduction", "bar.red.popc.u32 %r2, 0, %q; ld.volatile.global.u32 %r1, [%d];"},
    {"over_a_warp_barrier", "bar.warp.sync -1; ld.volatile.global.u32 %r1, [%d];"},
    {"in_divided_warps",
     "and.b32 %r2, %t, 1; setp.eq.u32 %q, %r2, 0; @%q bra EVEN; bar.sync 0; bra BOTH; EVEN: bar.sync 0; BOTH:\n"
     "ld.volatile.global.u32 %r1, [%d];"},
    {"asleep", "nanosleep.u32 1000; ld.volatile.global.u32 %r1, [%d];"},
    {"on_an_atomic", "atom.global.cas.b32 %r1, [%d], 7, 8;"},
    {"printing",
     "{ .reg .u64 %f; .param .b64 p0; .param .b64 p1; .param .b32 result; mov.u64 %f, text; cvta.global.u64 %f, %f;\n"
     "st.param.b64 [p0], %f; st.param.b64 [p1], 0; call.uni (result), vprintf, (p0, p1); }\n"
     "ld.volatile.global.u32 %r1, [%d];"},
    {"in_a_grid", "bar.sync 0; ld.acquire.gpu.global.u32 %r1, [%d]; bar.sync 0;", true},
};

std::string endless_ptx() {
  std::string text =
      ".version 7.0\n.target sm_70\n.address_size 64\n"
      ".extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);\n"
      ".global .align 1 .b8 text[] = {120, 10, 0};\n";
  for (const Endless& kernel : kEndless) {
    text += ".visible .entry " + std::string(kernel.name) +
            "(.param .u64 words) {\n.reg .u64 %d; .reg .u32 %r<4>, %t; .reg .pred %q;\n"
            "ld.param.u64 %d, [words]; mov.u32 %t, %tid.x; setp.eq.u32 %q, %t, 3; st.volatile.global.u32 [%d+4], 1;\n"
            "LOOP:\n" +
            kernel.body + "\nsetp.eq.u32 %q, %r1, 0; @%q bra LOOP; ret;\n}\n";
  }
  return text;
}

// Starts the kernel on two blocks and returns when it runs.
void start(const Endless& kernel) {
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  CUstream stream = nullptr;
  ASSERT_EQ(cuModuleLoadData(&module, endless_ptx().c_str()), CUDA_SUCCESS);
  ASSERT_EQ(cuModuleGetFunction(&function, module, kernel.name), CUDA_SUCCESS);
  ASSERT_EQ(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  CUdeviceptr words = make_words(2);
  void* parameters[] = {&words};
  const auto launch = kernel.cooperative
                          ? cuLaunchCooperativeKernel(function, 2, 1, 1, 128, 1, 1, 0, stream, parameters)
                          : cuLaunchKernel(function, 2, 1, 1, 128, 1, 1, 0, stream, parameters, nullptr);
  ASSERT_EQ(launch, CUDA_SUCCESS);
  const auto* running = reinterpret_cast<volatile unsigned*>(words + 4);
  while (*running == 0) std::this_thread::yield();
}

CUresult run_one() {
  EXPECT_EQ(run_kernel("empty", nullptr), CUDA_SUCCESS);
  return cuCtxSynchronize();
}

// What kernels print is of no interest.
void begin() {
  ::alarm(kPatienceS);
  ASSERT_NE(std::freopen("/dev/null", "w", stdout), nullptr);
}

DRIVER_TEST_IN(EndlessKernel, EndsAtTheLaunchTimeout, (Environment{{"SOFTGPU_LAUNCH_TIMEOUT_MS", "30"}})) {
  begin();
  for (const Endless& kernel : kEndless) {
    use_device();
    start(kernel);
    EXPECT_EQ(cuCtxSynchronize(), CUDA_ERROR_LAUNCH_TIMEOUT) << kernel.name;
    EXPECT_EQ(cuDevicePrimaryCtxReset_v2(0), CUDA_SUCCESS);
  }
}

DRIVER_TEST(EndlessKernel, EndsWithItsContext) {
  begin();
  for (const Endless& kernel : kEndless) {
    use_device();
    start(kernel);
    EXPECT_EQ(cuDevicePrimaryCtxReset_v2(0), CUDA_SUCCESS) << kernel.name;
  }
  CUcontext context = nullptr;
  ASSERT_EQ(cuCtxCreate_v2(&context, 0, 0), CUDA_SUCCESS);
  start(kEndless[0]);
  EXPECT_EQ(cuCtxDestroy_v2(context), CUDA_SUCCESS);
}

// All of them beside each other, in streams of one process.
const Scenario endless("EndlessKernel.endless", [] {
  begin();
  use_device();
  for (const Endless& kernel : kEndless) start(kernel);
  ::alarm(0);
});

const Scenario neighbour("EndlessKernel.neighbour", [] {
  begin();
  use_device();
  for (int i = 0; i < 20; ++i) EXPECT_EQ(run_one(), CUDA_SUCCESS);
});

TEST(EndlessKernel, LosesItsTurnToAnotherProcess) {
  const TemporaryHome home(Environment{{"SOFTGPU_MEMORY_SCALE", "64"}});
  const Fresh first("EndlessKernel.endless");
  ASSERT_TRUE(first.ran());
  EXPECT_TRUE(Fresh("EndlessKernel.neighbour").ran());
  EXPECT_TRUE(Fresh("EndlessKernel.endless").ran());
}

TEST(EndlessKernel, EndsWithItsProcess) {
  const TemporaryHome home(Environment{{"SOFTGPU_MEMORY_SCALE", "64"}, {"SOFTGPU_TIME_SLICE_US", "10000000"}});
  Fresh first("EndlessKernel.endless");
  ASSERT_TRUE(first.ran());
  first.kill();
  EXPECT_TRUE(Fresh("EndlessKernel.neighbour").ran());
}

// A reader that is slow to take what kernels print holds nobody else up.
const Scenario unread("EndlessKernel.unread", [] {
  ::alarm(kPatienceS);
  int pipe[2];
  ASSERT_EQ(::pipe(pipe), 0);
  ASSERT_EQ(::dup2(pipe[1], STDOUT_FILENO), STDOUT_FILENO);
  use_device();
  for (const Endless& kernel : kEndless) {
    if (std::string_view(kernel.name) == "printing") start(kernel);
  }
  // Synchronous copies write out what was printed.
  std::thread([context = use_device()] {
    cuCtxSetCurrent(context);
    const CUdeviceptr word = make_words(1);
    while (true) word_at(word);
  }).detach();
  // Pages of a pipe may stay partly filled, so its bytes do not say whether it is full.
  for (pollfd end{.fd = pipe[1], .events = POLLOUT, .revents = 0}; ::poll(&end, 1, 0) == 1;) {
    std::this_thread::yield();
  }
  ::alarm(0);
});

TEST(EndlessKernel, ThatPrintsToNobodyLosesItsTurn) {
  const TemporaryHome home(Environment{{"SOFTGPU_MEMORY_SCALE", "64"}});
  const Fresh first("EndlessKernel.unread");
  ASSERT_TRUE(first.ran());
  EXPECT_TRUE(Fresh("EndlessKernel.neighbour").ran());
}

}  // namespace
}  // namespace softgpu::testing
