// Runs one PTX instruction sequence on 32 lanes of given inputs: for tests of instruction families against references
// in C++.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <type_traits>
#include <vector>

#include "softgpu/ptx/test_device.h"

namespace softgpu::ptx::testing {

inline constexpr std::size_t kEvaluated = 32;

template <class T>
std::string storage_type() {
  if constexpr (std::is_same_v<T, float>) return "f32";
  if constexpr (std::is_same_v<T, double>) return "f64";
  return "b" + std::to_string(8 * sizeof(T));
}

inline std::string header() {
  return ".version 7.5\n.target sm_75\n.address_size 64\n";
}

// Loads a module that must load.
inline std::unique_ptr<Module> load_or_fail(const std::string& text, TestDevice& device,
                                            std::function<void(std::string_view)> print = nullptr) {
  LoadResult result = load_module(text, device, std::move(print));
  EXPECT_NE(result.module, nullptr) << "line " << result.error.line << ": " << result.error.message;
  return std::move(result.module);
}

// The error of a module that must not load.
inline LoadError load_error(const std::string& text) {
  TestDevice device;
  LoadResult result = load_module(text, device, nullptr);
  EXPECT_EQ(result.module, nullptr);
  return result.error;
}

// A kernel that hangs is a failed test.
constexpr std::uint64_t kLongestLaunchNs = 60'000'000'000;

template <class... T>
Outcome run_kernel(const Module& module, const TestDevice& device, const char* name, Dim3 grid, Dim3 block,
                   T... values) {
  const Kernel* kernel = module.kernel(name);
  if (kernel == nullptr) {
    ADD_FAILURE() << "no kernel " << name;
    return {};
  }
  const auto arguments = pack_arguments(kernel->info(), values...);
  Launch launch;
  launch.grid = grid;
  launch.block = block;
  launch.parameters = arguments;
  const std::atomic<std::uint64_t> deadline = now_ns() + kLongestLaunchNs;
  launch.deadline_ns = &deadline;
  return kernel->run(device, launch);
}

// `body` computes %out from %in0, %in1, ...; it may use %p0-%p7, %r0-%r15, %d0-%d15 (64 bits), %h0-%h7 (16 bits),
// %f0-%f7 and %q0-%q3 (128 bits). It runs in one block of `count` threads; inputs are repeated to fill them.
template <class Result, class... Input>
std::vector<Result> evaluate_threads(std::size_t count, const std::string& body, const std::vector<Input>&... inputs) {
  std::string parameters = ".param .u64 result", declarations, loads;
  int index = 0;
  const auto declare = [&](const std::string& type, std::size_t bytes) {
    const std::string n = std::to_string(index++);
    parameters += ", .param .u64 input" + n;
    declarations += ".reg ." + type + " %in" + n + ";\n";
    loads += "ld.param.u64 %address, [input" + n + "];\nmad.lo.u64 %address, %lane, " + std::to_string(bytes) +
             ", %address;\nld.global." + type + " %in" + n + ", [%address];\n";
  };
  (declare(storage_type<Input>(), sizeof(Input)), ...);
  const std::string type = storage_type<Result>();
  const std::string text = header() + ".visible .entry k(" + parameters + ") {\n.reg ." + type +
                           " %out; .reg .b64 %address, %lane; .reg .b32 %lane32;\n"
                           ".reg .pred %p<8>; .reg .b32 %r<16>; .reg .b64 %d<16>; .reg .b16 %h<8>; .reg .f32 %f<8>;\n"
                           ".reg .b128 %q<4>;\n" +
                           declarations + "mov.u32 %lane32, %tid.x;\ncvt.u64.u32 %lane, %lane32;\n" + loads + body +
                           "\nld.param.u64 %address, [result];\nmad.lo.u64 %address, %lane, " +
                           std::to_string(sizeof(Result)) + ", %address;\nst.global." + type +
                           " [%address], %out;\nret;\n}\n";
  TestDevice device;
  const auto module = load_or_fail(text, device);
  if (module == nullptr) return std::vector<Result>(count);
  const auto upload = [&](auto values) {
    const std::size_t given = values.size();
    for (std::size_t i = 0; values.size() < count; ++i) values.push_back(values[i % given]);
    return device.upload(values);
  };
  const std::uint64_t result = device.allocate(count * sizeof(Result));
  const Outcome outcome =
      run_kernel(*module, device, "k", {1}, {static_cast<unsigned>(count)}, result, upload(inputs)...);
  EXPECT_EQ(outcome.fault, FaultKind::kNone) << outcome.fault_detail;
  return device.download<Result>(result, count);
}

// The same for the 32 lanes of a warp.
template <class Result, class... Input>
std::vector<Result> evaluate(const std::string& body, const std::vector<Input>&... inputs) {
  return evaluate_threads<Result>(kEvaluated, body, inputs...);
}

}  // namespace softgpu::ptx::testing
