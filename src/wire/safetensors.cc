#include "wire/safetensors.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "wire/json_value.h"

namespace fairlead::wire {
namespace {

constexpr std::size_t kLengthBytes = 8;
constexpr std::size_t kMaxHeaderBytes = 64 << 10;
constexpr JsonBounds kHeaderBounds{.depth = 4, .values = std::size_t{1} << 16};
constexpr std::pair<ElementType, std::string_view> kTypes[] = {
    {ElementType::kS8, "I8"},   {ElementType::kU8, "U8"},     {ElementType::kS16, "I16"}, {ElementType::kU16, "U16"},
    {ElementType::kS32, "I32"}, {ElementType::kU32, "U32"},   {ElementType::kS64, "I64"}, {ElementType::kU64, "U64"},
    {ElementType::kF16, "F16"}, {ElementType::kBf16, "BF16"}, {ElementType::kF32, "F32"}, {ElementType::kF64, "F64"}};

std::string_view name_of(ElementType type) {
  const auto found = std::ranges::find(kTypes, type, &std::pair<ElementType, std::string_view>::first);
  return found == std::end(kTypes) ? "U8" : found->second;
}

// Nothing: the format has more types than are known here (BOOL, F8_E4M3, ...).
std::optional<ElementType> read_type(const JsonValue& value) {
  const auto found = std::ranges::find(kTypes, value.text(16), &std::pair<ElementType, std::string_view>::second);
  return found == std::end(kTypes) ? std::nullopt : std::optional(found->first);
}

void read_shape(const JsonValue& value, FileTensor& tensor) {
  if (!value.is_list(kMaxShapeDimensions)) return;
  for (std::size_t i = 0; i < value.json().size(); ++i) {
    tensor.shape.push_back(value.at(i).number(0, static_cast<std::uint64_t>(kMaxObjectBytes.count())));
  }
}

void read_bytes(const JsonValue& offsets, std::string_view data, FileTensor& tensor) {
  if (!offsets.is_list(2)) return;
  if (offsets.json().size() != 2) return offsets.refuse("must be [begin, end]");
  const std::uint64_t begin = offsets.at(std::size_t{0}).number(0, data.size());
  const std::uint64_t end = offsets.at(std::size_t{1}).number(0, data.size());
  const auto needed = shape_bytes(tensor.type, tensor.shape);
  if (!offsets.ok()) return;
  if (end < begin || !needed || std::cmp_not_equal(end - begin, needed->count())) {
    return offsets.refuse("is [{}, {}], which are not the bytes of shape [{}] of {}", begin, end,
                          fmt::join(tensor.shape, ", "), name_of(tensor.type));
  }
  tensor.bytes = data.substr(begin, end - begin);
}

// Nothing: refused, or of a type that is not known.
std::optional<FileTensor> read_tensor(const std::string& name, const JsonValue& entry, std::string_view data) {
  if (!entry.has_only({"dtype", "shape", "data_offsets"})) return std::nullopt;
  const auto type = entry.require("dtype");
  const auto shape = entry.require("shape");
  const auto offsets = entry.require("data_offsets");
  if (!type || !shape || !offsets) return std::nullopt;
  const auto known = read_type(*type);
  if (!entry.ok() || !known) return std::nullopt;
  FileTensor tensor{.name = name, .type = *known};
  read_shape(*shape, tensor);
  if (entry.ok()) read_bytes(*offsets, data, tensor);
  return tensor;
}

}  // namespace

std::string write_safetensors(std::vector<FileTensor> tensors) {
  std::ranges::stable_sort(tensors, std::ranges::greater(),
                           [](const FileTensor& tensor) { return element_bytes(tensor.type); });
  std::string header;
  std::size_t at = 0;
  for (const FileTensor& tensor : tensors) {
    header += fmt::format(R"({}{}:{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})", header.empty() ? "{" : ",",
                          nlohmann::json(tensor.name).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace),
                          name_of(tensor.type), fmt::join(tensor.shape, ","), at, at + tensor.bytes.size());
    at += tensor.bytes.size();
  }
  header += header.empty() ? "{}" : "}";
  header.resize((header.size() + kLengthBytes - 1) / kLengthBytes * kLengthBytes, ' ');
  const std::uint64_t length = header.size();
  std::string file(kLengthBytes, '\0');
  std::memcpy(file.data(), &length, kLengthBytes);
  file.reserve(kLengthBytes + header.size() + at);
  file += header;
  for (const FileTensor& tensor : tensors) file += tensor.bytes;
  return file;
}

Result<std::vector<FileTensor>> read_safetensors(std::string_view file) {
  std::uint64_t length = 0;
  if (file.size() >= kLengthBytes) std::memcpy(&length, file.data(), kLengthBytes);
  if (file.size() < kLengthBytes || length > file.size() - kLengthBytes) {
    return fail(Errc::kInvalidArgument, "it has {} bytes, which do not begin with the length of a header", file.size());
  }
  if (length > kMaxHeaderBytes) {
    return fail(Errc::kInvalidArgument, "its header has {} bytes; it may have at most {}", length, kMaxHeaderBytes);
  }
  const auto header = parse_json(file.substr(kLengthBytes, length), "header", kHeaderBounds);
  if (!header) return fail(header.error());
  const std::string_view data = file.substr(kLengthBytes + length);
  Status status;
  const JsonValue root(*header, status);
  std::vector<FileTensor> tensors;
  std::size_t named = 0;
  if (!header->is_object() || header->size() > kMostFileTensors) {
    return fail(Errc::kInvalidArgument, "its header must be an object of at most {} tensors", kMostFileTensors);
  }
  for (const auto& [name, member] : header->items()) {
    if (name == "__metadata__") continue;
    auto tensor = read_tensor(name, root.at(name, member), data);
    if (!status) return fail(status.error());
    if (!tensor) continue;
    named += tensor->bytes.size();
    if (named > data.size()) {
      return fail(Errc::kInvalidArgument, "its tensors have {} bytes of {}: none may have another's", named,
                  data.size());
    }
    tensors.push_back(*std::move(tensor));
  }
  return tensors;
}

}  // namespace fairlead::wire
