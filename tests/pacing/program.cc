// A program that keeps a device busy and knows nothing of places: `paced-program KERNEL_US PATTERN [N]`. It runs until it is killed,
// or its standard input ends. On the software GPU kernels are charged, not executed (SOFTGPU_MODE=charge). On a GPU they count
// rounds: PACED_ROUNDS_PER_US says how many take a us, and `paced-program calibrate` prints that of a device that is idle otherwise.
//
//   sync        a kernel, and waits for it
//   deep N      N kernels, and waits for all of them
//   graph N     a graph of N kernels, and waits for it
//   streams N   a kernel on each of N streams, and waits for all of them
//   fork        deep 4, in a child too
//   capture N   a kernel, and while it runs a capture of N kernels, a ms apart
//   pause N     a kernel, waits for it, and N us more
//   requests N RATE OBJECTIVE_MS SEED
//               requests of N kernels that come at random instants, RATE in a second; each is wanted within the objective
//
// PACED_BLOCKS of the environment: blocks of a kernel, 80 where it is not set. KERNEL_US is of a kernel that has a SM for each block.
//
// Descriptor 3 is a page of memory that it shares with whoever started it: how many kernels have ended.
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
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
.global .u64 sink;
.visible .entry count_rounds(.param .u64 rounds, .param .u64 seed) {
  .reg .b64 %rd<4>;
  .reg .pred %p;
  ld.param.u64 %rd1, [rounds];
  ld.param.u64 %rd2, [seed];
more:
  mad.lo.u64 %rd2, %rd2, %rd2, %rd1;
  sub.u64 %rd1, %rd1, 1;
  setp.ne.u64 %p, %rd1, 0;
  @%p bra more;
  mov.u64 %rd3, sink;
  st.global.u64 [%rd3], %rd2;
  ret;
}
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

// What a kernel is launched with: the first parameter says how much it does.
struct Amount {
  const char* kernel;
  std::uint64_t of_kernel;
};

Amount amount(double kernel_us) {
  if (const char* const rounds = std::getenv("PACED_ROUNDS_PER_US")) {
    return {"count_rounds", std::max<std::uint64_t>(1, static_cast<std::uint64_t>(kernel_us * std::atof(rounds)))};
  }
  return {"softgpu_charge_work", static_cast<std::uint64_t>(kernel_us * blocks_of_kernel() * kLanesPerUsAndBlock)};
}

class Work {
 public:
  explicit Work(Amount amount) : blocks_(blocks_of_kernel()), amount_(amount.of_kernel) {
    MUST(cuInit(0));
    CUcontext context = nullptr;
    MUST(cuDevicePrimaryCtxRetain(&context, 0));
    MUST(cuCtxSetCurrent(context));
    CUmodule module = nullptr;
    MUST(cuModuleLoadData(&module, kPtx));
    MUST(cuModuleGetFunction(&kernel_, module, amount.kernel));
    for (CUstream& stream : streams_) MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  }

  void launch(int stream = 0) {
    std::uint64_t second = 0;  // bytes, or where the numbers begin
    void* parameters[] = {&amount_, &second};
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
  std::uint64_t amount_;
  CUfunction kernel_ = nullptr;
  CUstream streams_[8] = {};
};

// Requests that come while others are served wait for them; a request's time begins when it comes.
struct Arrivals {
  double rate_per_s;
  std::chrono::duration<double, std::milli> objective;
  std::uint64_t seed;
};

template <typename Instant>
std::uint64_t ns_between(Instant begin, Instant end) {
  return static_cast<std::uint64_t>(std::chrono::nanoseconds(end - begin).count());
}

void serve(Work& work, int kernels, const Arrivals& arrivals, fairlead::pacing_tests::Progress& progress) {
  using Clock = std::chrono::steady_clock;
  std::mt19937_64 random(arrivals.seed);
  std::exponential_distribution<double> pause(arrivals.rate_per_s);
  Clock::time_point due = Clock::now();
  while (true) {
    due += std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(pause(random)));
    std::this_thread::sleep_until(due);
    const Clock::time_point began = Clock::now();
    for (int i = 0; i < kernels; ++i) work.launch();
    work.wait();
    progress.kernels.fetch_add(static_cast<std::uint64_t>(kernels));
    const Clock::time_point ended = Clock::now();
    progress.queued_ns.fetch_add(ns_between(due, began));
    progress.served_ns.fetch_add(ns_between(began, ended));
    progress.missed.fetch_add(ended - due > arrivals.objective ? 1 : 0);
    progress.answered.fetch_add(1);
  }
}

// Once the device runs at the speed that it has under load.
double rounds_per_us() {
  constexpr std::uint64_t kRounds = 1'000'000;
  constexpr int kWarmUp = 40, kMeasured = 10;
  Work work({"count_rounds", kRounds});
  const auto seconds_of = [&](int kernels) {
    const auto began = std::chrono::steady_clock::now();
    for (int i = 0; i < kernels; ++i) work.launch();
    work.wait();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  };
  seconds_of(kWarmUp);
  return static_cast<double>(kRounds) * kMeasured / (seconds_of(kMeasured) * 1e6);
}

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
  if (count == 2 && std::string(words[1]) == "calibrate") {
    std::printf("%.3f\n", rounds_per_us());
    return 0;
  }
  const double kernel_us = count > 2 ? std::atof(words[1]) : 0;
  const std::string pattern = count > 2 ? words[2] : "";
  const int n = count > 3 ? std::atoi(words[3]) : 1;
  if (kernel_us <= 0) {
    std::fprintf(stderr,
                 "usage: paced-program KERNEL_US sync | deep N | graph N | streams N | fork | capture N | pause N |\n"
                 "                               requests N RATE OBJECTIVE_MS SEED\n"
                 "       paced-program calibrate\n");
    return 2;
  }
  auto* const shared = progress();
  if (pattern == "fork" && ::fork() == 0) ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  end_with_input();
  Work work(amount(kernel_us));
  if (pattern == "requests" && count == 7) {
    const auto seed = static_cast<std::uint64_t>(std::atoll(words[6]));
    const Arrivals arrivals{std::atof(words[4]), std::chrono::duration<double, std::milli>(std::atof(words[5])), seed};
    serve(work, n, arrivals, *shared);
  }
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
