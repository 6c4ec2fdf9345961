// The runtime's ABI as its implementation sees it: exact names, exported.
#pragma once

#pragma GCC visibility push(default)
#include "abi/cuda_runtime.h"
#pragma GCC visibility pop

#include "softgpu/cudart/runtime.h"
