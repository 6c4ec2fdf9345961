// lud: LU decomposition of a generated, diagonally dominant matrix.
// Parameters: n (rows, a multiple of 16), seed.
#include "common/workload.h"
#include "kernels_ptx.h"
#include "lud/reference.h"

namespace fairlead::sample::lud {
namespace {

constexpr unsigned kTile = 16;  // kTile of kernels.cu
constexpr unsigned kThreads = 256;

class Lud : public Workload {
 public:
  explicit Lud(const Gpu& gpu) : gpu_(gpu) {}

  std::string invoke(Parameters& parameters) override {
    const int n = static_cast<int>(parameters.multiple_of(kTile, "n", 432, {kTile, 8192}));
    const auto seed = static_cast<unsigned>(parameters.integer("seed", 1, {0, INT32_MAX}));
    parameters.check_all_used();
    double gpu_ms = 0;
    const std::vector<float> factors = decompose_on_gpu(n, seed, gpu_ms);
    return JsonObject()
        .add("function", "lud")
        .add("n", n)
        .add("checksum", checksum(factors))
        .add("gpu_ms", gpu_ms)
        .str();
  }

  void self_test(SelfTest& test) override {
    for (const int n : {16, 48, 128, 208}) {
      const unsigned seed = static_cast<unsigned>(n);
      double gpu_ms = 0;
      std::vector<double> expected = matrix(seed, n);
      decompose(expected, n);
      test.compare("lud n=" + std::to_string(n), decompose_on_gpu(n, seed, gpu_ms),
                   std::vector<float>(expected.begin(), expected.end()), 2e-6);
    }
  }

 private:
  std::vector<float> decompose_on_gpu(int n, unsigned seed, double& gpu_ms) {
    DeviceArray<float> matrix(gpu_, static_cast<std::size_t>(n) * static_cast<std::size_t>(n));
    timer_.start();
    generate_.launch({blocks(std::int64_t{n} * n, kThreads)}, {kThreads}, matrix, n, seed);
    const unsigned tiles = static_cast<unsigned>(n) / kTile;
    for (unsigned done = 0; done < tiles; ++done) {
      const int offset = static_cast<int>(done * kTile);
      const unsigned left = tiles - done - 1;
      diagonal_.launch({1}, {kTile}, matrix, n, offset);
      if (left == 0) break;
      perimeter_.launch({left, 2}, {kTile}, matrix, n, offset);
      interior_.launch({left, left}, {kTile, kTile}, matrix, n, offset);
    }
    gpu_ms = timer_.stop_ms();
    return matrix.download();
  }

  const Gpu& gpu_;
  Module module_{gpu_, kernels_ptx};
  Kernel generate_ = module_.kernel("generate_matrix");
  Kernel diagonal_ = module_.kernel("factor_diagonal");
  Kernel perimeter_ = module_.kernel("solve_perimeter");
  Kernel interior_ = module_.kernel("update_interior");
  GpuTimer timer_{gpu_};
};

}  // namespace
}  // namespace fairlead::sample::lud

int main(int argc, char** argv) {
  using namespace fairlead::sample;
  return workload_main(argc, argv, "lud", [](const fairlead::Gpu& gpu) { return std::make_unique<lud::Lud>(gpu); });
}
