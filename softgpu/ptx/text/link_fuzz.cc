// libFuzzer: any texts are linked or refused with an error, and what was linked can be linked again. The input is cut at
// its NUL bytes.
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "softgpu/ptx/builtin.h"
#include "softgpu/ptx/text/link.h"

namespace softgpu::ptx {

// Stands in for the machine's list, which would bring the whole machine.
std::optional<Builtin> builtin_from_name(std::string_view name) {
  return name == "vprintf" ? std::optional(Builtin::kVprintf) : std::nullopt;
}

}  // namespace softgpu::ptx

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  std::vector<softgpu::ptx::LinkInput> inputs;
  for (std::size_t at = 0; at < bytes.size();) {
    const std::size_t end = std::min(bytes.find('\0', at), bytes.size());
    inputs.push_back({"input", std::string_view(bytes).substr(at, end - at)});
    at = end + 1;
  }
  const softgpu::ptx::LinkOutput output = softgpu::ptx::link(inputs);
  if (inputs.empty() || !output.error.empty()) return 0;
  const softgpu::ptx::LinkInput again[] = {{"linked", output.text}};
  if (!softgpu::ptx::link(again).error.empty()) std::abort();
  return 0;
}
