// Calls in pieces compute, byte for byte, what they compute as a whole: on the software GPU, with the twins of the kernels of the tests and of
// the built-in library's products.
#include "runtime/device_server/call_steps.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cstring>
#include <fstream>
#include <thread>

#include "base/check.h"
#include "gpu/fence/block_ranges.h"
#include "runtime/device_server/testing/gemm_generator.h"
#include "runtime/device_server/testing/gemm_task.h"
#include "runtime/device_server/testing/software_gpu.h"

namespace fairlead {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kRange = 64 << 20;

CUmodule cut_module(CudaContext& cuda, const char* path, const std::vector<std::string>& kernels) {
  std::ifstream file(path);
  const auto ranged = fence::add_ranges(std::string(std::istreambuf_iterator<char>(file), {}), kernels);
  FL_CHECK(ranged.has_value(), "{}", ranged.error().message);
  for (const auto& kernel : ranged->kernels)
    FL_CHECK(kernel.why_whole.empty(), "{}: {}", kernel.name, kernel.why_whole);
  return cuda.load_module(ranged->ptx).value();
}

struct Gpu {
  Gpu() {
    kernels = cut_module(*cuda, TEST_KERNELS, {"scale", "accumulate"});
    for (const char* const element : {"f32", "f64", "f16", "bf16"}) {
      for (const char* const size : {"", "_small"}) products.push_back(fmt::format("gemm_{}{}", element, size));
    }
    lane = LaunchLane::create(*cuda).value();
    base = cuda->reserve_addresses(Bytes(kRange), Bytes(kRange)).value();
    FL_CHECK(cuda->map_memory(base, Bytes(kRange)).has_value());
  }

  std::unique_ptr<KernelSession> session(const KernelTask& task, CUmodule module) const {
    auto session = KernelSession::create(*cuda, task, {module}, Launching::kGraphs, nullptr,
                                         std::vector<bool>(task.kernels.size(), true));
    FL_CHECK(session.has_value(), "{}", session.error().message);
    FL_CHECK(lane->need_events(*cuda, (*session)->plan().events).has_value());
    return *std::move(session);
  }
  std::string bytes_after(const std::string& before, const auto& launch) const {
    FL_CHECK(cuda->copy_in(base, before.data(), before.size(), lane->main()) == CUDA_SUCCESS);
    const CUresult code = launch();
    FL_CHECK(code == CUDA_SUCCESS, "{}", cuda->describe(code));
    std::string after(before.size(), '\0');
    FL_CHECK(cuda->copy_out(after.data(), base, after.size(), lane->main()) == CUDA_SUCCESS);
    FL_CHECK(cuda->synchronize().has_value());
    return after;
  }
  // A call in pieces; how many.
  CUresult run(CallSteps& steps, const std::vector<CUdeviceptr>& addresses, Duration left) const {
    static const auto nothing = [](void*) {};
    Duration used{0};
    CUresult code = CUDA_SUCCESS;
    for (steps.begin_call(); !steps.is_over() && code == CUDA_SUCCESS;) {
      code = steps.queue(*lane, addresses, left, nothing, nullptr);
      if (code == CUDA_SUCCESS) code = steps.look(used);
      std::this_thread::yield();
    }
    return code;
  }

  CudaContext* cuda = &software_gpu(SOFTGPU_FOLDER);
  CUmodule kernels = nullptr;
  std::vector<std::string> products;
  std::unique_ptr<LaunchLane> lane;
  CUdeviceptr base = 0;
};

const Gpu& gpu() {
  static const Gpu shared;
  return shared;
}

std::vector<std::uint64_t> waves(const KernelSession& session) {
  const Occupancy occupancy(*gpu().cuda);
  std::vector<std::uint64_t> blocks;
  for (std::size_t k = 0; k < session.task().kernels.size(); ++k) {
    blocks.push_back(session.blocks_at_once(occupancy, k));
  }
  return blocks;
}

std::string numbers(std::size_t bytes) {
  std::string content(bytes, '\0');
  for (std::size_t i = 0; i + 4 <= bytes; i += 4) {
    const auto value = static_cast<float>(static_cast<int>((i / 4 * 7 + i / 64) % 7) - 3);
    std::memcpy(content.data() + i, &value, sizeof value);
  }
  return content;
}

// y = x / 2, or y += x, a block for each element: more blocks than the device holds together.
constexpr std::uint32_t kElements = 4'500;

KernelLaunch kernel(bool scales, std::uint32_t x, std::uint32_t y) {
  const float half = 0.5F;
  KernelLaunch launch{
      .module = 0, .kernel = scales ? "scale" : "accumulate", .grid = {kElements, 1, 1}, .arguments = {}};
  launch.arguments = {BufferArgument{.buffer = x, .access = BufferArgument::Access::kRead},
                      BufferArgument{.buffer = y}};
  if (scales) {
    launch.arguments.emplace_back(
        LiteralArgument{.bytes = std::string(reinterpret_cast<const char*>(&half), 4), .relocations = {}});
  }
  return launch;
}

RC_GTEST_PROP(CallSteps, ComputeWhatAWholeCallDoes, ()) {
  const auto buffers = *rc::gen::inRange<std::uint32_t>(2, 5);
  KernelTask task;
  for (std::uint32_t b = 0; b < buffers; ++b) {
    task.buffers.push_back({.name = fmt::format("b{}", b),
                            .bytes = Bytes(kElements * 4),
                            .role = BufferRole::kInOut,
                            .shape = {},
                            .constant = {}});
  }
  task.iterations = *rc::gen::inRange<std::uint32_t>(1, 3);
  const auto kernels = *rc::gen::inRange<std::size_t>(1, 4);
  for (std::size_t k = 0; k < kernels; ++k) {
    const auto x = *rc::gen::inRange<std::uint32_t>(0, buffers);
    const auto y = (x + *rc::gen::inRange<std::uint32_t>(1, buffers)) % buffers;
    task.kernels.push_back(kernel(*rc::gen::arbitrary<bool>(), x, y));
  }
  const auto session = gpu().session(task, gpu().kernels);
  const auto other = gpu().session(task, gpu().kernels);
  const auto steps = CallSteps::create(*gpu().cuda, *session, waves(*session)).value();
  const std::string before = numbers(buffers * kElements * 4);
  for (int call = 0; call < 2; ++call) {  // buffers are elsewhere in each; what is known of kernels, too
    std::vector<CUdeviceptr> addresses;
    for (std::uint32_t b = 0; b < buffers; ++b) {
      addresses.push_back(gpu().base + (b + static_cast<std::uint32_t>(call)) % buffers * kElements * 4);
    }
    const auto left = std::chrono::microseconds(*rc::gen::inRange(-100, 3000));
    const auto in_pieces = gpu().bytes_after(before, [&] { return gpu().run(*steps, addresses, left); });
    RC_ASSERT(steps->pieces() >= 2);
    const auto whole = gpu().bytes_after(before, [&] { return other->launch(*gpu().cuda, *gpu().lane, addresses); });
    RC_ASSERT(in_pieces == whole);
    // The session's graph had other addresses before.
    const auto after = gpu().bytes_after(before, [&] { return session->launch(*gpu().cuda, *gpu().lane, addresses); });
    RC_ASSERT(after == whole);
  }
}

// Products of the library's kernels, large enough for more blocks than there is room for.
TEST(CallSteps, ProductsOfTheLibraryAreTheSame) {
  for (const bool is_small : {true, false}) {
    GemmTask gemm{.kernel = is_small ? "gemm_f32_small" : "gemm_f32", .m = 70, .n = 130, .k = 5, .batches = 300};
    gemm.a = {.row = gemm.k, .batch = gemm.m * gemm.k};
    gemm.b = {.row = gemm.n, .batch = gemm.k * gemm.n};
    gemm.c = {.row = gemm.n, .batch = gemm.m * gemm.n};
    const KernelTask task = gemm.task();
    const CUmodule module = cut_module(*gpu().cuda, GEMM_PTX, {gemm.kernel});
    const auto session = gpu().session(task, module);
    const auto steps = CallSteps::create(*gpu().cuda, *session, waves(*session)).value();
    std::vector<CUdeviceptr> addresses;
    std::uint64_t end = 0;
    for (const BufferSpec& buffer : task.buffers) {
      addresses.push_back(gpu().base + end);
      end += (static_cast<std::uint64_t>(buffer.bytes.count()) + 511) / 512 * 512;
    }
    ASSERT_LE(end, kRange);
    const std::string before = numbers(end);
    const auto whole = gpu().bytes_after(before, [&] { return session->launch(*gpu().cuda, *gpu().lane, addresses); });
    EXPECT_NE(whole, before);
    for (int call = 0; call < 2; ++call) {
      const auto cut = gpu().bytes_after(before, [&] { return gpu().run(*steps, addresses, 0us); });
      EXPECT_TRUE(cut == whole) << gemm.kernel;
      EXPECT_GE(steps->pieces(), 2U) << blocks_of(task.kernels[0].grid) << " blocks";
    }
  }
}

TEST(CallSteps, NothingIsQueuedBehindWhatIsNotKnown) {
  KernelTask task;
  task.buffers.assign(
      2, {.name = "b", .bytes = Bytes(kElements * 4), .role = BufferRole::kInOut, .shape = {}, .constant = {}});
  task.kernels = {kernel(true, 0, 1)};
  const auto session = gpu().session(task, gpu().kernels);
  const auto steps = CallSteps::create(*gpu().cuda, *session, waves(*session)).value();
  const std::vector<CUdeviceptr> addresses{gpu().base, gpu().base + kElements * 4};
  static int woken = 0;
  steps->begin_call();
  ASSERT_EQ(steps->queue(
                *gpu().lane, addresses, 10ms, [](void*) { ++woken; }, nullptr),
            CUDA_SUCCESS);
  EXPECT_EQ(steps->pieces(), 1U);
  ASSERT_TRUE(gpu().cuda->synchronize());
  EXPECT_EQ(woken, 1);
  Duration used{0};
  ASSERT_EQ(steps->look(used), CUDA_SUCCESS);
  EXPECT_FALSE(steps->is_in_flight());
  EXPECT_FALSE(steps->is_over());
  EXPECT_GT(used, 0us);
  EXPECT_EQ(steps->estimate().has_value(), true);
  steps->abandon();
}

}  // namespace
}  // namespace fairlead
