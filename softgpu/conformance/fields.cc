#include "softgpu/conformance/fields.h"

namespace softgpu::conformance {

std::span<const Field> all_fields() {
  static const Field fields[] = {kVector,     kLinearAlgebra, kStencil,         kNeural,  kData,
                                 kArithmetic, kWarp,          kSynchronization, kLanguage};
  return fields;
}

}  // namespace softgpu::conformance
