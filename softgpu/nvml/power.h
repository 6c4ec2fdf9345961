// Power and energy as more than one query answers them.
#pragma once

#include "softgpu/nvml/nvml_state.h"

namespace softgpu {

// A value that rises with use from an idle to a highest value.
unsigned between(std::uint64_t idle, std::uint64_t most, double busy);

unsigned power_milliwatts(nvmlDevice_t device);
unsigned limit_milliwatts(nvmlDevice_t device);
unsigned long long energy_millijoules(nvmlDevice_t device);

}  // namespace softgpu
