// How many blocks of a kernel fit on one SM at a time.
#pragma once

#include <cstddef>

#include "softgpu/driver/code/module.h"

namespace softgpu {

// The least of what threads, block slots, registers and shared memory allow; 0 when not even one fits.
int blocks_per_sm(const CUfunc_st& function, unsigned block_size, std::size_t dynamic_shared_bytes);

// Shared memory that the system takes for each block, in bytes.
std::size_t reserved_shared(const Profile& profile);

// The most shared memory a block of the function may have, static and dynamic together.
int shared_limit(const CUfunc_st& function);

}  // namespace softgpu
