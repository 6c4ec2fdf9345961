// Launches as CUDA 3 had them: shape and parameters are set on the function, one call each, and stay there.
#include <cstring>
#include <map>
#include <vector>

#include "softgpu/driver/code/module.h"
#include "softgpu/mutex.h"

using softgpu::Functions;

namespace {

struct Settings {
  int block[3] = {1, 1, 1};
  unsigned shared_bytes = 0;
  std::vector<char> parameters;
};

// By function: nobody else needs them.
struct AllSettings {
  softgpu::Mutex mutex;
  std::map<CUfunction, Settings> settings SOFTGPU_GUARDED_BY(mutex);
};

AllSettings& all_settings() {
  static auto* instance = new AllSettings;
  return *instance;
}

template <typename Change>
CUresult change(CUfunction function, Change make) {
  if (softgpu::Process::get() == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  if (!Functions::valid(function)) return CUDA_ERROR_INVALID_HANDLE;
  AllSettings& all = all_settings();
  const softgpu::LockGuard guard(all.mutex);
  return make(all.settings[function]);
}

}  // namespace

CUresult cuFuncSetBlockShape(CUfunction function, int x, int y, int z) {
  if (x <= 0 || y <= 0 || z <= 0) return CUDA_ERROR_INVALID_VALUE;
  return change(function, [&](Settings& settings) {
    settings.block[0] = x;
    settings.block[1] = y;
    settings.block[2] = z;
    return CUDA_SUCCESS;
  });
}

CUresult cuFuncSetSharedSize(CUfunction function, unsigned bytes) {
  return change(function, [&](Settings& settings) {
    settings.shared_bytes = bytes;
    return CUDA_SUCCESS;
  });
}

CUresult cuParamSetSize(CUfunction function, unsigned bytes) {
  return change(function, [&](Settings& settings) {
    if (bytes > function->kernel->info().parameter_bytes) return CUDA_ERROR_INVALID_VALUE;
    settings.parameters.resize(bytes);
    return CUDA_SUCCESS;
  });
}

CUresult cuParamSetv(CUfunction function, int offset, void* value, unsigned bytes) {
  if (value == nullptr || offset < 0) return CUDA_ERROR_INVALID_VALUE;
  return change(function, [&](Settings& settings) {
    const std::size_t end = static_cast<std::size_t>(offset) + bytes;
    if (end > function->kernel->info().parameter_bytes) return CUDA_ERROR_INVALID_VALUE;
    if (settings.parameters.size() < end) settings.parameters.resize(end);
    std::memcpy(settings.parameters.data() + offset, value, bytes);
    return CUDA_SUCCESS;
  });
}

CUresult cuParamSeti(CUfunction function, int offset, unsigned value) {
  return cuParamSetv(function, offset, &value, sizeof value);
}

CUresult cuParamSetf(CUfunction function, int offset, float value) {
  return cuParamSetv(function, offset, &value, sizeof value);
}

CUresult cuLaunchGridAsync(CUfunction function, int width, int height, CUstream stream) {
  Settings settings;
  if (width <= 0 || height <= 0) return CUDA_ERROR_INVALID_VALUE;
  SOFTGPU_TRY(change(function, [&](const Settings& current) {
    settings = current;
    return CUDA_SUCCESS;
  }));
  const auto dimension = [](int value) { return static_cast<unsigned>(value); };
  std::size_t bytes = settings.parameters.size();
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, settings.parameters.data(), CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes,
                   CU_LAUNCH_PARAM_END};
  return cuLaunchKernel(function, dimension(width), dimension(height), 1, dimension(settings.block[0]),
                        dimension(settings.block[1]), dimension(settings.block[2]), settings.shared_bytes, stream,
                        nullptr, extra);
}

CUresult cuLaunchGrid(CUfunction function, int width, int height) {
  return cuLaunchGridAsync(function, width, height, nullptr);
}

CUresult cuLaunch(CUfunction function) {
  return cuLaunchGridAsync(function, 1, 1, nullptr);
}
