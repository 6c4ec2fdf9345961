#include "model/autoscale_tag.h"

#include <algorithm>
#include <iterator>
#include <string>

#include "model/samples_tag.h"

namespace fairlead {
namespace {

constexpr const char* kByHand[] = {"gpu:quota-request", "gpu:quota-limit", "gpu:compute-percent",
                                   "gpu:replicas",      "gpu:pin",         "gpu:keep"};

}  // namespace

bool excludes_autoscale(std::string_view tag) {
  return std::ranges::find(kByHand, tag) != std::end(kByHand);
}

Result<Autoscale> autoscale_of(const FunctionConfig& config) {
  const auto samples = samples_of(config);
  if (!samples) return fail(samples.error());
  const auto tag = config.tags.find(std::string(kAutoscaleTag));
  const std::string value = tag != config.tags.end() ? tag->second : *samples ? "true" : "false";
  if (value == "false") return Autoscale::kOff;
  if (value != "true" && value != "pinned") {
    return fail(Errc::kInvalidArgument, "tag {} is '{}'; it must be true, pinned or false", kAutoscaleTag, value);
  }
  if (!config.tags.contains("gpu:objective-ms")) {
    return fail(Errc::kInvalidArgument, "tag {} is '{}' and gpu:objective-ms is missing: it says what to scale for",
                kAutoscaleTag, value);
  }
  const std::string cause = tag != config.tags.end() ? fmt::format("tag {} is '{}'", kAutoscaleTag, value)
                                                     : fmt::format("tag {} is there", kSamplesTag);
  for (const char* other : kByHand) {
    if (const auto set = config.tags.find(other); set != config.tags.end()) {
      return fail(Errc::kInvalidArgument,
                  "{} and {} is '{}'; the node finds shares and replicas: leave one of the two out", cause, other,
                  set->second);
    }
  }
  return value == "true" ? Autoscale::kOn : Autoscale::kPinned;
}

}  // namespace fairlead
