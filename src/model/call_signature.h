// What a call of a function takes and gives, where the function says so: tensors by name. A kernel task says it by its buffers, a program
// by its tags (model_tags.h).
//
//   buffers x (input, f32, [4096]), w (constant), y (output, f32, [4096])  ──>  inputs: x; outputs: y
//   gpu:model-inputs=x:f32:-1x8, gpu:model-outputs=y:f32:-1                ──>  inputs: x, [any, 8]; outputs: y, [any]
//
// Plain values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/units.h"
#include "model/kernel_task.h"

namespace fairlead {

inline constexpr std::uint64_t kAnySize = ~std::uint64_t{0};  // of a dimension: each call says it; -1 to clients

struct TensorSpec {
  std::string name;
  ElementType type = ElementType::kBytes;
  std::vector<std::uint64_t> shape;  // empty: the type has as many elements as `bytes` says
  Bytes bytes{0};                    // 0: its shape leaves a size open
  std::uint32_t buffer =
      0;  // its index in a call's binary form (wire/kernel_task_codec.h); of a program: among its inputs, or outputs

  bool operator==(const TensorSpec&) const = default;
};

// How tensors travel in a function's payload and in its answer.
enum class CallForm {
  kBuffers,      // as a kernel task's call (wire/kernel_task_codec.h)
  kSafetensors,  // as a safetensors file (wire/safetensors.h)
};

struct CallSignature {
  std::vector<TensorSpec> inputs;   // inputs and in-outs; each call gives all of them
  std::vector<TensorSpec> outputs;  // outputs and in-outs
  CallForm form = CallForm::kBuffers;

  bool operator==(const CallSignature&) const = default;
};

CallSignature signature_of(const KernelTask& task);

}  // namespace fairlead
