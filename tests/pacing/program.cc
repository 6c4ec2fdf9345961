// A program that keeps a device busy and knows nothing of places: `paced-program KERNEL_US PATTERN [N]`. Kernels are charged, not
// executed (SOFTGPU_MODE=charge). It runs until it is killed, or its standard input ends.
//
//   sync        a kernel, and waits for it
//   deep N      N kernels, and waits for all of them
//   graph N     a graph of N kernels, and waits for it
//   streams N   a kernel on each of N streams, and waits for all of them
//   fork        deep 4, in a child too
//   capture N   a kernel, and while it runs a capture of N kernels, a ms apart
//   pause N     a kernel, waits for it, and N us more
//
// PACED_BLOCKS of the environment: blocks of a kernel, 80 where it is not set. KERNEL_US is of a kernel that has a SM for each block.
//
// Descriptor 3 is a page of memory that it shares with whoever started it: how many kernels have ended.
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

#include "abi/cuda.h"
#include "tests/pacing/progress.h"

namespace {

constexpr char kPtx[] = R"(
.version 6.3
.target sm_70
.address_size 64
.visible .entry softgpu_charge_work(.param .u64 lane_instructions, .param .u64 bytes) { ret; }
)";
// Of the profile v100-16: a SM has 64 lanes at 1.53 GHz.
constexpr double kLanesPerUsAndBlock = 64 * 1530.0;

unsigned blocks_of_kernel() {
  const char* const set = std::getenv("PACED_BLOCKS");
  return set != nullptr ? static_cast<unsigned>(std::atoi(set)) : 80;
}

void must(CUresult result, const char* what) {
  if (result == CUDA_SUCCESS) return;
  std::fprintf(stderr, "paced-program: %s is %d\n", what, result);
  std::_Exit(1);
}
#define MUST(call) must(call, #call)

class Work {
 public:
  explicit Work(double kernel_us)
      : blocks_(blocks_of_kernel()),
        instructions_(static_cast<std::uint64_t>(kernel_us * blocks_ * kLanesPerUsAndBlock)) {
    MUST(cuInit(0));
    CUcontext context = nullptr;
    MUST(cuDevicePrimaryCtxRetain(&context, 0));
    MUST(cuCtxSetCurrent(context));
    CUmodule module = nullptr;
    MUST(cuModuleLoadData(&module, kPtx));
    MUST(cuModuleGetFunction(&kernel_, module, "softgpu_charge_work"));
    for (CUstream& stream : streams_) MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  }

  void launch(int stream = 0) {
    std::uint64_t bytes = 0;
    void* parameters[] = {&instructions_, &bytes};
    MUST(cuLaunchKernel(kernel_, blocks_, 1, 1, 64, 1, 1, 0, streams_[stream], parameters, nullptr));
  }
  void wait() {
    for (CUstream stream : streams_) MUST(cuStreamSynchronize(stream));
  }
  CUgraphExec graph(int kernels) {
    MUST(cuStreamBeginCapture(streams_[0], CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    for (int i = 0; i < kernels; ++i) launch();
    CUgraph graph = nullptr;
    CUgraphExec made = nullptr;
    MUST(cuStreamEndCapture(streams_[0], &graph));
    MUST(cuGraphInstantiateWithFlags(&made, graph, 0));
    return made;
  }
  void capture(int kernels) {
    launch(1);
    CUgraph graph = nullptr;
    MUST(cuStreamBeginCapture(streams_[0], CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    for (int i = 0; i < kernels; ++i) {
      const timespec nap = {0, 1'000'000};
      ::nanosleep(&nap, nullptr);
      launch();
    }
    MUST(cuStreamEndCapture(streams_[0], &graph));
  }
  void launch_graph(CUgraphExec graph) { MUST(cuGraphLaunch(graph, streams_[0])); }

 private:
  unsigned blocks_;
  std::uint64_t instructions_;
  CUfunction kernel_ = nullptr;
  CUstream streams_[8] = {};
};

void end_with_input() {
  std::thread([] {
    char c = 0;
    while (::read(STDIN_FILENO, &c, 1) > 0) {
    }
    std::_Exit(0);
  }).detach();
}

fairlead::pacing_tests::Progress* progress() {
  void* const memory =
      ::mmap(nullptr, sizeof(fairlead::pacing_tests::Progress), PROT_READ | PROT_WRITE, MAP_SHARED, 3, 0);
  if (memory == MAP_FAILED) return new fairlead::pacing_tests::Progress;  // nobody looks
  return static_cast<fairlead::pacing_tests::Progress*>(memory);
}

}  // namespace

int main(int count, char** words) {
  const double kernel_us = count > 2 ? std::atof(words[1]) : 0;
  const std::string pattern = count > 2 ? words[2] : "";
  const int n = count > 3 ? std::atoi(words[3]) : 1;
  if (kernel_us <= 0) {
    std::fprintf(stderr,
                 "usage: paced-program KERNEL_US sync | deep N | graph N | streams N | fork | capture N | pause N\n");
    return 2;
  }
  auto* const shared = progress();
  if (pattern == "fork" && ::fork() == 0) ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  end_with_input();
  Work work(kernel_us);
  CUgraphExec graph = pattern == "graph" ? work.graph(n) : nullptr;
  const int launches = pattern == "fork" ? 4 : pattern == "sync" || pattern == "pause" ? 1 : n;
  while (true) {
    if (graph != nullptr) {
      work.launch_graph(graph);
    } else if (pattern == "capture") {
      work.capture(n);
    } else {
      for (int i = 0; i < launches; ++i) work.launch(pattern == "streams" ? i % 8 : 0);
    }
    work.wait();
    shared->kernels.fetch_add(static_cast<std::uint64_t>(launches));
    if (pattern == "pause") {
      const timespec nap = {0, n * 1000};
      ::nanosleep(&nap, nullptr);
    }
  }
}
