#include "edge/inference/datatype.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "model/function.h"

namespace fairlead::inference {
namespace {

// The element that stands in a list of numbers: complex ones are pairs, untyped ones bytes.
ElementType plain(ElementType type) {
  switch (type) {
    case ElementType::kBytes: return ElementType::kU8;
    case ElementType::kC64: return ElementType::kF32;
    case ElementType::kC128: return ElementType::kF64;
    default: return type;
  }
}

}  // namespace

std::string_view configured_datatype_of(ElementType type) {
  switch (plain(type)) {
    case ElementType::kS8: return "TYPE_INT8";
    case ElementType::kU8: return "TYPE_UINT8";
    case ElementType::kS16: return "TYPE_INT16";
    case ElementType::kU16: return "TYPE_UINT16";
    case ElementType::kS32: return "TYPE_INT32";
    case ElementType::kU32: return "TYPE_UINT32";
    case ElementType::kS64: return "TYPE_INT64";
    case ElementType::kU64: return "TYPE_UINT64";
    case ElementType::kF16: return "TYPE_FP16";
    case ElementType::kBf16: return "TYPE_BF16";
    case ElementType::kF32: return "TYPE_FP32";
    default: return "TYPE_FP64";
  }
}

std::string_view datatype_of(ElementType type) {
  return configured_datatype_of(type).substr(std::string_view("TYPE_").size());
}

TensorView view_of(const TensorSpec& tensor) {
  TensorView view{datatype_of(tensor.type), plain(tensor.type), tensor.shape};
  const bool is_complex = tensor.type == ElementType::kC64 || tensor.type == ElementType::kC128;
  if (view.shape.empty()) {
    view.shape = {static_cast<std::uint64_t>(tensor.bytes.count()) / element_bytes(tensor.type)};
  }
  if (is_complex) view.shape.push_back(2);
  return view;
}

bool is_shape_of(const TensorView& view, const std::vector<std::uint64_t>& shape) {
  return std::ranges::equal(view.shape, shape, [](std::uint64_t is, std::uint64_t said) {
    return is == said || (is == kAnySize && said != kAnySize);
  });
}

Result<TensorSpec> as_given(const TensorSpec& tensor, std::vector<std::uint64_t> shape) {
  if (std::ranges::find(tensor.shape, kAnySize) == tensor.shape.end()) return tensor;
  TensorSpec given = tensor;
  given.shape = std::move(shape);
  const auto bytes = shape_bytes(given.type, given.shape);
  if (!bytes || *bytes > Bytes(static_cast<std::int64_t>(kMaxSyncPayloadBytes))) {
    return fail(Errc::kTooLarge, "the tensor '{}' has shape {}; a call may have at most {} bytes", tensor.name,
                text_of_shape(given.shape), kMaxSyncPayloadBytes);
  }
  given.bytes = *bytes;
  return given;
}

std::vector<std::int64_t> told_shape(const TensorView& view) {
  std::vector<std::int64_t> told;
  for (const std::uint64_t size : view.shape) told.push_back(size == kAnySize ? -1 : static_cast<std::int64_t>(size));
  return told;
}

std::string text_of_shape(const std::vector<std::uint64_t>& shape) {
  return fmt::format("[{}]", fmt::join(told_shape({.shape = shape}), ", "));
}

const TensorSpec* find_tensor(const std::vector<TensorSpec>& tensors, std::string_view name) {
  const auto found = std::ranges::find(tensors, name, &TensorSpec::name);
  return found == tensors.end() ? nullptr : &*found;
}

std::string names_of(const std::vector<TensorSpec>& tensors) {
  std::string names;
  for (const TensorSpec& tensor : tensors) (names += names.empty() ? "" : ", ") += tensor.name;
  return names.empty() ? "none" : names;
}

}  // namespace fairlead::inference
