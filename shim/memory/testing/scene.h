// A fresh process as memory/ sees it: fake driver, surroundings, page. At its end nothing may have broken a rule.
#pragma once

#include <gtest/gtest.h>

#include "shim/memory/memory.h"
#include "shim/memory/testing/fake_driver.h"
#include "shim/memory/testing/surroundings.h"
#include "shim/page.h"

namespace fairlead::shim::testing {

inline constexpr std::size_t kMiB = std::size_t{1} << 20;

struct Scene {
  struct Options {
    wire::MemoryBackend backend = wire::MemoryBackend::kVmm;
    wire::UvmMode uvm = wire::UvmMode::kPrefetchSwap;
    std::size_t device_bytes = 64 * kMiB;
    std::size_t arena_bytes = 64 * kMiB;  // 0: none
  };

  explicit Scene(const Options& options) : driver(options.device_bytes) {
    begin_page();
    if (options.arena_bytes != 0) around.make_arena(options.arena_bytes);
    memory::set_up({options.backend, options.uvm, around.take_arena(), around.arena_bytes});
  }
  ~Scene() {
    for (const std::string& violation : driver.violations()) ADD_FAILURE() << violation;
    if (!abandoned_) memory::forget_all();
    begin_page();
  }
  Scene(const Scene&) = delete;
  Scene& operator=(const Scene&) = delete;

  CUdeviceptr allocate(std::size_t bytes) {
    CUdeviceptr address = 0;
    EXPECT_EQ(memory::allocate(&address, bytes), CUDA_SUCCESS) << bytes;
    return address;
  }
  void free(CUdeviceptr address) {
    CUresult result = CUDA_SUCCESS;
    EXPECT_EQ(memory::free(address, &result), memory::Freed::kDone) << result;
  }
  // forget_all() was called already.
  void abandon() { abandoned_ = true; }

  FakeDriver driver;
  Surroundings around;

 private:
  bool abandoned_ = false;
};

}  // namespace fairlead::shim::testing
