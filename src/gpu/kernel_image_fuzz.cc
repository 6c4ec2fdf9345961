// libFuzzer: any bytes are an image of kernels or refused with an error; what is said of an image can be relied on.
#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "gpu/kernel_image.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace fairlead;
  const auto image = read_kernel_image({reinterpret_cast<const char*>(data), size});
  if (!image) return 0;
  const auto has_name = [](const KernelSignature& kernel) {
    return !kernel.name.empty() && kernel.name.size() <= kMaxKernelNameLength;
  };
  const auto by_name = [](const KernelSignature& a, const KernelSignature& b) { return a.name < b.name; };
  const bool is_right = !image->targets.empty() && std::is_sorted(image->targets.begin(), image->targets.end()) &&
                        std::is_sorted(image->kernels.begin(), image->kernels.end(), by_name) &&
                        std::all_of(image->kernels.begin(), image->kernels.end(), has_name);
  if (!is_right) std::abort();
  return 0;
}
