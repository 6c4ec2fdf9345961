// What a function is called with while it is measured: tag gpu:samples, for deployers that have nothing but tags (every AWS SDK).
//
//   [{"n": 1000}, {"n": 50}]   a JSON array: each of it is the payload of a call, in turn
//   samples.json               a file at the top of the code that holds such an array; it changes with the code, as profiles do
//
// The tag is the author's word that the function may be called again and again with them. With gpu:objective-ms it stands for
// gpu:autoscale=true: the node measures the function once it is deployed, and scales it.
//
// Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/function.h"

namespace fairlead {

inline constexpr std::string_view kSamplesTag = "gpu:samples";
inline constexpr std::size_t kMostSamples = 64;
inline constexpr std::size_t kMaxSamplesBytes = std::size_t{1} << 20;  // of all of them, and of the file

struct SamplesTag {
  std::string file;                   // "": they are in the tag
  std::vector<std::string> payloads;  // as JSON
};

// Empty: there is no such tag. kInvalidArgument: it is neither of the two, or gpu:objective-ms is missing.
Result<std::optional<SamplesTag>> samples_of(const FunctionConfig& config);
// kInvalidArgument: no JSON array of 1 to kMostSamples values, or larger than kMaxSamplesBytes. `where` is what the error calls it.
Result<std::vector<std::string>> parse_samples(std::string_view text, const std::string& where);

}  // namespace fairlead
