// Sessions on the software GPU: as a graph and kernel by kernel they compute the same.
#include "runtime/device_server/kernel_session.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cstring>
#include <fstream>

#include "base/check.h"
#include "runtime/device_server/testing/software_gpu.h"

namespace fairlead {
namespace {

constexpr std::uint32_t kElements = 32;
constexpr std::uint64_t kVector = kElements * 4;
constexpr std::uint64_t kRange = 2 << 20;

struct Gpu {
  Gpu() {
    std::ifstream file(TEST_KERNELS);
    module = cuda->load_module(std::string(std::istreambuf_iterator<char>(file), {})).value();
    lane = LaunchLane::create(*cuda).value();
    base = cuda->reserve_addresses(Bytes(kRange), Bytes(kRange)).value();
    FL_CHECK(cuda->map_memory(base, Bytes(kRange)).has_value());
  }

  std::unique_ptr<KernelSession> session(const KernelTask& task, Launching launching) {
    auto session = KernelSession::create(*cuda, task, {module}, launching);
    FL_CHECK(session.has_value(), "{}", session.error().message);
    FL_CHECK(lane->need_events(*cuda, (*session)->plan().events).has_value());
    return *std::move(session);
  }
  // The memory from `base` on, of so many vectors, after a call: vector i held i everywhere before it.
  std::string run(KernelSession& session, const std::vector<CUdeviceptr>& addresses, std::size_t vectors) {
    std::vector<float> memory(vectors * kElements);
    for (std::size_t i = 0; i < memory.size(); ++i) memory[i] = static_cast<float>(i / kElements);
    FL_CHECK(cuda->copy_in(base, memory.data(), memory.size() * 4, lane->main()) == CUDA_SUCCESS);
    const CUresult launched = session.launch(*cuda, *lane, addresses);
    FL_CHECK(launched == CUDA_SUCCESS, "{}", cuda->describe(launched));
    std::string after(memory.size() * 4, '\0');
    FL_CHECK(cuda->copy_out(after.data(), base, after.size(), lane->main()) == CUDA_SUCCESS);
    FL_CHECK(cuda->synchronize().has_value());
    return after;
  }

  CudaContext* cuda = &software_gpu(SOFTGPU_FOLDER);
  CUmodule module = nullptr;
  std::unique_ptr<LaunchLane> lane;
  CUdeviceptr base = 0;
};

Gpu& gpu() {
  static Gpu shared;
  return shared;
}

// y = x / 2, or y += x: of such kernels the order matters.
KernelLaunch kernel(bool scales, std::uint32_t x, std::uint32_t y) {
  const float half = 0.5F;
  KernelLaunch launch{
      .module = 0, .kernel = scales ? "scale" : "accumulate", .block = {kElements, 1, 1}, .arguments = {}};
  launch.arguments = {BufferArgument{.buffer = x, .access = BufferArgument::Access::kRead},
                      BufferArgument{.buffer = y}};
  if (scales) {
    launch.arguments.emplace_back(
        LiteralArgument{.bytes = std::string(reinterpret_cast<const char*>(&half), 4), .relocations = {}});
  }
  return launch;
}

KernelTask task_of(std::size_t buffers, std::uint32_t iterations) {
  KernelTask task;
  for (std::size_t b = 0; b < buffers; ++b) {
    task.buffers.push_back({.name = fmt::format("b{}", b),
                            .bytes = Bytes(static_cast<std::int64_t>(kVector)),
                            .role = BufferRole::kInOut,
                            .shape = {},
                            .constant = {}});
  }
  task.iterations = iterations;
  return task;
}

// A chain: b1 += b0, so many times.
KernelTask chain(std::size_t kernels, std::uint32_t iterations = 1) {
  KernelTask task = task_of(2, iterations);
  task.kernels.assign(kernels, kernel(false, 0, 1));
  return task;
}

RC_GTEST_PROP(KernelSession, AGraphComputesWhatItsKernelsOneByOneDo, ()) {
  const auto buffers = *rc::gen::inRange<std::uint32_t>(2, 8);
  KernelTask task = task_of(buffers, *rc::gen::inRange<std::uint32_t>(1, 20));
  const auto kernels = *rc::gen::inRange<std::size_t>(1, 40);
  for (std::size_t k = 0; k < kernels; ++k) {
    const auto x = *rc::gen::inRange<std::uint32_t>(0, buffers);
    const auto y = (x + *rc::gen::inRange<std::uint32_t>(1, buffers)) % buffers;
    task.kernels.push_back(kernel(*rc::gen::arbitrary<bool>(), x, y));
  }
  const auto graph = gpu().session(task, Launching::kGraphs);
  const auto plain = gpu().session(task, Launching::kPlain);
  RC_ASSERT(graph->has_graph() == (kernels * task.iterations >= KernelSession::kMinGraphLaunches));
  RC_ASSERT(!plain->has_graph());
  for (int call = 0; call < 4; ++call) {  // buffers are elsewhere in each, or some of them are
    std::vector<std::uint32_t> places(2 * buffers);
    for (std::uint32_t i = 0; i < places.size(); ++i) places[i] = i;
    for (std::uint32_t i = 0; i < buffers; ++i) {
      std::swap(places[i], places[*rc::gen::inRange<std::uint32_t>(i, 2 * buffers)]);
    }
    std::vector<CUdeviceptr> addresses;
    for (std::uint32_t b = 0; b < buffers; ++b) addresses.push_back(gpu().base + places[b] * kVector);
    RC_ASSERT(gpu().run(*graph, addresses, 2 * buffers) == gpu().run(*plain, addresses, 2 * buffers));
  }
}

TEST(KernelSession, ThousandsOfIterationsAreSeveralLaunchesOfAGraphAndTheRest) {
  const std::vector<CUdeviceptr> addresses{gpu().base + kVector, gpu().base};
  for (const std::uint32_t iterations : {8U, 127U, 128U, 129U, 1000U, 4099U}) {
    const auto session = gpu().session(chain(1, iterations), Launching::kGraphs);
    const std::string after = gpu().run(*session, addresses, 2);
    float sum = 0;
    std::memcpy(&sum, after.data(), sizeof sum);
    EXPECT_EQ(sum, static_cast<float>(iterations));  // 0, and one each time
  }
}

TEST(KernelGraph, HoldsAsManyIterationsAsMakeAboutItsNodes) {
  EXPECT_EQ(KernelGraph::iterations_of_one(3, 100), 33u);  // of 42 that fit, in three equal launches
  EXPECT_EQ(KernelGraph::iterations_of_one(1, 8), 8u);
  EXPECT_EQ(KernelGraph::iterations_of_one(16384, 1000000), 1u);
  for (std::size_t kernels = 1; kernels < 200; ++kernels) {
    for (const std::uint32_t iterations : {1U, 2U, 7U, 128U, 1000U, 1000000U}) {
      const std::uint32_t one = KernelGraph::iterations_of_one(kernels, iterations);
      ASSERT_GE(one, 1u);
      ASSERT_LE(one, iterations);
      ASSERT_LE(one * kernels, std::max<std::size_t>(kernels, KernelGraph::kNodes));
      ASSERT_LE(iterations % one, iterations / one) << kernels << " x " << iterations;  // few are left over
    }
  }
}

// A driver that refuses at this point.
class Refusal : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const std::string where = GetParam();
    if (where == "instantiate") calls_.instantiate = [](auto...) { return CUDA_ERROR_NOT_SUPPORTED; };
    if (where == "update") calls_.set_kernel = [](auto...) { return CUDA_ERROR_NOT_SUPPORTED; };
    if (where == "launch") calls_.launch = [](auto...) { return CUDA_ERROR_NOT_SUPPORTED; };
  }
  void TearDown() override { calls_ = real_; }

  GraphCalls& calls_ = const_cast<GraphCalls&>(*gpu().cuda->graphs());
  const GraphCalls real_ = calls_;
};

TEST_P(Refusal, TheKernelsRunOneByOneAllTheSame) {
  const auto session = gpu().session(chain(20), Launching::kGraphs);
  const std::vector<CUdeviceptr> addresses{gpu().base + kVector, gpu().base};
  const std::string after = gpu().run(*session, addresses, 2);
  float sum = 0;
  std::memcpy(&sum, after.data(), sizeof sum);
  EXPECT_EQ(sum, 20);
  EXPECT_FALSE(session->has_graph());
}
INSTANTIATE_TEST_SUITE_P(Points, Refusal, testing::Values("instantiate", "update", "launch"));

}  // namespace
}  // namespace fairlead
