// imagenet: classifies a batch of generated pictures with a small convolutional network.
// Parameters: batch (pictures), side (pixels, a multiple of 8), seed.
#include <algorithm>

#include "common/workload.h"
#include "imagenet/reference.h"
#include "kernels_ptx.h"

namespace fairlead::sample::imagenet {
namespace {

constexpr unsigned kThreads = 128;

struct Problem {
  int batch;
  int side;
  unsigned seed;
};

struct DeviceLayer {
  DeviceLayer(const Gpu& gpu, const Layer& layer) : weights(gpu, layer.weights), bias(gpu, layer.bias) {}
  DeviceArray<float> weights;
  DeviceArray<float> bias;
};

class Imagenet : public Workload {
 public:
  explicit Imagenet(const Gpu& gpu) : gpu_(gpu), network_(make_network()), dense_(gpu, network_.dense) {
    for (const Layer& layer : network_.convolutions) convolutions_.emplace_back(gpu, layer);
  }

  std::string invoke(Parameters& parameters) override {
    const Problem problem = {
        .batch = static_cast<int>(parameters.integer("batch", 4, {1, 64})),
        .side = static_cast<int>(parameters.multiple_of(kSideMultiple, "side", 64, {kSideMultiple, 256})),
        .seed = static_cast<unsigned>(parameters.integer("seed", 1, {0, INT32_MAX})),
    };
    parameters.check_all_used();
    double gpu_ms = 0;
    const std::vector<float> scores = classify_on_gpu(problem, gpu_ms);
    const auto best = std::max_element(scores.begin(), scores.begin() + kClasses);
    return JsonObject()
        .add("function", "imagenet")
        .add("batch", problem.batch)
        .add("top_class", std::int64_t{best - scores.begin()})  // of the first picture
        .add("top_score", static_cast<double>(*best))
        .add("checksum", checksum(scores))
        .add("gpu_ms", gpu_ms)
        .str();
  }

  void self_test(SelfTest& test) override {
    for (const Problem& problem : {Problem{1, 8, 1}, Problem{3, 24, 2}, Problem{2, 64, 3}}) {
      double gpu_ms = 0;
      std::vector<float> expected;
      for (int image = 0; image < problem.batch; ++image) {
        const std::vector<float> scores = classify(network_, problem.seed, image, problem.side);
        expected.insert(expected.end(), scores.begin(), scores.end());
      }
      test.compare("imagenet batch=" + std::to_string(problem.batch) + " side=" + std::to_string(problem.side),
                   classify_on_gpu(problem, gpu_ms), expected, 1e-5);
    }
  }

 private:
  DeviceArray<float> zeroed_planes(int count, int side) {
    DeviceArray<float> planes(gpu_, static_cast<std::size_t>(count * (side + 2) * (side + 2)));
    planes.fill(0);
    return planes;
  }

  std::vector<float> classify_on_gpu(const Problem& problem, double& gpu_ms) {
    const auto batch = static_cast<unsigned>(problem.batch);
    DeviceArray<float> features(gpu_, batch * std::size_t{kFeatures});
    DeviceArray<float> scores(gpu_, batch * std::size_t{kClasses});
    timer_.start();
    int side = problem.side;
    DeviceArray<float> pictures = zeroed_planes(problem.batch * 3, side);
    generate_.launch({blocks(problem.batch * 3 * side * side, kThreads)}, {kThreads}, pictures, side, problem.batch,
                     problem.seed);
    for (std::size_t i = 0; i < kConvolutions.size(); ++i) {
      pictures = run_block(pictures, i, side, batch);
      side /= 2;
    }
    mean_.launch({batch * kFeatures}, {32}, pictures, features, side);
    classify_.launch({blocks(kClasses, kThreads), batch}, {kThreads}, features, dense_.weights, dense_.bias, scores,
                     kFeatures, kClasses);
    gpu_ms = timer_.stop_ms();
    return scores.download();
  }

  DeviceArray<float> run_block(const DeviceArray<float>& in, std::size_t block, int side, unsigned batch) {
    const auto [in_channels, out_channels] = kConvolutions[block];
    const auto channels = static_cast<unsigned>(out_channels);
    const int planes = out_channels * static_cast<int>(batch);
    const DeviceArray<float> convolved = zeroed_planes(planes, side);
    DeviceArray<float> pooled = zeroed_planes(planes, side / 2);
    convolve_.launch({blocks(side * side, kThreads), channels, batch}, {kThreads}, in, convolutions_[block].weights,
                     convolutions_[block].bias, convolved, side, in_channels, out_channels);
    pool_.launch({blocks(side * side / 4, kThreads), channels * batch}, {kThreads}, convolved, pooled, side);
    return pooled;
  }

  const Gpu& gpu_;
  Module module_{gpu_, kernels_ptx};
  Kernel generate_ = module_.kernel("generate_pictures");
  Kernel convolve_ = module_.kernel("convolve");
  Kernel pool_ = module_.kernel("max_pool");
  Kernel mean_ = module_.kernel("mean_pool");
  Kernel classify_ = module_.kernel("classify");
  GpuTimer timer_{gpu_};
  Network network_;
  std::vector<DeviceLayer> convolutions_;
  DeviceLayer dense_;
};

}  // namespace
}  // namespace fairlead::sample::imagenet

int main(int argc, char** argv) {
  using namespace fairlead::sample;
  return workload_main(argc, argv, "imagenet",
                       [](const fairlead::Gpu& gpu) { return std::make_unique<imagenet::Imagenet>(gpu); });
}
