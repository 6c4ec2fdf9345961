// The CUDA driver under test: libcuda.so.1, opened at run time, so that the same binary checks the software GPU and a real
// one. Entry points are reached as driver().cuMemAlloc(...), with the names and versions of abi/cuda.h.
#pragma once

#include <string>

#include "abi/cuda.h"
#include "softgpu/conformance/entry_points.h"

namespace softgpu::conformance {

struct Driver {
#define CONFORMANCE_MEMBER(name) decltype(&::name) name = nullptr;
  CONFORMANCE_ENTRY_POINTS(CONFORMANCE_MEMBER)
#undef CONFORMANCE_MEMBER
};

// Opens `library` and resolves every entry point; one that an old driver lacks returns CUDA_ERROR_NOT_SUPPORTED. False,
// and why in `error`, if the library cannot be opened or is no CUDA driver. Called once, before driver().
bool open_driver(const char* library, std::string& error);

const Driver& driver();

// The library that was opened, and one of its symbols by its exact name, or null.
const char* driver_library();
void* driver_symbol(const char* name);

// "CUDA_ERROR_INVALID_VALUE", or the number of a code the driver does not know.
std::string name_of(CUresult result);

}  // namespace softgpu::conformance
