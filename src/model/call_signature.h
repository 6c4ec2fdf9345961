// What a call of a function takes and gives, where the function says so: tensors by name. A kernel task says it by its buffers.
//
//   buffers x (input, f32, [4096]), w (constant), y (output, f32, [4096])  ──>  inputs: x; outputs: y
//
// Plain values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/units.h"
#include "model/kernel_task.h"

namespace fairlead {

struct TensorSpec {
  std::string name;
  ElementType type = ElementType::kBytes;
  std::vector<std::uint64_t> shape;  // empty: the type has as many elements as `bytes` says
  Bytes bytes{0};
  std::uint32_t buffer = 0;  // its index in a call's binary form (wire/kernel_task_codec.h)

  bool operator==(const TensorSpec&) const = default;
};

struct CallSignature {
  std::vector<TensorSpec> inputs;   // inputs and in-outs; each call gives all of them
  std::vector<TensorSpec> outputs;  // outputs and in-outs

  bool operator==(const CallSignature&) const = default;
};

CallSignature signature_of(const KernelTask& task);

}  // namespace fairlead
