// Errors, versions, the driver's entry points, the profiler.
#include <algorithm>
#include <cctype>
#include <map>
#include <string>
#include <string_view>

#include "softgpu/cudart/api.h"

using softgpu::cudart::Driver;
using softgpu::cudart::report;

namespace {

// cudaErrorIllegalAddress -> "illegal address".
std::string words_of(std::string_view name) {
  name.remove_prefix(std::string_view("cudaError").size());
  std::string words;
  for (std::size_t i = 0; i < name.size(); ++i) {
    const bool is_upper = std::isupper(static_cast<unsigned char>(name[i])) != 0;
    const bool begins = i > 0 && is_upper && std::islower(static_cast<unsigned char>(name[i - 1])) != 0;
    if (begins) words += ' ';
    words += static_cast<char>(std::tolower(static_cast<unsigned char>(name[i])));
  }
  return words;
}

struct ErrorText {
  const char* name;
  std::string text;
};

const ErrorText* find_text(cudaError_t error) {
  static const auto* const texts = new std::map<int, ErrorText>{
#define CUDART_ERROR_TEXT(name, value) {value, {#name, (value) == 0 ? "no error" : words_of(#name)}},
      CUDA_RUNTIME_ERRORS(CUDART_ERROR_TEXT)
#undef CUDART_ERROR_TEXT
  };
  const auto found = texts->find(error);
  return found != texts->end() ? &found->second : nullptr;
}

// By its symbol: Driver has no member for it.
cudaError_t profiler(const char* symbol) {
  const Driver* driver = nullptr;
  if (const cudaError_t error = softgpu::cudart::initialise(driver); error != cudaSuccess) return report(error);
  const auto call = reinterpret_cast<CUresult (*)()>(softgpu::cudart::driver_symbol(symbol));
  return call != nullptr ? report(call()) : report(cudaErrorNotSupported);
}

}  // namespace

cudaError_t cudaGetLastError(void) {
  const cudaError_t error = softgpu::cudart::last_error();
  softgpu::cudart::forget_error();
  return error;
}

cudaError_t cudaPeekAtLastError(void) {
  return softgpu::cudart::last_error();
}

const char* cudaGetErrorName(cudaError_t error) {
  const ErrorText* found = find_text(error);
  return found != nullptr ? found->name : "unrecognized error code";
}

const char* cudaGetErrorString(cudaError_t error) {
  const ErrorText* found = find_text(error);
  return found != nullptr ? found->text.c_str() : "unrecognized error code";
}

cudaError_t cudaDriverGetVersion(int* version) {
  if (version == nullptr) return report(cudaErrorInvalidValue);
  const Driver* driver = softgpu::cudart::load_driver();
  *version = 0;  // as documented for a computer without a driver
  return driver != nullptr ? report(driver->cuDriverGetVersion(version)) : cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int* version) {
  if (version == nullptr) return report(cudaErrorInvalidValue);
  *version = CUDART_VERSION;
  return cudaSuccess;
}

cudaError_t cudaGetDriverEntryPointByVersion(const char* symbol, void** function, unsigned version,
                                             unsigned long long flags, cudaDriverEntryPointQueryResult* status) {
  if (symbol == nullptr || function == nullptr) return report(cudaErrorInvalidValue);
  const Driver* driver = softgpu::cudart::load_driver();
  if (driver == nullptr) return report(cudaErrorInsufficientDriver);
  CUdriverProcAddressQueryResult answer = CU_GET_PROC_ADDRESS_SUCCESS;
  const CUresult result = driver->cuGetProcAddress(symbol, function, static_cast<int>(version), flags, &answer);
  if (status != nullptr) *status = answer;
  // With a place for the status a missing symbol is an answer and no error.
  return result == CUDA_ERROR_NOT_FOUND && status != nullptr ? cudaSuccess : report(result);
}

cudaError_t cudaGetDriverEntryPoint(const char* symbol, void** function, unsigned long long flags,
                                    cudaDriverEntryPointQueryResult* status) {
  return cudaGetDriverEntryPointByVersion(symbol, function, CUDART_VERSION, flags, status);
}

cudaError_t cudaGetExportTable(const void**, const CUuuid*) {
  return report(cudaErrorSymbolNotFound);
}

cudaError_t cudaProfilerStart(void) {
  return profiler("cuProfilerStart");
}

cudaError_t cudaProfilerStop(void) {
  return profiler("cuProfilerStop");
}
