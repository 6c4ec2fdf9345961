#include "softgpu/conformance/fields.h"

namespace softgpu::conformance {

std::span<const Field> all_fields() {
  static const Field fields[] = {kVector,    kLinearAlgebra, kStencil, kNeural,          kData,     kSimulation,
                                 kHashing,   kArithmetic,    kWarp,    kSynchronization, kLanguage, kTensor,
                                 kDriver,    kMemory,        kStreams, kTextures,        kManaged,  kVirtualMemory,
                                 kPools,     kGraphs,        kCapture, kLaunches,        kCode,     kArrays,
                                 kProcesses, kPeers};
  return fields;
}

}  // namespace softgpu::conformance
