// The kernels' PTX, compiled at build time.
#include <iterator>

#include "softgpu/conformance/case.h"

namespace softgpu::conformance {
namespace {
#include "images.inc"
}  // namespace

const char* ptx_of(const std::string& stem) {
  for (const auto& [name, text] : kImages) {
    if (stem == name) return text;
  }
  return nullptr;
}

}  // namespace softgpu::conformance
