// cuGetProcAddress, as the ABI has it.
#include "softgpu/driver/api.h"
#include "softgpu/driver/entry/unsupported.h"

using softgpu::Resolution;

CUresult cuGetProcAddress_v2(const char* symbol, void** function, int cuda_version, cuuint64_t flags,
                             CUdriverProcAddressQueryResult* status) {
  if (symbol == nullptr || function == nullptr || flags > CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const bool per_thread = flags == CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
  const Resolution resolution = softgpu::resolve_symbol(symbol, cuda_version, per_thread);
  *function = resolution.address;
  if (status != nullptr) {
    *status = resolution.outcome == Resolution::Outcome::kFound           ? CU_GET_PROC_ADDRESS_SUCCESS
              : resolution.outcome == Resolution::Outcome::kVersionTooOld ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
                                                                          : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  }
  return resolution.address != nullptr ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

CUresult cuGetProcAddress(const char* symbol, void** function, int cuda_version, cuuint64_t flags) {
  return cuGetProcAddress_v2(symbol, function, cuda_version, flags, nullptr);
}
