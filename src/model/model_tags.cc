#include "model/model_tags.h"

#include <algorithm>
#include <charconv>
#include <set>
#include <string>
#include <vector>

namespace fairlead {
namespace {

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(separator, begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

bool is_name(std::string_view text) {
  const auto is_plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.' ||
           c == '-' || c == '/';
  };
  return !text.empty() && text.size() <= kMaxModelNameLength && std::ranges::all_of(text, is_plain);
}

std::optional<ElementType> type_named(std::string_view text) {
  const auto type = element_type_named(text);
  if (!type || type == ElementType::kBytes || type == ElementType::kC64 || type == ElementType::kC128) return {};
  return type;
}

std::optional<std::uint64_t> size_of(std::string_view text) {
  if (text == "-1") return kAnySize;
  std::uint64_t size = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), size);
  const bool is_number = error == std::errc() && end == text.data() + text.size() && size > 0;
  return is_number && size <= static_cast<std::uint64_t>(kMaxObjectBytes.count()) ? std::optional(size) : std::nullopt;
}

Result<TensorSpec> read_tensor(std::string_view text) {
  const auto parts = split(text, ':');
  const auto refuse = [&](std::string_view what) {
    return fail(Errc::kInvalidArgument, "'{}' {}", text.substr(0, 128), what);
  };
  if (parts.size() != 3) return refuse("must be NAME:TYPE:SIZES, for example x:f32:-1x8");
  if (!is_name(parts[0])) return refuse("must begin with a name: up to 64 letters, digits, '_', '.', '-' or '/'");
  const auto type = type_named(parts[1]);
  if (!type) return refuse("must have a type: s8, u8, s16, u16, s32, u32, s64, u64, f16, bf16, f32 or f64");
  TensorSpec tensor{.name = std::string(parts[0]), .type = *type};
  for (const std::string_view part : split(parts[2], 'x')) {
    const auto size = size_of(part);
    if (!size || tensor.shape.size() == kMostModelSizes) {
      return refuse("must have 1 to 16 sizes with x between them, each a number above 0, or -1 for what a call has");
    }
    tensor.shape.push_back(*size);
  }
  if (std::ranges::find(tensor.shape, kAnySize) != tensor.shape.end()) return tensor;
  const auto bytes = shape_bytes(tensor.type, tensor.shape);
  if (!bytes || *bytes > Bytes(static_cast<std::int64_t>(kMaxSyncPayloadBytes))) {
    return refuse(fmt::format("has more bytes than a call may have, which are {}", kMaxSyncPayloadBytes));
  }
  tensor.bytes = *bytes;
  return tensor;
}

Result<std::vector<TensorSpec>> read_tensors(std::string_view tag, std::string_view text) {
  std::vector<TensorSpec> tensors;
  std::set<std::string, std::less<>> names;
  const auto parts = split(text, ' ');
  if (parts.size() > kMostModelTensors) {
    return fail(Errc::kInvalidArgument, "tag {} has {} tensors; {} are the most", tag, parts.size(), kMostModelTensors);
  }
  for (const std::string_view part : parts) {
    auto tensor = read_tensor(part);
    if (!tensor) return fail(Errc::kInvalidArgument, "tag {}: {}", tag, tensor.error().message);
    tensor->buffer = static_cast<std::uint32_t>(tensors.size());
    if (!names.insert(tensor->name).second) {
      return fail(Errc::kInvalidArgument, "tag {} has the tensor '{}' twice", tag, tensor->name);
    }
    tensors.push_back(*std::move(tensor));
  }
  return tensors;
}

}  // namespace

Result<std::optional<CallSignature>> model_of(const FunctionConfig& config) {
  const auto inputs = config.tags.find(std::string(kModelInputsTag));
  const auto outputs = config.tags.find(std::string(kModelOutputsTag));
  const bool takes = inputs != config.tags.end(), gives = outputs != config.tags.end();
  if (!takes && !gives) return std::optional<CallSignature>();
  if (!takes || !gives) {
    return fail(Errc::kInvalidArgument, "tag {} is there and {} is missing: a model says both",
                takes ? kModelInputsTag : kModelOutputsTag, takes ? kModelOutputsTag : kModelInputsTag);
  }
  CallSignature signature{.form = CallForm::kSafetensors};
  auto taken = read_tensors(kModelInputsTag, inputs->second);
  if (!taken) return fail(taken.error());
  auto given = read_tensors(kModelOutputsTag, outputs->second);
  if (!given) return fail(given.error());
  signature.inputs = *std::move(taken);
  signature.outputs = *std::move(given);
  return std::optional(std::move(signature));
}

Result<std::optional<BatchRule>> batch_rule_of(const FunctionConfig& config) {
  const auto tag = config.tags.find(std::string(kBatchTag));
  if (tag == config.tags.end()) return std::optional<BatchRule>();
  const auto model = model_of(config);
  if (!model) return fail(model.error());
  if (!*model) {
    return fail(Errc::kInvalidArgument, "tag {} is there and {} is missing: it is of models", kBatchTag,
                kModelInputsTag);
  }
  for (const auto* tensors : {&(*model)->inputs, &(*model)->outputs}) {
    for (const TensorSpec& tensor : *tensors) {
      const bool has_rows =
          tensor.shape.front() == kAnySize && std::count(tensor.shape.begin(), tensor.shape.end(), kAnySize) == 1;
      if (has_rows) continue;
      return fail(Errc::kInvalidArgument,
                  "tag {} is there and the tensor '{}' is not of rows: its first size must be -1, and no other",
                  kBatchTag, tensor.name);
    }
  }
  const auto parts = split(tag->second, ':');
  const auto number = [](std::string_view text, std::size_t most) -> std::optional<std::size_t> {
    const auto size = size_of(text);
    return size && *size <= most ? std::optional<std::size_t>(*size) : std::nullopt;
  };
  constexpr auto kMostMs = static_cast<std::size_t>(kMostBatchWait / std::chrono::milliseconds(1));
  const auto rows = number(parts[0], kMostBatchRows);
  const auto ms = parts.size() > 1 ? number(parts[1], kMostMs) : std::nullopt;
  if (!rows || parts.size() > 2 || (parts.size() == 2 && !ms)) {
    return fail(Errc::kInvalidArgument, "tag {} is '{}'; it must be ROWS or ROWS:MS, ROWS 1 to {}, MS 1 to {}",
                kBatchTag, tag->second, kMostBatchRows, kMostMs);
  }
  BatchRule rule{.rows = *rows};
  if (ms) rule.most_wait = std::chrono::milliseconds(*ms);
  return std::optional(rule);
}

}  // namespace fairlead
