// Tags by which instances of a function are kept started, held or let go:
//
//   gpu:replicas     "MIN:MAX"                  MIN are kept started
//   gpu:pin          "device", "host", "none"   idle instances stay there (model/warm_hold.h)
//   gpu:keep         "90s", "10m", "2h", "1d"   an idle instance ends so long after its last call, and stays until then
//   gpu:unloaded-at  milliseconds since 1970    at which somebody wanted them gone: that it changes replaces the function's instances
//
//   keep 2 of {"gpu:replicas": "0:5"}   ->   {"gpu:replicas": "2:5"}
//   keep 0 of that                      ->   {"gpu:replicas": "0:5"}
#pragma once

#include <chrono>
#include <map>
#include <string>
#include <string_view>

#include "base/result.h"
#include "model/warm_hold.h"

namespace fairlead {

inline constexpr std::string_view kUnloadedAtTag = "gpu:unloaded-at";
inline constexpr std::string_view kPinTag = "gpu:pin";
inline constexpr std::string_view kKeepTag = "gpu:keep";
inline constexpr std::chrono::seconds kLongestKeep = std::chrono::hours(24) * 365;

using Tags = std::map<std::string, std::string>;

// `tags` with `least` instances kept. MAX stays where somebody set one and `least` fits; a larger `least` raises it. kInvalidArgument:
// `least` is not 0 to kMaxReplicas. REQUIRES: tags of a valid configuration.
Result<Tags> with_instances_kept(Tags tags, int least);

int instances_kept(const Tags& tags);  // MIN; 0: none, or no tag

// Who is kept for a time, and not said to be pinned nowhere, is held on the host. kInvalidArgument names the tag, its value and the bound.
Result<WarmHold> held_as(const Tags& tags);

// "90s", "10m", "2h", "1d", or seconds without a letter: 0 to kLongestKeep. kInvalidArgument names `what`, the text and the bound.
Result<std::chrono::seconds> read_keep(std::string_view what, std::string_view text);
std::string keep_text(std::chrono::seconds keep);  // in the largest unit that says it whole: 5400 s is "90m"

}  // namespace fairlead
