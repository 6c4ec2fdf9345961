// Kernels that nobody meant: the compiled test kernels with tokens swapped, doubled, dropped or replaced. Each must be
// refused, or run without touching anything but its device, whatever it computes. Most useful under the sanitizers.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <random>

#include "softgpu/ptx/ptx_evaluator.h"

#ifdef SOFTGPU_PTX_TESTDATA
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

// One function of the module: its share of the tokens that change is larger.
std::vector<std::string> sources() {
  std::ifstream file(SOFTGPU_PTX_TESTDATA "/kernels.ptx");
  const std::string text(std::istreambuf_iterator<char>(file), {});
  const std::size_t preamble = text.find(".address_size 64") + 17;
  std::vector<std::string> functions;
  for (std::size_t at = text.find(".entry"); at != std::string::npos;) {
    const std::size_t next = text.find(".entry", at + 1);
    functions.push_back(text.substr(0, preamble) + text.substr(at, next == std::string::npos ? next : next - at - 9));
    at = next;
  }
  return functions;
}

TEST(Mutations, AreRefusedOrRunSafely) {
  std::mt19937 random(20240607);
  std::size_t loaded = 0;
  for (const std::string& source : sources()) {
    const auto tokens = tokens_of(source);
    for (int i = 0; i < 60; ++i) {
      TestDevice device;
      const LoadResult result = load_module(mutated(tokens, random), device, nullptr);
      if (result.module == nullptr) {
        EXPECT_FALSE(result.error.message.empty());
        continue;
      }
      for (const std::string& name : result.module->kernel_names()) {
        const Kernel& kernel = *result.module->kernel(name);
        const auto buffer = device.upload(std::vector<int>(1024));
        std::vector<std::byte> arguments(kernel.info().parameter_bytes);
        for (const Parameter& parameter : kernel.info().parameters) {
          const std::uint64_t value = parameter.size == 8 ? buffer : 16;
          std::memcpy(arguments.data() + parameter.offset, &value, std::min<std::size_t>(8, parameter.size));
        }
        Launch launch;
        launch.grid = {2};
        launch.block = {48};
        launch.parameters = arguments;
        launch.deadline_ns = now_ns() + 2'000'000;
        kernel.run(device, launch);
        ++loaded;
      }
    }
  }
  EXPECT_GT(loaded, 20u) << "mutations that never load test nothing";
}

}  // namespace
}  // namespace softgpu::ptx
#endif
