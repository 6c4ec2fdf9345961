// The repository's kernels compute the same when they are fenced: on the same memory, byte for byte. Left out are files
// whose kernels wait for each other, which never ends on input that is not theirs.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "gpu/fence/fence.h"
#include "gpu/fence/testing/gpu.h"
#include "gpu/fence/testing/leftover_checker.h"
#include "gpu/fence/testing/verified.h"

namespace fairlead::fence {
namespace {

using testing::kMiB;
using testing::Neighbourhood;

std::string text_of_file(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Words that are small as integers and as floats, in every buffer the same.
std::vector<std::uint32_t> contents() {
  std::vector<std::uint32_t> words(2 * kMiB / 4);
  std::uint32_t state = 1;
  for (std::uint32_t& word : words) {
    state = state * 1664525 + 1013904223;
    word = (state >> 28) % 2 == 0 ? (state >> 29) : 0x3f800000 + (state >> 27);
  }
  return words;
}

// Some kernels read shared memory that they never wrote when their block is smaller than they expect. So it is cleared,
// but on another of the software GPU's threads it may be another block's: only a difference that persists counts.
constexpr int kAttempts = 10;
constexpr char kClearShared[] = R"(.version 7.1
.target sm_80
.address_size 64
.visible .entry clear() {
  .reg .b32 %at, %zero; .reg .pred %p;
  .shared .align 16 .b8 all[49152];
  mov.u32 %at, all;
  mov.u32 %zero, 0;
NEXT:
  st.shared.u32 [%at], %zero;
  add.u32 %at, %at, 4;
  setp.lt.u32 %p, %at, 49152;
  @%p bra NEXT;
  ret;
})";

// Each parameter: a pointer into a buffer of its own, or the number 16.
std::vector<std::uint64_t> parameters_of(CUfunction function, std::uint64_t own) {
  const testing::Driver& driver = testing::Driver::instance();
  std::vector<std::uint64_t> parameters;
  std::size_t offset = 0, bytes = 0;
  for (std::size_t i = 0; driver.cuFuncGetParamInfo(function, i, &offset, &bytes) == CUDA_SUCCESS; ++i) {
    parameters.push_back(bytes >= 8 ? own + i * 128 * 1024 : 16);
    for (std::size_t filled = 8; filled < bytes; filled += 8) parameters.push_back(own + 64 * 1024);
  }
  return parameters;
}

struct Outcome {
  CUresult result = CUDA_SUCCESS;
  std::vector<std::uint8_t> memory;
};

class DifferentialTest : public ::testing::TestWithParam<const char*> {
 protected:
  // Parameters over 8 bytes are laid out word by word, so they take the place of several.
  Outcome run(const std::string& ptx, const std::string& kernel) {
    const testing::Driver& driver = testing::Driver::instance();
    static const std::vector<std::uint32_t> start = contents();
    memory_.write(memory_.own(), start.data(), 2 * kMiB);
    memory_.run(kClearShared, "clear", {}, 1);
    CUcontext context = nullptr;
    CUmodule module = nullptr;
    CUfunction function = nullptr;
    driver.check(driver.cuCtxCreate_v2(&context, 0, 0), "cuCtxCreate");
    driver.check(driver.cuModuleLoadData(&module, ptx.c_str()), "cuModuleLoadData");
    driver.check(driver.cuModuleGetFunction(&function, module, kernel.c_str()), "cuModuleGetFunction");
    std::vector<std::uint64_t> values = parameters_of(function, memory_.own());
    std::vector<void*> pointers;
    std::size_t offset = 0, bytes = 0, at = 0;
    for (std::size_t i = 0; driver.cuFuncGetParamInfo(function, i, &offset, &bytes) == CUDA_SUCCESS; ++i) {
      pointers.push_back(&values[at]);
      at += std::max<std::size_t>(1, (bytes + 7) / 8);
    }
    Outcome out;
    out.result = driver.cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 16384, nullptr, pointers.data(), nullptr);
    if (out.result == CUDA_SUCCESS) out.result = driver.cuCtxSynchronize();
    driver.cuCtxDestroy_v2(context);
    out.memory = memory_.read(memory_.own(), 2 * kMiB);
    return out;
  }

  Neighbourhood memory_;
};

TEST_P(DifferentialTest, FencedKernelsComputeTheSame) {
  const std::string path = GetParam();
  const std::string ptx = text_of_file(path);
  ASSERT_FALSE(ptx.empty()) << path;
  const FenceOptions options{
      .base = memory_.own(), .bytes = Neighbourhood::kRange, .variables_address = memory_.own() + 2 * kMiB};
  const Result<FencedModule> fenced = fence_ptx(ptx, options);
  ASSERT_TRUE(fenced) << fenced.error().message;
  EXPECT_EQ(testing::fault_of(fenced->ptx, options), "");
  EXPECT_EQ(testing::leftover_read(fenced->ptx), "");
  int compared = 0, entries = 0;
  for (const FunctionReport& function : fenced->functions) {
    // A clock's value is no result of the kernel.
    if (!function.is_entry || function.name == "clocks" || function.name == "wait_for_flag") continue;
    ++entries;
    Outcome plain = run(ptx, function.name);
    if (plain.result != CUDA_SUCCESS) continue;  // it wants other input
    Outcome bounded;
    for (int attempt = 0; attempt < kAttempts; ++attempt) {
      if (attempt > 0) plain = run(ptx, function.name);
      memory_.write(options.variables_address, fenced->variables.data(), fenced->variables.size());
      bounded = run(fenced->ptx, function.name);
      if (bounded.memory == plain.memory) break;
    }
    EXPECT_EQ(bounded.result, CUDA_SUCCESS) << function.name;
    EXPECT_TRUE(bounded.memory == plain.memory) << function.name;
    ++compared;
  }
  EXPECT_GE(compared, entries / 2) << "most kernels fault on this input, so little was compared";
}

std::string test_name(const ::testing::TestParamInfo<const char*>& info) {
  const std::filesystem::path path(info.param);
  std::string name = path.parent_path().filename().string() + "_" + path.stem().string();
  std::ranges::replace_if(
      name, [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; }, '_');
  return name;
}

const char* const kFiles[] = {FENCE_PTX_FILES};
INSTANTIATE_TEST_SUITE_P(Fence, DifferentialTest, ::testing::ValuesIn(kFiles), test_name);

}  // namespace
}  // namespace fairlead::fence
