// Whether long kernels of a kernel task may be launched a part of their blocks at a time, where others are promised time of the device: tag
// gpu:cut-kernels.
//
//   true     the default: those that do not wait for each other, as far as their code says (gpu/fence/block_ranges.h)
//   false    a kernel is launched whole, however long others wait: for one whose blocks wait for each other by plain loads
#pragma once

#include <map>
#include <string>

#include "base/result.h"

namespace fairlead {

inline constexpr const char* kCutKernelsTag = "gpu:cut-kernels";

// kInvalidArgument: another word.
Result<bool> may_cut_kernels(const std::map<std::string, std::string>& tags);

}  // namespace fairlead
