// What the eight sample functions share: a program that can serve the Runtime API, answer one request from the command
// line, or test its kernels against a host reference.
//
// Environment: FUNCTION_MEMORY_MIB, device memory to hold besides the weights (default 16); FUNCTION_INIT_PAUSE_MS, a
// pause at initialisation that stands for loading a framework's libraries (default 0).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "fairlead/gpu.h"
#include "fairlead/json.h"

namespace fairlead::sample {

// Collects the outcome of a self-test; prints one line per check.
class SelfTest {
 public:
  // Passes when every |actual - expected| <= tolerance x (the largest |expected|, at least 1).
  void compare(const std::string& what, const std::vector<float>& actual, const std::vector<float>& expected,
               double tolerance);
  void compare_exact(const std::string& what, const std::vector<int>& actual, const std::vector<int>& expected);
  void expect(const std::string& what, bool passed, const std::string& detail);
  bool passed() const { return checks_ > 0 && failures_ == 0; }

 private:
  int checks_ = 0;
  int failures_ = 0;
};

// One function: made once, with its weights on the device, then asked many times.
class Workload {
 public:
  virtual ~Workload() = default;

  // Returns the response, a JSON object. Throws Error for parameters out of range and for GPU failures.
  virtual std::string invoke(Parameters& parameters) = 0;

  // Compares kernels with the host reference over several sizes.
  virtual void self_test(SelfTest& test) = 0;
};

using MakeWorkload = std::function<std::unique_ptr<Workload>(const Gpu&)>;

// The program: `bootstrap` serves the Runtime API, `bootstrap --once JSON` prints one response, `bootstrap --self-test`
// tests. Returns the exit status.
int workload_main(int argc, char** argv, std::string_view name, const MakeWorkload& make);

// Blocks of `per_block` threads that cover `count` items.
inline unsigned blocks(std::int64_t count, unsigned per_block) {
  return static_cast<unsigned>((count + per_block - 1) / per_block);
}

// Sum of all values in double, the checksum of the responses.
double checksum(const std::vector<float>& values);

}  // namespace fairlead::sample
