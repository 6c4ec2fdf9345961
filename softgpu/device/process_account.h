// How long each process has computed on a device since it began to use it: the device's own account, which NVML's process
// utilisation is made of. Kept in the words of User (control.h) by Users.
#pragma once

#include <cstdint>

#include "softgpu/device/control.h"

namespace softgpu {

// Until now, the time that it computes at this moment included. REQUIRES: the owner is a user of the device.
std::uint64_t computed_ns(const Control& control, Owner user, std::uint64_t now_ns);

}  // namespace softgpu
