// needle: global alignment of two generated sequences.
// Parameters: n (length, a multiple of 32), gap (penalty), seed.
#include <algorithm>

#include "common/workload.h"
#include "kernels_ptx.h"
#include "needle/reference.h"

namespace fairlead::sample::needle {
namespace {

constexpr int kTile = 32;  // kTile of kernels.cu
constexpr unsigned kThreads = 256;

struct Problem {
  int n;
  int gap;
  unsigned seed;
};

class Needle : public Workload {
 public:
  explicit Needle(const Gpu& gpu) : gpu_(gpu), similarity_(gpu, similarity_table()) {}

  std::string invoke(Parameters& parameters) override {
    const Problem problem = {
        .n = static_cast<int>(parameters.multiple_of(kTile, "n", 1024, {kTile, 16384})),
        .gap = static_cast<int>(parameters.integer("gap", 10, {0, 1000})),
        .seed = static_cast<unsigned>(parameters.integer("seed", 1, {0, INT32_MAX})),
    };
    parameters.check_all_used();
    double gpu_ms = 0;
    const DeviceArray<int> scores = align_on_gpu(problem, gpu_ms);
    const std::vector<int> last_row = download_last_row(scores, problem.n);
    return JsonObject()
        .add("function", "needle")
        .add("n", problem.n)
        .add("score", last_row.back())
        .add("checksum", checksum(std::vector<float>(last_row.begin(), last_row.end())))
        .add("gpu_ms", gpu_ms)
        .str();
  }

  void self_test(SelfTest& test) override {
    for (const Problem& problem : {Problem{32, 10, 1}, Problem{96, 1, 2}, Problem{256, 10, 3}, Problem{512, 4, 4}}) {
      double gpu_ms = 0;
      test.compare_exact("needle n=" + std::to_string(problem.n) + " gap=" + std::to_string(problem.gap),
                         align_on_gpu(problem, gpu_ms).download(),
                         scores(sequences(problem.seed, problem.n), similarity_table(), problem.gap));
    }
  }

 private:
  DeviceArray<int> align_on_gpu(const Problem& problem, double& gpu_ms) {
    const auto n = static_cast<std::size_t>(problem.n);
    DeviceArray<int> score(gpu_, (n + 1) * (n + 1));
    DeviceArray<int> a(gpu_, n);
    DeviceArray<int> b(gpu_, n);
    timer_.start();
    generate_.launch({blocks(problem.n, kThreads)}, {kThreads}, a, b, problem.n, problem.seed);
    start_.launch({blocks(problem.n + 1, kThreads)}, {kThreads}, score, problem.n, problem.gap);
    const int tiles = problem.n / kTile;
    for (int diagonal = 0; diagonal < 2 * tiles - 1; ++diagonal) {
      const int first_row = std::max(0, diagonal - tiles + 1);
      const int first_column = diagonal - first_row;
      const auto count = static_cast<unsigned>(first_column - first_row + 1);
      align_.launch({count}, {kTile}, score, a, b, similarity_, problem.n, problem.gap, first_row, first_column);
    }
    gpu_ms = timer_.stop_ms();
    return score;
  }

  std::vector<int> download_last_row(const DeviceArray<int>& scores, int n) {
    const auto pitch = static_cast<std::size_t>(n) + 1;
    DeviceArray<int> row(gpu_, pitch);
    row_.launch({blocks(n + 1, kThreads)}, {kThreads}, scores, row, n);
    return row.download();
  }

  const Gpu& gpu_;
  Module module_{gpu_, kernels_ptx};
  Kernel generate_ = module_.kernel("generate_sequences");
  Kernel start_ = module_.kernel("start_scores");
  Kernel align_ = module_.kernel("align_tiles");
  Kernel row_ = module_.kernel("copy_last_row");
  GpuTimer timer_{gpu_};
  DeviceArray<int> similarity_;
};

}  // namespace
}  // namespace fairlead::sample::needle

int main(int argc, char** argv) {
  using namespace fairlead::sample;
  return workload_main(argc, argv, "needle",
                       [](const fairlead::Gpu& gpu) { return std::make_unique<needle::Needle>(gpu); });
}
