// For the driver's tests. A process is one client and cuInit happens once, so every test runs in a process of its own:
// the test program starts itself again with the name of the scenario (driver_main_test.cc).
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <string>

#include "softgpu/device/testing.h"
#include "softgpu/driver/api.h"

namespace softgpu::testing {

// A named piece of work for a fresh process.
struct Scenario {
  Scenario(const char* name, void (*body)());
};

// Where a scenario that ends its process itself writes 'p' when it has passed.
inline constexpr int kReportFile = 198;

// Starts this program again to run the scenario. The process waits to be killed once its body has run.
class Fresh {
 public:
  explicit Fresh(const std::string& scenario);
  ~Fresh();
  Fresh(const Fresh&) = delete;
  Fresh& operator=(const Fresh&) = delete;
  // True when the body ran to its end without a failed expectation.
  bool ran() const { return ran_; }
  int pid() const { return pid_; }
  void kill();
  // Waits for the process to exit by itself; what waitpid says.
  int wait();

 private:
  int pid_ = 0;
  bool ran_ = false;
};

// cuInit and a primary context, current on this thread.
CUcontext use_device();

// The module of kernels the tests use, loaded; a function of it.
CUmodule test_module();
CUfunction test_function(const char* name);

// Launches a test kernel.
CUresult run_kernel(const char* name, void** parameters, CUstream stream = nullptr, unsigned grid = 1,
                    unsigned block = 1);

CUstream make_stream(unsigned flags);
// `count` words of device memory, all zero.
CUdeviceptr make_words(std::size_t count);
unsigned word_at(CUdeviceptr address);
std::size_t free_bytes();
// Adds 1 to the word in a kernel; the result of the launch, else of the wait for it.
CUresult add_one(CUdeviceptr word);
// words[i] = i for the first `count`, on the stream.
CUresult store_index(CUdeviceptr words, unsigned count, CUstream stream);

// A word of pinned memory that a kernel waits for (wait_flag), and one that it sets when it begins: keeps a stream busy
// for as long as a test wants.
struct Gate {
  Gate();
  CUresult close(CUstream stream);
  void open() { word[0].store(1); }
  // Returns when the kernel runs.
  void wait_until_closed() const;
  std::atomic<unsigned>* word = nullptr;
  CUdeviceptr address = 0;
};

extern const char kTestPtx[];

}  // namespace softgpu::testing

// A test whose body runs in a fresh process with a 256 MiB device (scale 64 of 16 GiB).
#define DRIVER_TEST(suite, name) DRIVER_TEST_IN(suite, name, (softgpu::testing::Environment{}))
#define DRIVER_TEST_IN(suite, name, environment)                                                       \
  void suite##_##name##_body();                                                                        \
  const softgpu::testing::Scenario suite##_##name##_scenario(#suite "." #name, suite##_##name##_body); \
  TEST(suite, name) {                                                                                  \
    softgpu::testing::Environment all = {{"SOFTGPU_MEMORY_SCALE", "64"}};                              \
    for (const auto& [key, value] : environment) all[key] = value;                                     \
    const softgpu::testing::TemporaryHome home(all);                                                   \
    EXPECT_TRUE(softgpu::testing::Fresh(#suite "." #name).ran());                                      \
  }                                                                                                    \
  void suite##_##name##_body()
