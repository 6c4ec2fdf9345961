#include "model/autoscale_tag.h"

#include <string>

namespace fairlead {

Result<Autoscale> autoscale_of(const FunctionConfig& config) {
  const auto tag = config.tags.find(std::string(kAutoscaleTag));
  if (tag == config.tags.end() || tag->second == "false") return Autoscale::kOff;
  if (tag->second != "true" && tag->second != "pinned") {
    return fail(Errc::kInvalidArgument, "tag {} is '{}'; it must be true, pinned or false", kAutoscaleTag, tag->second);
  }
  if (!config.tags.contains("gpu:objective-ms")) {
    return fail(Errc::kInvalidArgument, "tag {} is '{}' and gpu:objective-ms is missing: it says what to scale for",
                kAutoscaleTag, tag->second);
  }
  for (const char* other : {"gpu:quota-request", "gpu:quota-limit", "gpu:compute-percent", "gpu:replicas"}) {
    if (const auto set = config.tags.find(other); set != config.tags.end()) {
      return fail(Errc::kInvalidArgument,
                  "tag {} is '{}' and {} is '{}'; the node finds shares and replicas: leave one of the two out",
                  kAutoscaleTag, tag->second, other, set->second);
    }
  }
  return tag->second == "true" ? Autoscale::kOn : Autoscale::kPinned;
}

}  // namespace fairlead
