// Programs as models: which tensors a program takes and gives, in two tags, which programs and images have alike.
//
//   gpu:model-inputs  = ids:s64:-1x128 mask:f32:-1x128    two tensors, of as many rows as the call has
//   gpu:model-outputs = logits:f32:-1x2
//
// A tensor is NAME:TYPE:SIZES. Types are those of kernel tasks' buffers, but for complex ones and bytes. A size of -1 is whatever a call has.
// Such a function gets a safetensors file of its inputs as payload, and answers with one of its outputs.
//
//   gpu:batch = 32      rows of several calls may go in one, 32 at most: where the first size of every tensor is -1
//   gpu:batch = 32:5    and none waits for others for longer than 5 ms
//
// Only characters that a tag's value may have by Lambda's rules. Pure.
#pragma once

#include <optional>
#include <string_view>

#include "base/result.h"
#include "model/call_signature.h"
#include "model/function.h"

namespace fairlead {

inline constexpr std::string_view kModelInputsTag = "gpu:model-inputs";
inline constexpr std::string_view kModelOutputsTag = "gpu:model-outputs";
inline constexpr std::string_view kBatchTag = "gpu:batch";
inline constexpr std::size_t kMostBatchRows = 65536;
inline constexpr Duration kMostBatchWait = std::chrono::seconds(10);
inline constexpr std::size_t kMostModelTensors = 64;    // of each tag
inline constexpr std::size_t kMostModelSizes = 16;      // of a tensor
inline constexpr std::size_t kMaxModelNameLength = 64;  // of a tensor

// Nothing: there is neither tag. kInvalidArgument: one is missing, or is no such list; it names the tag, the tensor and what must be.
Result<std::optional<CallSignature>> model_of(const FunctionConfig& config);

// How calls of a model go together.
struct BatchRule {
  std::size_t rows = 1;               // of one call of the function, at most
  std::optional<Duration> most_wait;  // none: as long as calls take
  bool operator==(const BatchRule&) const = default;
};
// Nothing: there is no such tag. kInvalidArgument: it is neither form, or not every tensor has as many rows as a call says.
Result<std::optional<BatchRule>> batch_rule_of(const FunctionConfig& config);

}  // namespace fairlead
