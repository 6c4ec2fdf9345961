// isoneural: time steps of isoneutral mixing in an ocean model; many small kernels.
// Parameters: nx, ny, nz (cells), steps, seed.
#include "common/workload.h"
#include "isoneural/reference.h"
#include "kernels_ptx.h"

namespace fairlead::sample::isoneural {
namespace {

constexpr unsigned kThreads = 128;

struct Result {
  std::vector<float> temperature;
  std::vector<float> salinity;
  int kernels = 0;
  double gpu_ms = 0;
};

class Isoneural : public Workload {
 public:
  explicit Isoneural(const Gpu& gpu) : gpu_(gpu) {}

  std::string invoke(Parameters& parameters) override {
    const Ocean ocean = {
        .nx = static_cast<int>(parameters.integer("nx", 16, {1, 1024})),
        .ny = static_cast<int>(parameters.integer("ny", 16, {1, 1024})),
        .nz = static_cast<int>(parameters.integer("nz", 8, {1, 128})),
    };
    const auto steps = static_cast<int>(parameters.integer("steps", 2, {1, 10000}));
    const auto seed = static_cast<unsigned>(parameters.integer("seed", 1, {0, INT32_MAX}));
    parameters.check_all_used();
    const Result result = run_on_gpu(ocean, seed, steps);
    return JsonObject()
        .add("function", "isoneural")
        .add("cells", ocean.nx * ocean.ny * ocean.nz)
        .add("steps", steps)
        .add("kernels", result.kernels)
        .add("heat", checksum(result.temperature))  // mixing conserves both
        .add("salt", checksum(result.salinity))
        .add("gpu_ms", result.gpu_ms)
        .str();
  }

  void self_test(SelfTest& test) override {
    for (const Ocean& ocean : {Ocean{1, 1, 1}, Ocean{5, 1, 3}, Ocean{16, 16, 8}, Ocean{37, 20, 11}}) {
      constexpr int kSteps = 4;
      const unsigned seed = static_cast<unsigned>(ocean.nx);
      Tracers expected = initial_tracers(ocean, seed);
      for (int i = 0; i < kSteps; ++i) step(ocean, expected);
      const Result actual = run_on_gpu(ocean, seed, kSteps);
      const std::string what =
          "isoneural " + std::to_string(ocean.nx) + "x" + std::to_string(ocean.ny) + "x" + std::to_string(ocean.nz);
      test.compare(what + " temperature", actual.temperature,
                   {expected.temperature.begin(), expected.temperature.end()}, 1e-5);
      test.compare(what + " salinity", actual.salinity, {expected.salinity.begin(), expected.salinity.end()}, 1e-5);
    }
  }

 private:
  struct Fields {
    Fields(const Gpu& gpu, std::size_t cells)
        : temperature(gpu, cells),
          salinity(gpu, cells),
          rho(gpu, cells),
          rho_x(gpu, cells),
          rho_y(gpu, cells),
          rho_z(gpu, cells),
          slope_x(gpu, cells),
          slope_y(gpu, cells),
          taper(gpu, cells),
          flux_x(gpu, cells),
          flux_y(gpu, cells),
          flux_z(gpu, cells) {}

    using Field = DeviceArray<float>;
    Field temperature, salinity, rho, rho_x, rho_y, rho_z, slope_x, slope_y, taper, flux_x, flux_y, flux_z;
  };

  Result run_on_gpu(const Ocean& ocean, unsigned seed, int steps) {
    const int cells = ocean.nx * ocean.ny * ocean.nz;
    const Dim3 grid = {blocks(cells, kThreads)};
    Fields fields(gpu_, static_cast<std::size_t>(cells));
    Result result;
    timer_.start();
    const auto launch = [&](const Kernel& kernel, const auto&... arguments) {
      kernel.launch(grid, {kThreads}, ocean, arguments...);
      ++result.kernels;
    };
    launch(initialise_, seed, fields.temperature, fields.salinity);
    for (int i = 0; i < steps; ++i) step_on_gpu(fields, launch);
    result.gpu_ms = timer_.stop_ms();
    result.temperature = fields.temperature.download();
    result.salinity = fields.salinity.download();
    return result;
  }

  template <class Launch>
  void step_on_gpu(Fields& f, const Launch& launch) const {
    launch(density_, f.temperature, f.salinity, f.rho);
    launch(gradient_, f.rho, f.rho_x, 1, 0, 0);
    launch(gradient_, f.rho, f.rho_y, 0, 1, 0);
    launch(gradient_, f.rho, f.rho_z, 0, 0, 1);
    launch(slope_, f.rho_x, f.rho_z, f.slope_x);
    launch(slope_, f.rho_y, f.rho_z, f.slope_y);
    launch(taper_, f.slope_x, f.slope_y, f.taper);
    for (const DeviceArray<float>* tracer : {&f.temperature, &f.salinity}) {
      launch(fluxes_, *tracer, f.slope_x, f.slope_y, f.taper, f.flux_x, f.flux_y, f.flux_z);
      launch(mix_, f.flux_x, f.flux_y, f.flux_z, *tracer);
    }
  }

  const Gpu& gpu_;
  Module module_{gpu_, kernels_ptx};
  Kernel initialise_ = module_.kernel("initialise");
  Kernel density_ = module_.kernel("density");
  Kernel gradient_ = module_.kernel("gradient");
  Kernel slope_ = module_.kernel("slope");
  Kernel taper_ = module_.kernel("taper");
  Kernel fluxes_ = module_.kernel("fluxes");
  Kernel mix_ = module_.kernel("mix");
  GpuTimer timer_{gpu_};
};

}  // namespace
}  // namespace fairlead::sample::isoneural

int main(int argc, char** argv) {
  using namespace fairlead::sample;
  return workload_main(argc, argv, "isoneural",
                       [](const fairlead::Gpu& gpu) { return std::make_unique<isoneural::Isoneural>(gpu); });
}
