// A program whose memory is moved under it: `shim-swap-program`. It holds buffers, an instantiated graph that writes
// them, an array, and pointers into all of them; it knows nothing of the shim. A line on standard input is a step, and a
// line on standard output says how many things were not as they were left:
//
//   step      launches the graph and looks at every word
//   storm     8 threads launch, copy, allocate and free until the next line
//   calm      ends the storm
//   capture   begins a capture; `captured` ends it
//   spin      starts a kernel that waits for the host; `free` ends it
//   exit
#include <atomic>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "abi/cuda.h"

namespace {

constexpr char kPtx[] = R"(
.version 6.3
.target sm_70
.address_size 64
.visible .entry add_one(.param .u64 words, .param .u32 count) {
  .reg .pred %p<2>; .reg .b32 %r<8>; .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [words];
  ld.param.u32 %r1, [count];
  mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x;
  mad.lo.s32 %r5, %r2, %r3, %r4;
  setp.ge.u32 %p1, %r5, %r1;
  @%p1 ret;
  mul.wide.u32 %rd2, %r5, 4;
  add.s64 %rd3, %rd1, %rd2;
  ld.global.u32 %r6, [%rd3];
  add.s32 %r7, %r6, 1;
  st.global.u32 [%rd3], %r7;
  ret;
}
.visible .entry wait_for(.param .u64 flag) {
  .reg .pred %p<2>; .reg .b32 %r<2>; .reg .b64 %rd<2>;
  ld.param.u64 %rd1, [flag];
again:
  ld.volatile.global.u32 %r1, [%rd1];
  setp.eq.u32 %p1, %r1, 0;
  @%p1 bra again;
  ret;
}
)";

void must(CUresult result, const char* what) {
  if (result == CUDA_SUCCESS) return;
  std::printf("error: %s is %d\n", what, result);
  std::fflush(stdout);
  std::_Exit(1);
}
#define MUST(call) must(call, #call)

struct Words {
  explicit Words(unsigned size) : count(size) {
    MUST(cuMemAlloc(&address, count * sizeof(unsigned)));
    MUST(cuMemsetD32(address, 0, count));
  }
  CUdeviceptr address = 0;
  unsigned count;
};

class Program {
 public:
  Program() {
    MUST(cuInit(0));
    MUST(cuDevicePrimaryCtxRetain(&context_, 0));
    MUST(cuCtxSetCurrent(context_));
    MUST(cuModuleLoadData(&module_, kPtx));
    MUST(cuModuleGetFunction(&add_one_, module_, "add_one"));
    MUST(cuModuleGetFunction(&wait_for_, module_, "wait_for"));
    MUST(cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING));
    for (const unsigned count : {100U, 1000U, 100'000U, 1'500'000U}) words_.emplace_back(count);
    make_graph();
    make_array();
    MUST(cuMemAllocHost(reinterpret_cast<void**>(&flag_), sizeof *flag_));
  }

  int step() {
    MUST(cuGraphLaunch(graph_, stream_));
    MUST(cuStreamSynchronize(stream_));
    ++generation_;
    int wrong = 0;
    for (const Words& words : words_) {
      std::vector<unsigned> values(words.count);
      MUST(cuMemcpyDtoH(values.data(), words.address, words.count * sizeof(unsigned)));
      for (const unsigned value : values) wrong += value != generation_ ? 1 : 0;
      wrong += pointers_are_right(words) ? 0 : 1;
    }
    return wrong + (array_is_right() ? 0 : 1);
  }

  void storm() {
    raging_ = true;
    for (unsigned t = 0; t < 8; ++t) threads_.emplace_back([this, t] { rage(t); });
  }
  int calm() {
    raging_ = false;
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
    return storm_wrong_.exchange(0);
  }

  void begin_capture() {
    MUST(cuStreamBeginCapture_v2(stream_, CU_STREAM_CAPTURE_MODE_RELAXED));
    launch(words_[0]);
  }
  int end_capture() {
    CUgraph graph = nullptr;
    const CUresult result = cuStreamEndCapture(stream_, &graph);
    if (result == CUDA_SUCCESS) MUST(cuGraphDestroy(graph));
    return result == CUDA_SUCCESS ? 0 : 1;
  }

  void spin() {
    flag_->store(0);
    CUdeviceptr address = 0;
    MUST(cuMemHostGetDevicePointer(&address, flag_, 0));
    void* parameters[] = {&address};
    MUST(cuLaunchKernel(wait_for_, 1, 1, 1, 1, 1, 1, 0, stream_, parameters, nullptr));
  }
  int end_spin() {
    flag_->store(1);
    return cuStreamSynchronize(stream_) == CUDA_SUCCESS ? 0 : 1;
  }

 private:
  void launch(const Words& words) {
    CUdeviceptr address = words.address;
    unsigned count = words.count;
    void* parameters[] = {&address, &count};
    MUST(cuLaunchKernel(add_one_, (count + 255) / 256, 1, 1, 256, 1, 1, 0, stream_, parameters, nullptr));
  }

  void make_graph() {
    CUgraph graph = nullptr;
    MUST(cuStreamBeginCapture_v2(stream_, CU_STREAM_CAPTURE_MODE_RELAXED));
    for (const Words& words : words_) launch(words);
    MUST(cuStreamEndCapture(stream_, &graph));
    MUST(cuGraphInstantiateWithFlags(&graph_, graph, 0));
  }

  void make_array() {
    const CUDA_ARRAY_DESCRIPTOR descriptor = {64, 1, CU_AD_FORMAT_UNSIGNED_INT32, 1};
    MUST(cuArrayCreate(&array_, &descriptor));
    for (unsigned i = 0; i < 64; ++i) in_array_[i] = i * 77;
    MUST(cuMemcpyHtoA(array_, 0, in_array_, sizeof in_array_));
  }

  bool array_is_right() {
    unsigned values[64] = {};
    MUST(cuMemcpyAtoH(values, array_, 0, sizeof values));
    return std::memcmp(values, in_array_, sizeof values) == 0;
  }

  static bool pointers_are_right(const Words& words) {
    CUdeviceptr start = 0;
    std::size_t bytes = 0;
    MUST(cuMemGetAddressRange(&start, &bytes, words.address + 4 * (words.count - 1)));
    return start == words.address && bytes == words.count * sizeof(unsigned);
  }

  // Everything here is this thread's own; what it reads must be what it wrote.
  void rage(unsigned thread) {
    MUST(cuCtxSetCurrent(context_));
    CUstream stream = nullptr;
    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    for (unsigned i = 0; raging_; ++i) {
      Words own(500 + 300'000 * ((i + thread) % 3));
      unsigned count = own.count;
      void* parameters[] = {&own.address, &count};
      for (int k = 0; k < 3; ++k) {
        MUST(cuLaunchKernel(add_one_, (count + 255) / 256, 1, 1, 256, 1, 1, 0, stream, parameters, nullptr));
      }
      unsigned last = 0;
      MUST(cuMemcpyDtoHAsync(&last, own.address + 4ULL * (count - 1), sizeof last, stream));
      MUST(cuStreamSynchronize(stream));
      if (last != 3) storm_wrong_.fetch_add(1);
      MUST(cuMemFree(own.address));
    }
    MUST(cuStreamDestroy(stream));
  }

  CUcontext context_ = nullptr;
  CUmodule module_ = nullptr;
  CUfunction add_one_ = nullptr, wait_for_ = nullptr;
  CUstream stream_ = nullptr;
  CUgraphExec graph_ = nullptr;
  CUarray array_ = nullptr;
  unsigned in_array_[64] = {};
  std::vector<Words> words_;
  unsigned generation_ = 0;
  std::atomic<unsigned>* flag_ = nullptr;
  std::atomic<bool> raging_{false};
  std::atomic<int> storm_wrong_{0};
  std::vector<std::thread> threads_;
};

}  // namespace

int main() {
  Program program;
  std::printf("ready\n");
  std::fflush(stdout);
  for (char line[64]; std::fgets(line, sizeof line, stdin) != nullptr;) {
    const std::string word(line, std::strcspn(line, "\n"));
    int wrong = 0;
    if (word == "step") wrong = program.step();
    if (word == "storm") program.storm();
    if (word == "calm") wrong = program.calm();
    if (word == "capture") program.begin_capture();
    if (word == "captured") wrong = program.end_capture();
    if (word == "spin") program.spin();
    if (word == "free") wrong = program.end_spin();
    if (word == "exit") break;
    std::printf("%d\n", wrong);
    std::fflush(stdout);
  }
  std::fflush(stdout);
  std::_Exit(0);
}
