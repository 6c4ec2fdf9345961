// Tensors in the words of the Open Inference Protocol, version 2: FP32, INT64, ... and a shape of numbers.
//
//   f32 [2, 3]  ──> FP32 [2, 3]        c64 [8] ──> FP32 [8, 2]: real and imaginary part
//   bytes, 4096 ──> UINT8 [4096]       BOOL and BYTES are nothing that a kernel takes
//
// Plain functions, for any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/call_signature.h"

namespace fairlead::inference {

struct TensorView {
  std::string_view datatype;  // "FP32"
  ElementType element = ElementType::kBytes;
  std::vector<std::uint64_t> shape;

  bool operator==(const TensorView&) const = default;
};
TensorView view_of(const TensorSpec& tensor);

const TensorSpec* find_tensor(const std::vector<TensorSpec>& tensors, std::string_view name);  // null: there is none
std::string names_of(const std::vector<TensorSpec>& tensors);                                  // for people: "x, y"

// "FP32" and "TYPE_FP32"; the latter is the word of a model's configuration.
std::string_view datatype_of(ElementType type);
std::string_view configured_datatype_of(ElementType type);

}  // namespace fairlead::inference
