// Calls while the process exits: from atexit handlers, destructors of globals and of thread-local objects, and from
// threads that outlive main. Each works or says DEINITIALIZED; none crashes.
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>

#include "softgpu/driver/driver_testing.h"

namespace softgpu::testing {
namespace {

constexpr unsigned kPatienceS = 60;

bool is_fine(CUresult result) {
  return result == CUDA_SUCCESS || result == CUDA_ERROR_DEINITIALIZED;
}

// Every kind of call that a thread's own state has a part in.
void use_everything() {
  CUcontext context = nullptr;
  CUdeviceptr memory = 0;
  CUstream stream = nullptr;
  EXPECT_TRUE(is_fine(cuCtxGetCurrent(&context)));
  EXPECT_NE(context, nullptr) << "the thread's context is still current";
  EXPECT_TRUE(is_fine(cuMemAlloc_v2(&memory, 4096)));
  EXPECT_TRUE(is_fine(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING)));
  EXPECT_TRUE(is_fine(cuMemsetD32Async(memory, 7, 1024, stream)));
  EXPECT_TRUE(is_fine(cuLaunchKernel(test_function("empty"), 4, 1, 1, 64, 1, 1, 0, stream, nullptr, nullptr)));
  EXPECT_TRUE(
      is_fine(cuLaunchKernel(test_function("empty"), 4, 1, 1, 64, 1, 1, 0, CU_STREAM_PER_THREAD, nullptr, nullptr)));
  EXPECT_TRUE(is_fine(cuStreamSynchronize(stream)));
  EXPECT_TRUE(is_fine(cuStreamSynchronize(CU_STREAM_PER_THREAD)));
  EXPECT_TRUE(is_fine(cuCtxPushCurrent_v2(context)));
  EXPECT_TRUE(is_fine(cuCtxPopCurrent_v2(&context)));
  EXPECT_TRUE(is_fine(cuCtxSynchronize()));
  EXPECT_TRUE(is_fine(cuMemFree_v2(memory)));
  EXPECT_TRUE(is_fine(cuStreamDestroy_v2(stream)));
}

struct AtEnd {
  explicit AtEnd(std::function<void()> what) : act(std::move(what)) {}
  ~AtEnd() { act(); }
  std::function<void()> act;
};

// Whoever is destroyed last reports for the process.
void report() {
  const char verdict = ::testing::Test::HasFailure() ? 'f' : 'p';
  EXPECT_EQ(::write(kReportFile, &verdict, 1), 1);
}

void expect_clean_exit(const char* scenario) {
  const TemporaryHome home(Environment{{"SOFTGPU_MEMORY_SCALE", "64"}});
  Fresh process(scenario);
  EXPECT_TRUE(process.ran());
  EXPECT_EQ(process.wait(), 0) << "the status of waitpid";
}

const Scenario globals("Exit.globals", [] {
  ::alarm(kPatienceS);
  static AtEnd first([] {  // made before cuInit, destroyed behind what the driver made
    use_everything();
    report();
  });
  std::atexit(use_everything);
  use_device();
  use_everything();
  static AtEnd second(use_everything);
  std::atexit(use_everything);
  std::exit(0);
});

TEST(Exit, DestructorsOfGlobalsAndHandlersMayUseTheDevice) {
  expect_clean_exit("Exit.globals");
}

const Scenario only_at_exit("Exit.only_at_exit", [] {
  ::alarm(kPatienceS);
  static AtEnd last([] {
    use_device();
    use_everything();
    report();
  });
  std::exit(0);
});

TEST(Exit, ADestructorMayBeTheFirstToUseTheDevice) {
  expect_clean_exit("Exit.only_at_exit");
}

const Scenario thread_locals("Exit.thread_locals", [] {
  ::alarm(kPatienceS);
  use_device();
  const auto body = [] {
    static thread_local AtEnd early(use_everything);
    use_device();
    use_everything();
    static thread_local AtEnd late(use_everything);
    static_cast<void>(&early);
    static_cast<void>(&late);
  };
  for (int i = 0; i < 20; ++i) std::thread(body).join();
  body();
  static AtEnd last(report);
  std::exit(0);
});

TEST(Exit, DestructorsOfThreadLocalObjectsMayUseTheDevice) {
  expect_clean_exit("Exit.thread_locals");
}

const Scenario threads("Exit.threads", [] {
  ::alarm(kPatienceS);
  static AtEnd last(report);
  CUcontext context = use_device();
  CUfunction empty = test_function("empty");
  for (int i = 0; i < 4; ++i) {
    std::thread([context, empty] {  // expects nothing: GoogleTest's own state ends before these threads do
      cuCtxSetCurrent(context);
      while (true) {
        CUdeviceptr memory = 0;
        cuMemAlloc_v2(&memory, 4096);
        cuLaunchKernel(empty, 4, 1, 1, 64, 1, 1, 0, CU_STREAM_PER_THREAD, nullptr, nullptr);
        cuStreamSynchronize(CU_STREAM_PER_THREAD);
        cuMemFree_v2(memory);
      }
    })
        .detach();
  }
  for (int i = 0; i < 50; ++i) use_everything();
  std::exit(0);
});

TEST(Exit, ThreadsMayOutliveMain) {
  for (int i = 0; i < 5; ++i) expect_clean_exit("Exit.threads");
}

const Scenario busy("Exit.busy", [] {
  ::alarm(kPatienceS);
  static AtEnd last(report);
  use_device();
  Gate gate;
  EXPECT_EQ(gate.close(make_stream(CU_STREAM_NON_BLOCKING)), CUDA_SUCCESS);
  gate.wait_until_closed();
  std::exit(0);
});

TEST(Exit, AKernelThatRunsIsEnded) {
  expect_clean_exit("Exit.busy");
}

}  // namespace
}  // namespace softgpu::testing
