// libFuzzer: any text is either refused with a message or fenced, and what is fenced passes the verifier, reads nothing that
// others may have left, and is no larger than the fence promises.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "fence/fence.h"
#include "fence/testing/leftover_checker.h"
#include "fence/testing/modifiers.h"
#include "fence/testing/verified.h"

namespace {

bool verified(const std::string& ptx, const fairlead::fence::FenceOptions& options) {
  const std::string fault = fairlead::fence::testing::fault_of(ptx, options);
  if (!fault.empty()) std::fprintf(stderr, "%s\n%s\n", fault.c_str(), ptx.c_str());
  return fault.empty();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace fairlead::fence;
  const FenceOptions options{.base = 0x700000000000, .bytes = std::uint64_t{1} << 32};
  const auto fenced = fence_ptx({reinterpret_cast<const char*>(data), size}, options);
  if (!fenced && fenced.error().message.empty()) std::abort();
  if (fenced && fenced->ptx.size() > most_fenced_bytes(size)) std::abort();
  if (fenced && !verified(fenced->ptx, options)) std::abort();
  // Whatever the text is, judging it ends.
  (void)verify_fenced({reinterpret_cast<const char*>(data), size}, options);
  if (fenced && testing::has_unknown_modifier(fenced->ptx)) return 0;
  // The checker takes text by its words, and text that no compiler reads (operands of the wrong kind or number) for what it is not:
  // minutes of fuzzing end with a false alarm. So this claim is looked at by who wants to read these.
  static const bool looks_for_leftovers = std::getenv("FENCE_FUZZ_LEFTOVERS") != nullptr;
  if (looks_for_leftovers && fenced && !testing::leftover_read(fenced->ptx).empty()) std::abort();
  return 0;
}
