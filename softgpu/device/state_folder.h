// The state folder as a whole: the version of what is in it, who uses it, and clearing it.
//
// One number stands for the layout of every file of the folder. A process that finds another one starts afresh if nobody
// is alive there, because nothing of the folder is worth keeping then: memory belongs to processes. If somebody is, it is
// refused, and says both versions.
//
// Example: an upgrade leaves /dev/shm/softgpu-0 with version 2 behind; the first process of version 3 clears it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "softgpu/device/result.h"

namespace softgpu {

// Raise it when the layout or the meaning of any file changes.
inline constexpr std::uint64_t kStateVersion = 5;

// What the description in the folder says; none when there is no description, or one that does not say.
std::optional<std::string> state_version(const std::string& home);

// Whether a living process has a client slot, of whatever version it is.
bool state_in_use(const std::string& home);

// $SOFTGPU_DAMAGED is `renew`: who opens a machine to watch it (NVML) makes a damaged one anew, if nobody uses it. A node
// of functions wants this, because its functions can damage what they share; for everybody else damage is an error.
bool renews_damaged_state();

// Removes the files that this library writes, and no others: a wrong $SOFTGPU_HOME must not cost anybody's own.
void clear_state(const std::string& home);

// Clears a folder of another version; does nothing to one of this version, to one without, and to a damaged one. Error:
// processes of the other version use it.
Status leave_other_version(const std::string& home);

}  // namespace softgpu
