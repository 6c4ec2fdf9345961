// The driver wrapper and fairlead/device.h, on whatever libcuda.so.1 the library path offers.
#include "fairlead/gpu.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <numeric>

#include "fairlead/error.h"
#include "fairlead/random.h"
#include "gpu_test_ptx.h"

namespace fairlead {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class GpuTest : public ::testing::Test {
 protected:
  Error error_of(const std::function<void()>& action) {
    try {
      action();
    } catch (const Error& error) {
      return error;
    }
    return Error("none", "no error");
  }

  Gpu gpu_;
  Module module_{gpu_, gpu_test_ptx};
};

TEST_F(GpuTest, NamesItsDevice) {
  EXPECT_FALSE(gpu_.name().empty());
  EXPECT_GT(gpu_.memory_bytes(), std::size_t{1} << 20);
}

TEST_F(GpuTest, PassesArgumentsAndReturnsResults) {
  DeviceArray<float> out(gpu_, std::vector<float>{1, 2, 3, 4});
  const DeviceArray<float> in(gpu_, std::vector<float>{10, 20, 30, 40});
  module_.kernel("add_scaled").launch({2}, {2}, out, in, 0.5f, 3);
  EXPECT_THAT(out.download(), ElementsAre(6, 12, 18, 4));
  EXPECT_THAT(out.download(2), ElementsAre(6, 12));
}

TEST_F(GpuTest, LaunchesInThreeDimensions) {
  DeviceArray<int> total(gpu_, 1);
  total.fill(0);
  module_.kernel("count_threads").launch({2, 3, 4}, {8, 4, 2}, total);
  EXPECT_THAT(total.download(), ElementsAre(2 * 3 * 4 * 8 * 4 * 2));
}

TEST_F(GpuTest, BuffersMove) {
  DeviceArray<int> a(gpu_, std::vector<int>{1});
  DeviceArray<int> b(gpu_, std::vector<int>{2});
  std::swap(a, b);
  EXPECT_THAT(a.download(), ElementsAre(2));
  EXPECT_THAT(b.download(), ElementsAre(1));
  const DeviceArray<int> c(std::move(a));
  EXPECT_THAT(c.download(), ElementsAre(2));
}

TEST_F(GpuTest, TimerMeasuresTheWorkBetween) {
  GpuTimer timer(gpu_);
  DeviceArray<int> total(gpu_, 1);
  timer.start();
  module_.kernel("count_threads").launch({64}, {256}, total);
  EXPECT_GT(timer.stop_ms(), 0);
}

TEST_F(GpuTest, MissingKernelIsNamed) {
  const Error error = error_of([&] { module_.kernel("no_such_kernel"); });
  EXPECT_EQ(error.type(), "Gpu.CUDA_ERROR_NOT_FOUND");
  EXPECT_THAT(error.what(), HasSubstr("no_such_kernel"));
  EXPECT_FALSE(error.terminal());
}

TEST_F(GpuTest, BadPtxIsRefused) {
  constexpr char kBadPtx[] = R"(.version 6.3
.target sm_70
.address_size 64
.visible .entry bad() {
  frobnicate.u32 1;
})";
  const Error error = error_of([&] { Module(gpu_, kBadPtx); });
  EXPECT_EQ(error.type(), "Gpu.CUDA_ERROR_INVALID_PTX");
  EXPECT_THAT(error.what(), HasSubstr("line 5"));
}

TEST_F(GpuTest, ImpossibleAllocationNamesItsSize) {
  const Error error = error_of([&] { Buffer(gpu_, std::size_t{1} << 50); });
  EXPECT_EQ(error.type(), "Gpu.CUDA_ERROR_OUT_OF_MEMORY");
  EXPECT_THAT(error.what(), HasSubstr("1125899906842624 bytes"));
  EXPECT_FALSE(error.terminal());
}

TEST_F(GpuTest, WarpOperationsSeeAllLanes) {
  std::vector<float> values(32);
  std::iota(values.begin(), values.end(), 1.0f);
  const DeviceArray<float> in(gpu_, values);
  DeviceArray<float> out(gpu_, 3);
  module_.kernel("warp_operations").launch({1}, {32}, in, out);
  EXPECT_THAT(out.download(), ElementsAre(32 * 33 / 2, 32, 8));
}

TEST_F(GpuTest, DeviceMathematicsAgreesWithTheHost) {
  const std::vector<float> xs = {-30.0f, -3.5f, -1.0f, -0.001f, 0.25f, 0.5f, 1.5f, 2.5f, 7.0f, 100.0f / 3};
  const std::vector<std::function<double(double)>> functions = {
      [](double x) { return std::exp(x); },
      [](double x) { return std::log(std::abs(x)); },
      [](double x) { return std::sin(x); },
      [](double x) { return std::cos(x); },
      [](double x) { return std::tanh(x); },
      [](double x) { return std::sqrt(std::abs(x)); },
      [](double x) { return 1 / std::sqrt(std::abs(x)); },
      [](double x) { return std::fmin(x, 0.5); },
      [](double x) { return std::fmax(x, 0.5); },
      [](double x) { return std::nearbyint(x); },
  };
  const DeviceArray<float> in(gpu_, xs);
  DeviceArray<float> out(gpu_, xs.size() * functions.size());
  module_.kernel("evaluate").launch({1}, {32}, in, out, static_cast<int>(xs.size()));
  const std::vector<float> results = out.download();
  for (std::size_t f = 0; f < functions.size(); ++f) {
    for (std::size_t i = 0; i < xs.size(); ++i) {
      const double expected = functions[f](xs[i]);
      EXPECT_NEAR(results[f * xs.size() + i], expected, 5e-6 * std::max(1.0, std::abs(expected)))
          << "function " << f << " of " << xs[i];
    }
  }
}

TEST_F(GpuTest, RandomNumbersAreTheHosts) {
  constexpr unsigned kSeed = 77;
  constexpr int kCount = 1000;
  DeviceArray<unsigned> bits(gpu_, kCount);
  DeviceArray<float> uniform(gpu_, kCount);
  module_.kernel("random_numbers").launch({8}, {128}, kSeed, bits, uniform, kCount);
  const std::vector<unsigned> device_bits = bits.download();
  const std::vector<float> device_uniform = uniform.download();
  for (unsigned i = 0; i < kCount; ++i) {
    ASSERT_EQ(device_bits[i], random_bits(kSeed, i));
    ASSERT_EQ(device_uniform[i], random_uniform(kSeed, i));
    ASSERT_GE(device_uniform[i], -1.0f);
    ASSERT_LT(device_uniform[i], 1.0f);
  }
}

// Ruins the context, so it runs in a process of its own.
TEST(GpuDeathTest, IllegalAddressIsTerminal) {
  ::testing::FLAGS_gtest_death_test_style = "threadsafe";
  const auto write_nowhere = [] {
    Gpu gpu;
    Module module(gpu, gpu_test_ptx);
    DeviceArray<int> target(gpu, 1);
    try {
      module.kernel("write_nowhere").launch({1}, {1}, target, std::int64_t{1} << 40);
      gpu.synchronize();
    } catch (const Error& error) {
      std::fprintf(stderr, "%s %s", error.type().c_str(), error.terminal() ? "terminal" : "not terminal");
    }
    std::_Exit(0);
  };
  EXPECT_EXIT(write_nowhere(), ::testing::ExitedWithCode(0), "Gpu.CUDA_ERROR_ILLEGAL_ADDRESS terminal");
}

}  // namespace
}  // namespace fairlead
