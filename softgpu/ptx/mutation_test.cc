// Kernels that nobody meant: test kernels with tokens swapped, doubled, dropped or replaced. Each must be refused, or run
// without touching anything but its device, whatever it computes. Most useful under the sanitizers.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <random>

#include "softgpu/ptx/ptx_evaluator.h"

namespace softgpu::ptx {
namespace {

using testing::now_ns;
using testing::TestDevice;

std::vector<std::string> tokens_of(const std::string& text) {
  std::vector<std::string> tokens;
  const auto is_word = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '%' || c == '$';
  };
  for (const char c : text) {
    const bool joins = !tokens.empty() && is_word(c) && is_word(tokens.back().back());
    if (joins) tokens.back() += c;
    if (!joins) tokens.emplace_back(1, c);
  }
  return tokens;
}

std::string mutated(std::vector<std::string> tokens, std::mt19937& random) {
  const auto pick = [&] { return random() % tokens.size(); };
  const int changes = 1 + static_cast<int>(random() % 3);
  for (int i = 0; i < changes; ++i) {
    switch (random() % 4) {
      case 0: std::swap(tokens[pick()], tokens[pick()]); break;
      case 1: tokens[pick()] = tokens[pick()]; break;
      case 2: tokens.erase(tokens.begin() + static_cast<std::ptrdiff_t>(pick())); break;
      default: tokens[pick()] = std::to_string(random()); break;
    }
  }
  std::string text;
  for (const std::string& token : tokens) text += token;
  return text;
}

// The text cut into modules of one kernel each: what lies before all kernels, and one of them with what follows it. So
// the kernel's share of the tokens that change is large.
std::vector<std::string> cut_into_kernels(const std::string& path) {
  constexpr std::string_view kEntry = ".visible .entry";
  std::ifstream file(path);
  const std::string text(std::istreambuf_iterator<char>(file), {});
  const std::size_t first = text.find(kEntry);
  std::vector<std::string> kernels;
  for (std::size_t at = first; at != std::string::npos;) {
    const std::size_t next = text.find(kEntry, at + 1);
    kernels.push_back(text.substr(0, first) + text.substr(at, next - at));
    at = next;
  }
  return kernels;
}

// One texture and surface object: the handle is the address of its elements.
class OneTexture final : public TextureTable {
 public:
  explicit OneTexture(std::uint64_t address) { texture_.base = address; }
  bool find_texture(std::uint64_t handle, TextureDescription& out) const override {
    out = texture_;
    return handle == texture_.base;
  }
  bool find_surface(std::uint64_t handle, TextureDescription& out) const override { return find_texture(handle, out); }

 private:
  TextureDescription texture_{.width = 8, .height = 8, .depth = 4, .pitch_bytes = 32, .slice_bytes = 256};
};

// Every parameter of 8 bytes is the address of a buffer, every other is 16.
void run_all_kernels(const Module& module, TestDevice& device) {
  const auto buffer = device.upload(std::vector<int>(1024));
  const OneTexture texture(buffer);
  for (const std::string& name : module.kernel_names()) {
    const Kernel& kernel = *module.kernel(name);
    std::vector<std::byte> arguments(kernel.info().parameter_bytes);
    for (const Parameter& parameter : kernel.info().parameters) {
      const std::uint64_t value = parameter.size == 8 ? buffer : 16;
      std::memcpy(arguments.data() + parameter.offset, &value, std::min<std::size_t>(8, parameter.size));
    }
    Launch launch;
    launch.grid = {2};
    launch.block = {48};
    launch.parameters = arguments;
    launch.textures = &texture;
    const std::atomic<std::uint64_t> deadline = now_ns() + 2'000'000;
    launch.deadline_ns = &deadline;
    kernel.run(device, launch);
  }
}

struct Counts {
  int loaded = 0;
  int refused = 0;
};

Counts run_mutants(const std::string& source, int count, std::mt19937& random) {
  const auto tokens = tokens_of(source);
  Counts counts;
  for (int i = 0; i < count; ++i) {
    TestDevice device;
    device.set_heap_bytes(4096);
    device.set_room(1 << 20);
    const LoadResult result = load_module(mutated(tokens, random), device, [](std::string_view) {});
    if (result.module != nullptr) {
      run_all_kernels(*result.module, device);
      ++counts.loaded;
    } else {
      EXPECT_FALSE(result.error.message.empty());
      ++counts.refused;
    }
  }
  return counts;
}

// How many mutants of each kernel; $SOFTGPU_MUTANTS for a longer run.
int mutant_count() {
  const char* count = std::getenv("SOFTGPU_MUTANTS");
  return count != nullptr ? std::atoi(count) : 60;
}

void expect_safe(const std::string& path) {
  std::mt19937 random(20240607);
  Counts all;
  for (const std::string& source : cut_into_kernels(path)) {
    const Counts counts = run_mutants(source, mutant_count(), random);
    all.loaded += counts.loaded;
    all.refused += counts.refused;
  }
  EXPECT_GT(all.loaded, 20) << "mutations that never load test nothing";
  EXPECT_GT(all.refused, 20);
}

TEST(Mutations, OfInstructionFamiliesAreRefusedOrRunSafely) {
  const std::string path = SOFTGPU_PTX_SOURCE "/softgpu/ptx/testdata/families.ptx";
  for (const std::string& source : cut_into_kernels(path)) {
    TestDevice device;
    const auto module = testing::load_or_fail(source, device);
    ASSERT_NE(module, nullptr) << "what cannot load makes no good mutants";
    run_all_kernels(*module, device);
  }
  expect_safe(path);
}

#ifdef SOFTGPU_PTX_TESTDATA
TEST(Mutations, OfCompiledKernelsAreRefusedOrRunSafely) {
  expect_safe(SOFTGPU_PTX_TESTDATA "/kernels.ptx");
}
#endif

}  // namespace
}  // namespace softgpu::ptx
