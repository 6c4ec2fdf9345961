// Random programs under random moves and failures, against a map of what they wrote.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>

#include "shim/memory/testing/scene.h"

namespace fairlead::shim::memory {
namespace {

using testing::kMiB;
using testing::Scene;

struct Written {
  std::size_t bytes = 0;
  unsigned seed = 0;  // 0: nothing yet
};

// Bytes in whole granules as the driver sees them are what the page says; contents are what was written.
void check(Scene& scene, const std::map<CUdeviceptr, Written>& program) {
  std::size_t held = 0;
  for (const auto& [address, written] : program) {
    held += written.bytes;
    Range range;
    RC_ASSERT(find(address + written.bytes - 1, &range) && range.start == address && range.bytes == written.bytes);
    if (!scene.around.gate_closed && written.seed != 0)
      RC_ASSERT(scene.driver.holds(address, written.bytes, written.seed));
  }
  RC_ASSERT(page().held.load() == held);
  RC_ASSERT(page().resident.load() == scene.driver.used());
  RC_ASSERT(scene.around.gate_closed || page().away.load() == 0);
  RC_ASSERT(scene.around.gate_closed || scene.around.staged == 0);
  RC_ASSERT(scene.driver.violations().empty());
}

void allocate_one(Scene& scene, std::map<CUdeviceptr, Written>& program, unsigned seed) {
  const auto bytes = *rc::gen::oneOf(rc::gen::inRange<std::size_t>(1, 5000), rc::gen::inRange(kMiB, 7 * kMiB));
  CUdeviceptr address = 0;
  const CUresult result = memory::allocate(&address, bytes);
  if (result != CUDA_SUCCESS) return;
  RC_ASSERT(program.count(address) == 0);
  program[address] = {bytes, scene.around.gate_closed ? 0 : seed};
  if (!scene.around.gate_closed) scene.driver.poke(address, bytes, seed);
}

void free_one(std::map<CUdeviceptr, Written>& program) {
  if (program.empty()) return;
  const auto which = std::next(program.begin(), *rc::gen::inRange<std::ptrdiff_t>(0, std::ssize(program)));
  CUresult result = CUDA_SUCCESS;
  RC_ASSERT(memory::free(which->first, &result) == Freed::kDone);
  program.erase(which);
}

RC_GTEST_PROP(SwapProperty, NoByteIsLostAndNoAddressChanges, ()) {
  Scene scene({.device_bytes = 32 * kMiB, .arena_bytes = *rc::gen::element<std::size_t>(0, 8, 64) * kMiB});
  std::map<CUdeviceptr, Written> program;
  const auto steps = *rc::gen::inRange(1, 60);
  for (unsigned i = 1; i <= static_cast<unsigned>(steps); ++i) {
    // One failure at a time: a rollback that fails, too, leaves what the driver leaves.
    scene.driver.fail_no_more();
    if (*rc::gen::inRange(0, 4) == 0) {
      const auto symbol =
          *rc::gen::element(Symbol::cuMemCreate, Symbol::cuMemMap, Symbol::cuMemSetAccess, Symbol::cuMemUnmap,
                            Symbol::cuMemcpyDtoHAsync_v2, Symbol::cuMemcpyHtoDAsync_v2, Symbol::cuEventRecord,
                            Symbol::cuEventCreate, Symbol::cuMemHostAlloc);
      scene.driver.fail(symbol, *rc::gen::inRange(1, 4),
                        *rc::gen::element(CUDA_ERROR_UNKNOWN, CUDA_ERROR_OUT_OF_MEMORY));
    }
    switch (*rc::gen::inRange(0, 6)) {
      case 0:
      case 1: allocate_one(scene, program, i); break;
      case 2: free_one(program); break;
      case 3: swap_out(*rc::gen::inRange<std::uint64_t>(1, 20 * kMiB), 1'000'000'000); break;
      case 4: swap_out(UINT64_MAX, 1'000'000'000); break;
      case 5: swap_in(); break;
      default: break;
    }
    scene.around.captures = *rc::gen::inRange(0, 8) == 0;
    if (!scene.around.gate_closed) {
      for (auto& [address, written] : program) {
        if (written.seed == 0) scene.driver.poke(address, written.bytes, written.seed = i);
      }
    }
    check(scene, program);
  }
  scene.around.captures = false;
  scene.driver.fail_no_more();
  for (int i = 0; i < 20 && scene.around.gate_closed; ++i) swap_in();
  RC_ASSERT(!scene.around.gate_closed);
  check(scene, program);
}

}  // namespace
}  // namespace fairlead::shim::memory
