// Kernels in ranges of blocks compute, byte for byte, what they compute in one launch: the repository's, and one that says where each of its
// blocks is, on grids of all shapes.
#include "gpu/fence/block_ranges.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <numeric>
#include <set>

#include "gpu/fence/fence.h"
#include "gpu/fence/ptx.h"
#include "gpu/fence/testing/gpu.h"
#include "gpu/fence/testing/verified.h"

namespace fairlead::fence {
namespace {

using testing::Driver;
using testing::kMiB;
using testing::Neighbourhood;
using Grid = std::array<std::uint32_t, 3>;

constexpr std::uint64_t kBytes = 2 * kMiB;
constexpr unsigned kThreads = 32, kShared = 16384;

std::uint64_t blocks_of(const Grid& grid) {
  return std::uint64_t{grid[0]} * grid[1] * grid[2];
}

// A kernel of a module in a context of its own. Each parameter is a pointer into memory of its own, or the number 16.
class Launcher {
 public:
  Launcher(const std::string& ptx, const std::string& kernel, std::uint64_t own) : own_(own) {
    driver_.check(driver_.cuCtxCreate_v2(&context_, 0, 0), "cuCtxCreate");
    driver_.check(driver_.cuModuleLoadData(&module_, ptx.c_str()), "cuModuleLoadData");
    driver_.check(driver_.cuModuleGetFunction(&function_, module_, kernel.c_str()), "cuModuleGetFunction");
    std::size_t offset = 0, bytes = 0;
    for (std::size_t i = 0; driver_.cuFuncGetParamInfo(function_, i, &offset, &bytes) == CUDA_SUCCESS; ++i) {
      at_.push_back(values_.size());
      values_.push_back(bytes >= 8 ? own_ + i * 128 * 1024 : 16);
      for (std::size_t filled = 8; filled < bytes; filled += 8) values_.push_back(own_ + 64 * 1024);
    }
  }
  ~Launcher() { driver_.cuCtxDestroy_v2(context_); }
  Launcher(const Launcher&) = delete;
  Launcher& operator=(const Launcher&) = delete;

  CUresult whole(const Grid& grid, unsigned threads = kThreads) { return launch(grid, threads, nullptr); }
  // The function is a twin.
  CUresult range(const Grid& grid, std::uint64_t first, std::uint64_t count, unsigned threads = kThreads) {
    RangeWords words = range_words(grid, first);
    return launch({static_cast<std::uint32_t>(count), 1, 1}, threads, &words);
  }

 private:
  CUresult launch(const Grid& grid, unsigned threads, RangeWords* words) {
    std::vector<void*> pointers;
    for (const std::size_t at : at_) pointers.push_back(&values_[at]);
    if (words != nullptr) pointers.back() = words;
    driver_.cuCtxSetCurrent(context_);
    const CUresult launched = driver_.cuLaunchKernel(function_, grid[0], grid[1], grid[2], threads, 1, 1, kShared,
                                                     nullptr, pointers.data(), nullptr);
    return launched == CUDA_SUCCESS ? driver_.cuCtxSynchronize() : launched;
  }

  const Driver& driver_ = Driver::instance();
  const std::uint64_t own_;
  CUcontext context_ = nullptr;
  CUmodule module_ = nullptr;
  CUfunction function_ = nullptr;
  std::vector<std::size_t> at_;  // of each parameter in values_
  std::vector<std::uint64_t> values_;
};

std::string text_of_file(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Words that are small as integers and as floats.
std::vector<std::uint32_t> contents() {
  std::vector<std::uint32_t> words(kBytes / 4);
  std::uint32_t state = 1;
  for (std::uint32_t& word : words) {
    state = state * 1664525 + 1013904223;
    word = (state >> 28) % 2 == 0 ? (state >> 29) : 0x3f800000 + (state >> 27);
  }
  return words;
}

std::vector<std::string> entries_of(const std::string& ptx) {
  std::vector<std::string> names;
  const Result<Module> module = parse_ptx(ptx);
  if (!module) return names;
  for (const Function& function : module->functions) {
    if (function.is_entry && function.has_body) names.emplace_back(function.name);
  }
  return names;
}

// A clock's value, and sums that blocks make without atomics, are no results of a kernel; a block that waits for another has no order.
const std::set<std::string> kHaveNoResult = {"clocks", "wait_for_flag", "bump"};

class RangesTest : public ::testing::TestWithParam<std::string> {
 protected:
  struct Outcome {
    CUresult result = CUDA_SUCCESS;
    std::vector<std::uint8_t> memory;
  };

  void begin() {
    static const std::vector<std::uint32_t> start = contents();
    memory_.write(memory_.own(), start.data(), kBytes);
    memory_.write(options_.variables_address, variables_.data(), variables_.size());
  }
  Outcome whole(const std::string& ptx, const std::string& kernel, const Grid& grid) {
    begin();
    Launcher launcher(ptx, kernel, memory_.own());
    const CUresult result = launcher.whole(grid);
    return {result, memory_.read(memory_.own(), kBytes)};
  }
  Outcome in_ranges(const std::string& ptx, const std::string& kernel, const Grid& grid) {
    begin();
    Launcher launcher(ptx, twin_of(kernel), memory_.own());
    Outcome out;
    const std::uint64_t blocks = blocks_of(grid);
    for (std::uint64_t first = 0, length = 1; first < blocks && out.result == CUDA_SUCCESS; first += length++) {
      length = std::min(length, blocks - first);
      out.result = launcher.range(grid, first, length);
    }
    out.memory = memory_.read(memory_.own(), kBytes);
    return out;
  }
  // Whether there was something to compare. Blocks may read what others write, since parameters overlap: the driver of this test executes
  // the blocks of a launch one after another (testing/gpu.h), so that one launch has one result.
  bool compare(const std::string& ptx, const std::string& kernel, const Grid& grid) {
    const Outcome one = whole(ptx, kernel, grid);
    if (one.result != CUDA_SUCCESS) return false;  // it wants other input
    const Outcome cut = in_ranges(ptx, kernel, grid);
    EXPECT_EQ(cut.result, CUDA_SUCCESS) << kernel;
    EXPECT_TRUE(cut.result != CUDA_SUCCESS || cut.memory == one.memory) << kernel << " differs";
    return true;
  }

  Neighbourhood memory_;
  FenceOptions options_{
      .base = memory_.own(), .bytes = Neighbourhood::kRange, .variables_address = memory_.own() + kBytes};
  std::vector<std::byte> variables_;
};

TEST_P(RangesTest, ComputeTheSame) {
  const std::string ptx = text_of_file(GetParam());
  ASSERT_FALSE(ptx.empty());
  const std::vector<std::string> entries = entries_of(ptx);
  const Result<RangedModule> ranged = add_ranges(ptx, entries);
  ASSERT_TRUE(ranged) << ranged.error().message;
  const Result<FencedModule> fenced = fence_ptx(ranged->ptx, options_);
  ASSERT_TRUE(fenced) << fenced.error().message;
  EXPECT_EQ(testing::fault_of(fenced->ptx, options_), "");
  variables_ = fenced->variables;
  int twins = 0, compared = 0;
  for (const RangedKernel& kernel : ranged->kernels) {
    if (!kernel.why_whole.empty() || kHaveNoResult.contains(kernel.name)) continue;
    ++twins;
    compared += compare(fenced->ptx, kernel.name, {3, 2, 2}) ? 1 : 0;
  }
  // Products want descriptions of matrices: runtime/device_server/call_steps_test.cc has them.
  const bool wants_other_input = GetParam().ends_with("/gemm.ptx");
  EXPECT_GE(compared, wants_other_input ? 0 : twins / 2) << "most kernels fault on this input, so little was compared";
}

std::vector<std::string> files() {
  std::vector<std::string> all{FENCE_PTX_FILES};
  for (const auto& entry : std::filesystem::directory_iterator(FENCE_LIBRARY)) {
    if (entry.path().extension() == ".ptx") all.push_back(entry.path());
  }
  std::ranges::sort(all);
  return all;
}

std::string test_name(const ::testing::TestParamInfo<std::string>& info) {
  const std::filesystem::path path(info.param);
  std::string name = path.parent_path().filename().string() + "_" + path.stem().string();
  std::ranges::replace_if(
      name, [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; }, '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Fence, RangesTest, ::testing::ValuesIn(files()), test_name);

// Each block writes where it is, and how large the grid is, behind those before it; and how often it ran.
constexpr char kWhere[] = R"(.version 7.1
.target sm_80
.address_size 64
.visible .entry where(.param .u64 out)
{
  .reg .b32 %r<9>; .reg .b64 %rd<6>;
  ld.param.u64 %rd1, [out];
  mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ctaid.y; mov.u32 %r3, %ctaid.z;
  mov.u32 %r4, %nctaid.x; mov.u32 %r5, %nctaid.y; mov.u32 %r6, %nctaid.z;
  mad.lo.u32 %r7, %r3, %r5, %r2; mad.lo.u32 %r7, %r7, %r4, %r1;
  mul.wide.u32 %rd2, %r7, 16; add.u64 %rd3, %rd1, %rd2;
  st.global.u32 [%rd3], %r1;
  mad.lo.u32 %r8, %r3, 65536, %r2; st.global.u32 [%rd3+4], %r8;
  mad.lo.u32 %r8, %r6, 65537, %r5; mad.lo.u32 %r8, %r8, 65537, %r4; st.global.u32 [%rd3+8], %r8;
  red.global.add.u32 [%rd3+12], 1;
  ret;
})";
constexpr std::uint32_t kMostRuns = kBytes / 16;  // blocks that find room
const std::vector<std::string> kWhereName{"where"};

struct Where {
  Where() : ranged(add_ranges(kWhere, kWhereName).value()) {}
  std::vector<std::uint8_t> memory_after(const auto& launch) {
    memory.fill(memory.own(), 0, kBytes);
    launch();
    return memory.read(memory.own(), kBytes);
  }
  Neighbourhood memory;
  RangedModule ranged;
  Launcher whole{ranged.ptx, "where", memory.own()};
  Launcher twin{ranged.ptx, twin_of("where"), memory.own()};
};

Where& where() {
  static Where shared;
  return shared;
}

// One side or two are as long as they may be, or all are short.
Grid random_grid() {
  const auto at_most = [](std::uint64_t most, std::uint64_t limit) {
    const auto bound = static_cast<std::uint32_t>(std::max<std::uint64_t>(1, std::min(most, limit)));
    return *rc::gen::weightedOneOf<std::uint32_t>(
        {{1, rc::gen::just(bound)}, {1, rc::gen::just(1U)}, {2, rc::gen::inRange<std::uint32_t>(1, bound + 1)}});
  };
  const std::uint64_t blocks = *rc::gen::element<std::uint64_t>(12, 700, 65535, kMostRuns);
  Grid grid{};
  std::array<int, 3> order{0, 1, 2};
  std::swap(order[0], order[*rc::gen::inRange(0, 3)]);
  std::swap(order[1], order[*rc::gen::inRange(1, 3)]);
  std::uint64_t left = blocks;
  for (const int axis : order) {
    grid[axis] = at_most(left, axis == 0 ? kMostRuns : 65535);
    left /= grid[axis];
  }
  return grid;
}

RC_GTEST_PROP(Ranges, OfAnyGridAndAnyLengthsRunEachBlockOnceInItsPlace, ()) {
  const Grid grid = random_grid();
  const std::uint64_t blocks = blocks_of(grid);
  RC_ASSERT(blocks <= kMostRuns);
  // Cuts anywhere, in any order of the ranges between them.
  std::vector<std::uint64_t> cuts = *rc::gen::container<std::vector<std::uint64_t>>(
      *rc::gen::inRange<std::size_t>(0, 12), rc::gen::inRange<std::uint64_t>(0, blocks));
  cuts.push_back(0), cuts.push_back(blocks);
  std::ranges::sort(cuts);
  cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
  std::vector<std::size_t> order(cuts.size() - 1);
  std::iota(order.begin(), order.end(), 0);
  if (*rc::gen::arbitrary<bool>()) std::ranges::reverse(order);
  const auto whole = where().memory_after([&] { RC_ASSERT(where().whole.whole(grid, 1) == CUDA_SUCCESS); });
  const auto cut = where().memory_after([&] {
    for (const std::size_t i : order) {
      RC_ASSERT(where().twin.range(grid, cuts[i], cuts[i + 1] - cuts[i], 1) == CUDA_SUCCESS);
    }
  });
  RC_ASSERT(whole == cut);
}

TEST(Ranges, WordsSayWhereTheFirstBlockIs) {
  EXPECT_EQ(range_words({5, 3, 1}, 8).first, (Grid{3, 1, 0}));
  EXPECT_EQ(range_words({5, 3, 1}, 8).grid, (Grid{5, 3, 1}));
  EXPECT_EQ(range_words({2147483647, 65535, 65535}, std::uint64_t{2147483647} * 65535 * 65535 - 1).first,
            (Grid{2147483646, 65534, 65534}));
  EXPECT_EQ(range_words({1, 1, 65535}, 65534).first, (Grid{0, 0, 65534}));
}

std::string why_whole(const std::string& body, const std::string& more = "", const std::string& directives = "") {
  const std::string ptx = ".version 7.8\n.target sm_90\n.address_size 64\n" + more +
                          ".visible .entry k(.param .u64 p)" + directives +
                          "\n{\n.reg .b32 %r<9>;\n.reg .b64 %rd<9>;\n.reg .pred %p<9>;\n" + body + "ret;\n}\n";
  const std::vector<std::string> names{"k"};
  const auto ranged = add_ranges(ptx, names);
  if (!ranged) return ranged.error().message;
  EXPECT_EQ(ranged->ptx.substr(0, ptx.size()), ptx) << "the source stays";
  EXPECT_EQ(ranged->has_twins(), ranged->kernels[0].why_whole.empty());
  return ranged->kernels[0].why_whole;
}

std::string loop(const std::string& body) {
  return "L:\n" + body + "setp.ne.u32 %p1, %r1, 0;\n@%p1 bra L;\n";
}

TEST(Ranges, WhatIsSaidOfKernelsThatAreWhole) {
  const std::vector<std::pair<std::string, std::string>> all = {
      {"mov.u32 %r1, %clusterid.x;\n", "clusters"},
      {"mov.u32 %r1, %cluster_ctarank;\n", "clusters"},
      {"mov.u32 %r1, %envreg2;\n", "grid that synchronises"},
      {"mov.u64 %rd1, %gridid;\n", "tells launches"},
      {"barrier.cluster.arrive;\n", "clusters"},
      {"mapa.u64 %rd1, %rd2, %r1;\n", "clusters"},
      {"griddepcontrol.wait;\n", "another launch"},
      {"mov.u16 %r1, %ctaid.x;\n", "in a way that is not known"},
      {"add.u32 %r1, %ctaid.x, 1;\n", "in a way that is not known"},
      {loop("ld.volatile.global.u32 %r1, [%rd1];\n"), "'ld' in a loop may wait"},
      {loop("ld.relaxed.gpu.u32 %r1, [%rd1];\n"), "'ld' in a loop may wait"},
      {loop("ld.acquire.gpu.global.u32 %r1, [%rd1];\n"), "'ld' in a loop may wait"},
      {loop("ld.global.cg.u32 %r1, [%rd1];\n"), "'ld' in a loop may wait"},
      {loop("atom.global.add.u32 %r1, [%rd1], 0;\n"), "'atom' in a loop may wait"},
      {loop("atom.cas.b32 %r1, [%rd1], 0, 1;\n"), "'atom' in a loop may wait"},
      {loop("membar.gl;\nld.global.u32 %r1, [%rd1];\n"), "'membar' in a loop may wait"},
      {loop("fence.acq_rel.gpu;\nld.global.u32 %r1, [%rd1];\n"), "'fence' in a loop may wait"},
      {loop("nanosleep.u32 64;\n"), "'nanosleep' in a loop may wait"},
  };
  for (const auto& [body, words] : all)
    EXPECT_NE(why_whole(body).find(words), std::string::npos) << body << why_whole(body);
  const std::string watches =
      ".func f(.param .u64 q)\n{\n.reg .b32 %r<2>;\n.reg .b64 %rd<2>;\nld.param.u64 %rd1, [q];\n"
      "ld.volatile.global.u32 %r1, [%rd1];\nret;\n}\n";
  const std::string asks = ".func f(.param .u64 q)\n{\n.reg .b32 %r<2>;\nmov.u32 %r1, %ctaid.x;\nret;\n}\n";
  const std::string calls = "{\n.param .b64 a;\nst.param.b64 [a], %rd1;\ncall f, (a);\n}\n";
  EXPECT_NE(why_whole(calls, watches).find("'f', which it calls, may wait"), std::string::npos);
  EXPECT_NE(why_whole(calls, asks).find("'f', which it calls, reads its block's place"), std::string::npos);
  EXPECT_NE(why_whole("", "", " .explicitcluster").find("clusters"), std::string::npos);
  EXPECT_NE(why_whole(".global .align 4 .b32 mine;\n").find("declares variables"), std::string::npos);
  EXPECT_NE(why_whole("", ".func __cut_mine()\n{\nret;\n}\n").find("__cut_"), std::string::npos);
}

TEST(Ranges, AreForKernelsThatWaitForNobody) {
  for (const std::string& body :
       {std::string(), loop("ld.global.u32 %r1, [%rd1];\n"), loop("bar.sync 0;\n"), loop("membar.cta;\n"),
        loop("red.global.add.u32 [%rd1], 1;\n"), loop("ld.volatile.shared.u32 %r1, [%r2];\n"),
        loop("atom.shared.add.u32 %r1, [%r2], 1;\n"), loop("atom.global.add.u32 _, [%rd1], 1;\n"),
        std::string("atom.global.inc.u32 %r1, [%rd1], 7;\nmembar.gl;\n"),  // who is last does the rest
        std::string("cvt.u64.u32 %rd1, %ctaid.y;\nmov.u32 %r1, %nctaid.z;\n")}) {
    EXPECT_EQ(why_whole(body), "") << body;
  }
}

TEST(Ranges, AreOfKernelsThatThereAre) {
  const std::vector<std::string> names{"where", "nobody", "where"};
  const auto ranged = add_ranges(kWhere, names);
  ASSERT_TRUE(ranged);
  EXPECT_EQ(ranged->kernels[0].why_whole, "");
  EXPECT_EQ(ranged->kernels[1].why_whole, "it is no entry of the module");
  EXPECT_EQ(entries_of(ranged->ptx), (std::vector<std::string>{"where", twin_of("where")})) << "once";
  EXPECT_FALSE(add_ranges("no PTX", names));
  EXPECT_FALSE(add_ranges(ranged->ptx, names)) << "not twice";
}

}  // namespace
}  // namespace fairlead::fence
