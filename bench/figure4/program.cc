// One of the copies of fft: holds so many bytes of device memory in two allocations and uses all of it at every call. It
// knows nothing of the shim. Calls come as lines on standard input; each is answered with the time on the device in
// milliseconds and how many of the words it looked at were not what the call before had left.
#include <cstdio>
#include <cstdlib>

#include "fairlead/gpu.h"
#include "kernels_ptx.h"

namespace {

constexpr int kPasses = 12;
constexpr unsigned kThreads = 256;
// A butterfly of two points is some 20 instructions.
constexpr std::uint64_t kInstructionsPerWord = 10;

class Copy {
 public:
  explicit Copy(std::size_t bytes) : first_(gpu_, bytes / 2), second_(gpu_, bytes / 2) {}

  // The call's time on the device, in milliseconds.
  double call(unsigned* wrong) {
    wrong_.fill(0);
    timer_.start();
    for (const fairlead::Buffer* memory : {&first_, &second_}) {
      const std::uint64_t pages = memory->bytes() / 4096;
      const std::uint64_t words = memory->bytes() / 4;
      check_.launch({static_cast<unsigned>((pages + kThreads - 1) / kThreads)}, {kThreads}, *memory, pages, generation_,
                    generation_ + 1, wrong_);
      fft_.launch({4096}, {kThreads}, std::uint64_t{kPasses} * words * kInstructionsPerWord,
                  std::uint64_t{2 * kPasses} * memory->bytes(), *memory, words, kPasses);
    }
    const double ms = timer_.stop_ms();
    ++generation_;
    wrong_.download(wrong, sizeof *wrong);
    return ms;
  }

 private:
  fairlead::Gpu gpu_;
  fairlead::Module module_{gpu_, kernels_ptx};
  fairlead::Kernel check_ = module_.kernel("check");
  fairlead::Kernel fft_ = module_.kernel("softgpu_charge_fft");
  fairlead::GpuTimer timer_{gpu_};
  fairlead::Buffer first_, second_;
  fairlead::Buffer wrong_{gpu_, sizeof(unsigned)};
  unsigned generation_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s BYTES\n", argv[0]);
    return 2;
  }
  try {
    Copy copy(std::strtoull(argv[1], nullptr, 10) / 8192 * 8192);
    for (char line[64]; std::fgets(line, sizeof line, stdin) != nullptr;) {
      unsigned wrong = 0;
      const double ms = copy.call(&wrong);
      std::printf("%.6f %u\n", ms, wrong);
      std::fflush(stdout);
    }
  } catch (const std::exception& error) {
    std::printf("error: %s\n", error.what());
    return 1;
  }
  return 0;
}
