// pathfinder: the cheapest way down a generated grid of costs.
// Parameters: rows, columns, seed.
#include <algorithm>

#include "common/workload.h"
#include "kernels_ptx.h"
#include "pathfinder/reference.h"

namespace fairlead::sample::pathfinder {
namespace {

constexpr unsigned kThreads = 256;  // kBlock of kernels.cu
constexpr int kRowsPerLaunch = 20;

struct Problem {
  int rows;
  int columns;
  unsigned seed;
};

class Pathfinder : public Workload {
 public:
  explicit Pathfinder(const Gpu& gpu) : gpu_(gpu) {}

  std::string invoke(Parameters& parameters) override {
    const Problem problem = {
        .rows = static_cast<int>(parameters.integer("rows", 120, {1, 4096})),
        .columns = static_cast<int>(parameters.integer("columns", 20000, {1, 262144})),
        .seed = static_cast<unsigned>(parameters.integer("seed", 1, {0, INT32_MAX})),
    };
    parameters.check_all_used();
    double gpu_ms = 0;
    const std::vector<int> costs = search_on_gpu(problem, gpu_ms);
    const auto cheapest = std::min_element(costs.begin(), costs.end());
    return JsonObject()
        .add("function", "pathfinder")
        .add("rows", problem.rows)
        .add("columns", problem.columns)
        .add("cheapest", *cheapest)
        .add("at_column", std::int64_t{cheapest - costs.begin()})
        .add("checksum", checksum(std::vector<float>(costs.begin(), costs.end())))
        .add("gpu_ms", gpu_ms)
        .str();
  }

  void self_test(SelfTest& test) override {
    for (const Problem& problem : {Problem{1, 1, 1}, Problem{7, 300, 2}, Problem{21, 216, 3}, Problem{100, 5000, 4}}) {
      double gpu_ms = 0;
      test.compare_exact(
          "pathfinder rows=" + std::to_string(problem.rows) + " columns=" + std::to_string(problem.columns),
          search_on_gpu(problem, gpu_ms),
          cheapest_paths(wall(problem.seed, problem.rows, problem.columns), problem.rows, problem.columns));
    }
  }

 private:
  std::vector<int> search_on_gpu(const Problem& problem, double& gpu_ms) {
    const std::int64_t cells = std::int64_t{problem.rows} * problem.columns;
    const auto columns = static_cast<std::size_t>(problem.columns);
    DeviceArray<int> wall(gpu_, static_cast<std::size_t>(cells));
    DeviceArray<int> from(gpu_, columns);
    DeviceArray<int> to(gpu_, columns);
    from.fill(0);
    timer_.start();
    generate_.launch({blocks(cells, kThreads)}, {kThreads}, wall, static_cast<int>(cells), problem.seed);
    for (int row = 0; row < problem.rows; row += kRowsPerLaunch) {
      const int rows = std::min(kRowsPerLaunch, problem.rows - row);
      const unsigned useful = kThreads - 2 * static_cast<unsigned>(rows);
      advance_.launch({blocks(problem.columns, useful)}, {kThreads}, wall, from, to, problem.columns, row, rows);
      std::swap(from, to);
    }
    gpu_ms = timer_.stop_ms();
    return from.download();
  }

  const Gpu& gpu_;
  Module module_{gpu_, kernels_ptx};
  Kernel generate_ = module_.kernel("generate_wall");
  Kernel advance_ = module_.kernel("advance");
  GpuTimer timer_{gpu_};
};

}  // namespace
}  // namespace fairlead::sample::pathfinder

int main(int argc, char** argv) {
  using namespace fairlead::sample;
  return workload_main(argc, argv, "pathfinder",
                       [](const fairlead::Gpu& gpu) { return std::make_unique<pathfinder::Pathfinder>(gpu); });
}
