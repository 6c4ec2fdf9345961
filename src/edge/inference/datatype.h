// Tensors in the words of the Open Inference Protocol, version 2: FP32, INT64, ... and a shape of numbers.
//
//   f32 [2, 3]  ──> FP32 [2, 3]        c64 [8] ──> FP32 [8, 2]: real and imaginary part
//   bytes, 4096 ──> UINT8 [4096]       f32 [any, 8] ──> FP32 [-1, 8]
//
// BOOL and BYTES are nothing that a kernel takes, nor a program's tag says.
//
// Plain functions, for any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/call_signature.h"

namespace fairlead::inference {

struct TensorView {
  std::string_view datatype;  // "FP32"
  ElementType element = ElementType::kBytes;
  std::vector<std::uint64_t> shape;

  bool operator==(const TensorView&) const = default;
};
TensorView view_of(const TensorSpec& tensor);

// Whether a call's tensor may have this shape: the same, but for sizes that the model leaves open.
bool is_shape_of(const TensorView& view, const std::vector<std::uint64_t>& shape);
// The tensor as a call has it, with bytes. kTooLarge: more than a call may have. REQUIRES: is_shape_of(view_of(tensor), shape).
Result<TensorSpec> as_given(const TensorSpec& tensor, std::vector<std::uint64_t> shape);
std::string text_of_shape(const std::vector<std::uint64_t>& shape);  // for people: "[-1, 8]"
std::vector<std::int64_t> told_shape(const TensorView& view);        // to clients: -1 is a size that is open

const TensorSpec* find_tensor(const std::vector<TensorSpec>& tensors, std::string_view name);  // null: there is none
std::string names_of(const std::vector<TensorSpec>& tensors);                                  // for people: "x, y"

// "FP32" and "TYPE_FP32"; the latter is the word of a model's configuration.
std::string_view datatype_of(ElementType type);
std::string_view configured_datatype_of(ElementType type);

}  // namespace fairlead::inference
