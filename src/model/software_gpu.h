// What whoever starts a software GPU has to know, in one sentence: README, `fairlead doctor` and `fairlead serve --softgpu` say it.
#pragma once

#include <string_view>

namespace fairlead {

inline constexpr std::string_view kSoftwareGpuIsolatesNothing =
    "the software GPU isolates nothing between the processes that share it: its device memory is files that all of "
    "them map, since a kernel runs in its caller's own process and reaches memory without asking anybody; strangers "
    "need a real GPU, or a node each";

}  // namespace fairlead
