// libFuzzer: any text is either refused with a message or fenced, and what is fenced has no access without a fence, reads
// nothing that others may have left, and is no larger than the fence promises.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "fence/fence.h"
#include "fence/testing/checker.h"
#include "fence/testing/leftover_checker.h"
#include "fence/testing/modifiers.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace fairlead::fence;
  const FenceOptions options{.base = 0x700000000000, .bytes = std::uint64_t{1} << 32};
  const auto fenced = fence_ptx({reinterpret_cast<const char*>(data), size}, options);
  if (!fenced && fenced.error().message.empty()) std::abort();
  if (fenced && fenced->ptx.size() > most_fenced_bytes(size)) std::abort();
  if (fenced && testing::has_unknown_modifier(fenced->ptx)) return 0;
  if (fenced && !testing::unfenced_access(fenced->ptx, options).empty()) std::abort();
  if (fenced && !testing::leftover_read(fenced->ptx).empty()) std::abort();
  return 0;
}
