// Running a grid: blocks are taken in order by the host threads of the launch.
#pragma once

#include "softgpu/ptx/machine.h"
#include "softgpu/ptx/program.h"

namespace softgpu::ptx {

// Executes the kernel whose code is `entry` to the end or the first fault.
Outcome run_grid(const Program& program, const Code& entry, const KernelInfo& info, const AddressSpace& memory,
                 const Launch& launch);

}  // namespace softgpu::ptx
