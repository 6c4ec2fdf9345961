// On which slices of a GPU a function runs: tag gpu:mig-profile, a profile's name as NVML and nvidia-smi print it.
//
//   3g.40gb      on slices of that profile and nowhere else
//   3g           on slices of three compute slices, whatever their memory
//   none         on any device, whole GPUs too
//
// Example: an A100 is cut into 4g.40gb and three 1g.10gb. A function with "1g" never keeps the 4g from one that needs it.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "base/result.h"
#include "model/device.h"

namespace fairlead {

inline constexpr const char* kMigProfileTag = "gpu:mig-profile";

// "": any device. kInvalidArgument: no name of a profile.
Result<std::string> mig_profile_in(const std::map<std::string, std::string>& tags);

// `profile`: of a device, "" of one that is no slice. `wanted`: as mig_profile_in() gives it.
bool is_of_profile(std::string_view profile, std::string_view wanted);
std::string profile_of(const Device& device);  // "": it is no slice

}  // namespace fairlead
