// Whether a function's author wants it scaled by the node: tag gpu:autoscale.
//
//   true     profiled, given a rectangle, placed and scaled; needs gpu:objective-ms, and none of the tags that say the same by hand
//   pinned   the same, but what was found last stays: nothing is scaled
//   false    as if it were not there
//
// Tag gpu:samples (samples_tag.h) stands for gpu:autoscale=true where this one is not there.
#pragma once

#include <string_view>

#include "base/result.h"
#include "model/function.h"

namespace fairlead {

inline constexpr std::string_view kAutoscaleTag = "gpu:autoscale";

enum class Autoscale { kOff, kOn, kPinned };

// Whether the tag says by hand what the node would find.
bool excludes_autoscale(std::string_view tag);

// kInvalidArgument: another word, no objective, or a tag that contradicts it.
Result<Autoscale> autoscale_of(const FunctionConfig& config);

}  // namespace fairlead
