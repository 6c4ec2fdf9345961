// libFuzzer: any text is either refused with a message or fenced, and what is fenced passes the verifier, reads nothing that
// others may have left, and is no larger than the fence promises. With twins of its entries (block_ranges.h) it is fenced as without.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "gpu/fence/block_ranges.h"
#include "gpu/fence/fence.h"
#include "gpu/fence/testing/gpu.h"
#include "gpu/fence/testing/leftover_checker.h"
#include "gpu/fence/testing/modifiers.h"
#include "gpu/fence/testing/verified.h"

namespace {

// Whether the software GPU's driver compiles the text: operands of the right number and kind.
bool is_read_by_a_driver(const std::string& ptx) {
  using fairlead::fence::testing::Driver;
  const Driver& driver = Driver::instance();
  static const CUcontext context = [&driver] {
    CUcontext made = nullptr;
    ::setenv("SOFTGPU_PROFILE", "h200-141", 1);  // which reads what is for older ones, too
    driver.check(driver.cuInit(0), "cuInit");
    driver.check(driver.cuCtxCreate_v2(&made, 0, 0), "cuCtxCreate");
    return made;
  }();
  CUmodule module = nullptr;
  driver.check(driver.cuCtxSetCurrent(context), "cuCtxSetCurrent");
  if (driver.cuModuleLoadData(&module, ptx.c_str()) != CUDA_SUCCESS) return false;
  driver.cuModuleUnload(module);
  return true;
}

bool is_read_by_a_driver_unless_verified(const std::string& ptx, const fairlead::fence::FenceOptions& options) {
  const std::string fault = fairlead::fence::testing::fault_of(ptx, options);
  if (fault.empty() || !is_read_by_a_driver(ptx)) return false;
  std::fprintf(stderr, "%s\n%s\n", fault.c_str(), ptx.c_str());
  return true;
}

// What is fenced by itself is so with twins of all its entries, unless it becomes too large.
bool is_refused_with_twins(std::string_view ptx, const fairlead::fence::FencedModule& fenced,
                           const fairlead::fence::FenceOptions& options) {
  std::vector<std::string> entries;
  for (const auto& function : fenced.functions) {
    if (function.is_entry) entries.push_back(function.name);
  }
  const auto ranged = fairlead::fence::add_ranges(ptx, entries);
  if (!ranged || !ranged->has_twins()) return false;
  const auto both = fairlead::fence::fence_ptx(ranged->ptx, options);
  if (both) return is_read_by_a_driver_unless_verified(both->ptx, options);
  if (both.error().code == fairlead::Errc::kTooLarge || !is_read_by_a_driver(std::string(ptx))) return false;
  std::fprintf(stderr, "%s\n%s\n", both.error().message.c_str(), ranged->ptx.c_str());
  return true;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace fairlead::fence;
  const FenceOptions options{.base = 0x700000000000, .bytes = std::uint64_t{1} << 32};
  const auto fenced = fence_ptx({reinterpret_cast<const char*>(data), size}, options);
  if (!fenced && fenced.error().message.empty()) std::abort();
  if (fenced && fenced->ptx.size() > most_fenced_bytes(size)) std::abort();
  // What the verifier refuses is not loaded. Where a driver would have read it, one of the two is wrong.
  if (fenced && is_read_by_a_driver_unless_verified(fenced->ptx, options)) std::abort();
  if (fenced && is_refused_with_twins({reinterpret_cast<const char*>(data), size}, *fenced, options)) std::abort();
  // Whatever the text is, judging it ends.
  (void)verify_fenced({reinterpret_cast<const char*>(data), size}, options);
  if (fenced && testing::has_unknown_modifier(fenced->ptx)) return 0;
  // The checker takes text by its words, and text that no compiler reads (operands of the wrong number or kind) for what it is not.
  if (fenced && !testing::leftover_read(fenced->ptx).empty() && is_read_by_a_driver(fenced->ptx)) std::abort();
  return 0;
}
