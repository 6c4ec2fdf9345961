// libFuzzer: any text either parses or is refused with an error; nothing else may happen.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "softgpu/ptx/text/parser.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto result = softgpu::ptx::parse({reinterpret_cast<const char*>(data), size});
  if (result.error && result.error->message.empty()) std::abort();
  for (const auto& function : result.module.functions) {
    for (const auto& instruction : function.instructions) {
      for (const auto& operand : function.operands_of(instruction)) {
        if (operand.kind == softgpu::ptx::ast::Operand::Kind::kList) (void)function.elements_of(operand);
      }
    }
  }
  return 0;
}
