#include "node/generated_call.h"

#include <cstring>

#include "model/call_signature.h"
#include "model/function.h"
#include "wire/kernel_task_codec.h"

namespace fairlead {
namespace {

// One half, as the element's bytes; "": it is no floating-point number.
std::string half(ElementType type) {
  const auto bytes = [](auto bits) { return std::string(reinterpret_cast<const char*>(&bits), sizeof bits); };
  switch (type) {
    case ElementType::kF16: return bytes(std::uint16_t{0x3800});
    case ElementType::kBf16: return bytes(std::uint16_t{0x3F00});
    case ElementType::kF32:
    case ElementType::kC64: return bytes(0.5F);
    case ElementType::kF64:
    case ElementType::kC128: return bytes(0.5);
    default: return "";
  }
}

std::string contents(const TensorSpec& tensor) {
  std::string bytes(static_cast<std::size_t>(tensor.bytes.count()), '\0');
  const std::string element = half(tensor.type);
  if (element.empty()) return bytes;
  for (std::size_t at = 0; at + element.size() <= bytes.size(); at += element.size()) {
    std::memcpy(bytes.data() + at, element.data(), element.size());
  }
  return bytes;
}

Bytes sum(const std::vector<TensorSpec>& tensors) {
  Bytes all{0};
  for (const TensorSpec& tensor : tensors) all += tensor.bytes;
  return all;
}

}  // namespace

Result<std::string> generated_call(const KernelTask& task) {
  const CallSignature signature = signature_of(task);
  const Bytes inputs = sum(signature.inputs), outputs = sum(signature.outputs);
  const bool fits = inputs <= Bytes(static_cast<std::int64_t>(kMaxSyncPayloadBytes)) &&
                    outputs <= Bytes(static_cast<std::int64_t>(kMaxResponseBytes));
  if (!fits) {
    return fail(
        Errc::kTooLarge,
        "its inputs are {} bytes and its outputs {}, {} and {} are the most of a call that carries them: give a "
        "sample that names objects (--sample FILE, or tag gpu:samples)",
        inputs.count(), outputs.count(), kMaxSyncPayloadBytes, kMaxResponseBytes);
  }
  KernelTaskCall call;
  for (const TensorSpec& tensor : signature.inputs) {
    call.inputs.push_back({.buffer = tensor.buffer, .key = "", .bytes = contents(tensor)});
  }
  return wire::encode(call);
}

}  // namespace fairlead
