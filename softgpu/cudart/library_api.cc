// Libraries and kernels that a program loads by itself.
#include "softgpu/cudart/api.h"

using softgpu::cudart::device_address;
using softgpu::cudart::Driver;
using softgpu::cudart::in_context;
using softgpu::cudart::with_driver;

cudaError_t cudaLibraryLoadData(cudaLibrary_t* library, const void* code, CUjit_option* jit_options, void** jit_values,
                                unsigned jit_count, CUlibraryOption* options, void** values, unsigned count) {
  return in_context([&](const Driver& driver) {
    return driver.cuLibraryLoadData(library, code, jit_options, jit_values, jit_count, options, values, count);
  });
}

cudaError_t cudaLibraryLoadFromFile(cudaLibrary_t* library, const char* path, CUjit_option* jit_options,
                                    void** jit_values, unsigned jit_count, CUlibraryOption* options, void** values,
                                    unsigned count) {
  return in_context([&](const Driver& driver) {
    return driver.cuLibraryLoadFromFile(library, path, jit_options, jit_values, jit_count, options, values, count);
  });
}

cudaError_t cudaLibraryUnload(cudaLibrary_t library) {
  return with_driver([&](const Driver& driver) { return driver.cuLibraryUnload(library); });
}

cudaError_t cudaLibraryGetKernel(cudaKernel_t* kernel, cudaLibrary_t library, const char* name) {
  return with_driver([&](const Driver& driver) { return driver.cuLibraryGetKernel(kernel, library, name); });
}

cudaError_t cudaLibraryGetKernelCount(unsigned* count, cudaLibrary_t library) {
  return with_driver([&](const Driver& driver) { return driver.cuLibraryGetKernelCount(count, library); });
}

cudaError_t cudaLibraryEnumerateKernels(cudaKernel_t* kernels, unsigned count, cudaLibrary_t library) {
  return with_driver([&](const Driver& driver) { return driver.cuLibraryEnumerateKernels(kernels, count, library); });
}

cudaError_t cudaLibraryGetGlobal(void** address, size_t* bytes, cudaLibrary_t library, const char* name) {
  return in_context(
      [&](const Driver& driver) { return driver.cuLibraryGetGlobal(device_address(address), bytes, library, name); });
}

cudaError_t cudaLibraryGetManaged(void** address, size_t* bytes, cudaLibrary_t library, const char* name) {
  return in_context(
      [&](const Driver& driver) { return driver.cuLibraryGetManaged(device_address(address), bytes, library, name); });
}

cudaError_t cudaLibraryGetUnifiedFunction(void** function, cudaLibrary_t library, const char* symbol) {
  return with_driver(
      [&](const Driver& driver) { return driver.cuLibraryGetUnifiedFunction(function, library, symbol); });
}

cudaError_t cudaKernelSetAttributeForDevice(cudaKernel_t kernel, cudaFuncAttribute attribute, int value, int device) {
  return with_driver([&](const Driver& driver) {
    return driver.cuKernelSetAttribute(static_cast<CUfunction_attribute>(attribute), value, kernel, device);
  });
}
