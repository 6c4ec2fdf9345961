#include "model/call_signature.h"

namespace fairlead {

CallSignature signature_of(const KernelTask& task) {
  CallSignature signature;
  for (std::uint32_t i = 0; i < task.buffers.size(); ++i) {
    const BufferSpec& buffer = task.buffers[i];
    const TensorSpec tensor{buffer.name, buffer.type, buffer.shape, buffer.bytes, i};
    if (buffer.role == BufferRole::kInput || buffer.role == BufferRole::kInOut) signature.inputs.push_back(tensor);
    if (buffer.role == BufferRole::kOutput || buffer.role == BufferRole::kInOut) signature.outputs.push_back(tensor);
  }
  return signature;
}

}  // namespace fairlead
