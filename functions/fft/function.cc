// fft: a batch of complex Fourier transforms of generated signals.
// Parameters: n (points, a power of two), batch, seed.
#include <cmath>
#include <numbers>

#include "common/workload.h"
#include "fft/reference.h"
#include "kernels_ptx.h"

namespace fairlead::sample::fft {
namespace {

constexpr int kMaxPoints = 65536;
constexpr unsigned kThreads = 256;

struct Complex {
  float re, im;
};

struct Problem {
  int n;
  int batch;
  unsigned seed;
};

// exp(-2 pi i k / kMaxPoints): a smaller transform takes every (kMaxPoints / n)-th.
std::vector<Complex> make_twiddles() {
  std::vector<Complex> twiddles(kMaxPoints / 2);
  for (std::size_t k = 0; k < twiddles.size(); ++k) {
    const double angle = -2 * std::numbers::pi * static_cast<double>(k) / kMaxPoints;
    twiddles[k] = {static_cast<float>(std::cos(angle)), static_cast<float>(std::sin(angle))};
  }
  return twiddles;
}

class Fft : public Workload {
 public:
  explicit Fft(const Gpu& gpu) : gpu_(gpu), twiddles_(gpu, make_twiddles()) {}

  std::string invoke(Parameters& parameters) override {
    const Problem problem = {
        .n = static_cast<int>(parameters.power_of_two("n", 4096, {2, kMaxPoints})),
        .batch = static_cast<int>(parameters.integer("batch", 42, {1, 1024})),
        .seed = static_cast<unsigned>(parameters.integer("seed", 1, {0, INT32_MAX})),
    };
    parameters.check_all_used();
    double gpu_ms = 0;
    const std::vector<Complex> spectrum = transform_on_gpu(problem, gpu_ms);
    double energy = 0;
    for (const Complex& value : spectrum) energy += value.re * value.re + value.im * value.im;
    return JsonObject()
        .add("function", "fft")
        .add("n", problem.n)
        .add("batch", problem.batch)
        .add("checksum", energy / problem.n)  // Parseval: the energy of the signals
        .add("gpu_ms", gpu_ms)
        .str();
  }

  void self_test(SelfTest& test) override {
    for (const Problem& problem : {Problem{2, 1, 1}, Problem{64, 5, 2}, Problem{1024, 3, 3}, Problem{8192, 2, 4}}) {
      double gpu_ms = 0;
      std::vector<float> actual, expected;
      for (const Complex& value : transform_on_gpu(problem, gpu_ms)) {
        actual.push_back(value.re);
        actual.push_back(value.im);
      }
      for (int b = 0; b < problem.batch; ++b) {
        for (const std::complex<double>& value : transform(signal(problem.seed, problem.n, b))) {
          expected.push_back(static_cast<float>(value.real()));
          expected.push_back(static_cast<float>(value.imag()));
        }
      }
      test.compare("fft n=" + std::to_string(problem.n) + " batch=" + std::to_string(problem.batch), actual, expected,
                   2e-6);
    }
  }

 private:
  std::vector<Complex> transform_on_gpu(const Problem& problem, double& gpu_ms) {
    const int count = problem.n * problem.batch;
    DeviceArray<Complex> from(gpu_, static_cast<std::size_t>(count));
    DeviceArray<Complex> to(gpu_, static_cast<std::size_t>(count));
    timer_.start();
    generate_.launch({blocks(count, kThreads)}, {kThreads}, from, count, problem.seed);
    const Dim3 grid = {blocks(problem.n / 2, kThreads), static_cast<unsigned>(problem.batch)};
    for (int log2_stride = 0; 1 << log2_stride < problem.n; ++log2_stride) {
      pass_.launch(grid, {kThreads}, from, to, twiddles_, kMaxPoints / problem.n, problem.n, log2_stride);
      std::swap(from, to);
    }
    gpu_ms = timer_.stop_ms();
    return from.download();
  }

  const Gpu& gpu_;
  Module module_{gpu_, kernels_ptx};
  Kernel generate_ = module_.kernel("generate_signal");
  Kernel pass_ = module_.kernel("fft_pass");
  GpuTimer timer_{gpu_};
  DeviceArray<Complex> twiddles_;
};

}  // namespace
}  // namespace fairlead::sample::fft

int main(int argc, char** argv) {
  using namespace fairlead::sample;
  return workload_main(argc, argv, "fft", [](const fairlead::Gpu& gpu) { return std::make_unique<fft::Fft>(gpu); });
}
