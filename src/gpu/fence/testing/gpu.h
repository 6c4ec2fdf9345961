// A GPU for the fence's tests: the software GPU through its driver, with memory of two tenants side by side.
#pragma once

#include <dlfcn.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

#define CUDA_ABI_EXACT_NAMES
#include "abi/cuda.h"

namespace fairlead::fence::testing {

// clang-format off
#define FENCE_DRIVER_CALLS(X) \
  X(cuInit) X(cuGetErrorName) X(cuDeviceGet) X(cuCtxCreate_v2) X(cuCtxDestroy_v2) X(cuCtxSetCurrent) \
  X(cuCtxSynchronize) X(cuMemAddressReserve) X(cuMemCreate) X(cuMemMap) X(cuMemSetAccess) X(cuMemUnmap) \
  X(cuMemRelease) X(cuMemAddressFree) X(cuMemcpyHtoD_v2) X(cuMemcpyDtoH_v2) X(cuMemsetD8_v2) X(cuModuleLoadData) \
  X(cuModuleUnload) X(cuModuleGetFunction) X(cuFuncGetParamInfo) X(cuLaunchKernel)
// clang-format on

#ifdef SOFTGPU_FOLDER  // as CMakeLists.txt says
inline constexpr const char* kSoftwareDriver = SOFTGPU_FOLDER "/libcuda.so.1";
#else
inline constexpr const char* kSoftwareDriver = "libcuda.so.1";
#endif

struct Driver {
#define FENCE_DRIVER_MEMBER(name) decltype(&::name) name = nullptr;
  FENCE_DRIVER_CALLS(FENCE_DRIVER_MEMBER)
#undef FENCE_DRIVER_MEMBER

  // The software GPU of the build, with a home of its own.
  static const Driver& instance() {
    static const Driver driver = [] {
      const std::filesystem::path home = std::filesystem::temp_directory_path() / ("fence-" + std::to_string(getpid()));
      std::filesystem::create_directories(home);
      static const std::filesystem::path removed_at_end = home;
      std::atexit([] { std::filesystem::remove_all(removed_at_end); });
      ::setenv("SOFTGPU_HOME", home.c_str(), 1);
      ::setenv("SOFTGPU_PROFILE", "a100-40", 1);
      // Blocks in order: what a launch computes does not depend on how busy the machine is.
      ::setenv("SOFTGPU_WORKERS", "1", 1);
      void* library = ::dlopen(kSoftwareDriver, RTLD_NOW);
      if (library == nullptr) throw std::runtime_error(::dlerror());
      Driver out;
#define FENCE_DRIVER_RESOLVE(name)                                                                   \
  if (out.name = reinterpret_cast<decltype(out.name)>(::dlsym(library, #name)); out.name == nullptr) \
    throw std::runtime_error("libcuda.so.1 lacks " #name);
      FENCE_DRIVER_CALLS(FENCE_DRIVER_RESOLVE)
#undef FENCE_DRIVER_RESOLVE
      return out;
    }();
    return driver;
  }

  void check(CUresult result, const char* what) const {
    if (result == CUDA_SUCCESS) return;
    const char* name = nullptr;
    cuGetErrorName(result, &name);
    throw std::runtime_error(std::string(what) + ": " + (name == nullptr ? "?" : name));
  }
};

constexpr std::uint64_t kMiB = 1 << 20;

// 16 MiB of addresses: a victim's page at 0 and at 10 MiB, the tenant's own range from 4 to 8 MiB.
class Neighbourhood {
 public:
  static constexpr std::uint64_t kRange = 4 * kMiB;

  Neighbourhood() {
    driver_.check(driver_.cuInit(0), "cuInit");
    driver_.check(driver_.cuDeviceGet(&device_, 0), "cuDeviceGet");
    driver_.check(driver_.cuCtxCreate_v2(&observer_, 0, device_), "cuCtxCreate");
    driver_.check(driver_.cuMemAddressReserve(&start_, 16 * kMiB, 16 * kMiB, 0, 0), "cuMemAddressReserve");
    for (const auto& [offset, bytes] : kMapped) map(start_ + offset, bytes);
  }
  ~Neighbourhood() {
    driver_.cuCtxSetCurrent(observer_);
    for (const auto& [offset, bytes] : kMapped) driver_.cuMemUnmap(start_ + offset, bytes);
    for (const CUmemGenericAllocationHandle handle : handles_) driver_.cuMemRelease(handle);
    driver_.cuMemAddressFree(start_, 16 * kMiB);
    driver_.cuCtxDestroy_v2(observer_);
  }
  Neighbourhood(const Neighbourhood&) = delete;
  Neighbourhood& operator=(const Neighbourhood&) = delete;

  std::uint64_t own() const { return start_ + 4 * kMiB; }
  std::uint64_t victim_below() const { return start_; }
  std::uint64_t victim_above() const { return start_ + 10 * kMiB; }
  static constexpr std::uint64_t kVictimBytes = 2 * kMiB;

  void fill(std::uint64_t address, std::uint8_t value, std::uint64_t bytes) {
    driver_.cuCtxSetCurrent(observer_);
    driver_.check(driver_.cuMemsetD8_v2(address, value, bytes), "cuMemsetD8");
  }
  void write(std::uint64_t address, const void* from, std::uint64_t bytes) {
    driver_.cuCtxSetCurrent(observer_);
    if (bytes > 0) driver_.check(driver_.cuMemcpyHtoD_v2(address, from, bytes), "cuMemcpyHtoD");
  }
  std::vector<std::uint8_t> read(std::uint64_t address, std::uint64_t bytes) {
    std::vector<std::uint8_t> out(bytes);
    driver_.cuCtxSetCurrent(observer_);
    driver_.check(driver_.cuMemcpyDtoH_v2(out.data(), address, bytes), "cuMemcpyDtoH");
    return out;
  }

  struct Run {
    std::string ptx, kernel;
    std::vector<std::uint64_t> parameters;  // of 8 bytes each
    unsigned x = 32, y = 1, z = 1;          // threads
    unsigned shared = 0;                    // bytes of dynamic shared memory
    unsigned blocks = 1;
  };
  // Loads the modules, runs the kernels one after the other in one context, new for that, and returns how they ended. A
  // kernel is launched while the one before runs, so that mostly one of the software GPU's threads runs all.
  CUresult run(std::vector<Run> runs) {
    CUcontext context = nullptr;
    driver_.check(driver_.cuCtxCreate_v2(&context, 0, device_), "cuCtxCreate");
    CUresult result = CUDA_SUCCESS;
    std::vector<CUfunction> functions(runs.size());
    for (std::size_t i = 0; i < runs.size() && result == CUDA_SUCCESS; ++i) result = load(runs[i], functions[i]);
    for (std::size_t i = 0; i < runs.size() && result == CUDA_SUCCESS; ++i) result = launch(runs[i], functions[i]);
    if (result == CUDA_SUCCESS) result = driver_.cuCtxSynchronize();
    driver_.cuCtxDestroy_v2(context);
    return result;
  }
  CUresult run(const std::string& ptx, const std::string& kernel, std::vector<std::uint64_t> parameters,
               unsigned threads = 32) {
    return run({Run{.ptx = ptx, .kernel = kernel, .parameters = std::move(parameters), .x = threads}});
  }

 private:
  static constexpr std::pair<std::uint64_t, std::uint64_t> kMapped[] = {
      {0, 2 * kMiB}, {4 * kMiB, 4 * kMiB}, {10 * kMiB, 2 * kMiB}};

  CUresult load(const Run& run, CUfunction& function) {
    CUmodule module = nullptr;
    const CUresult result = driver_.cuModuleLoadData(&module, run.ptx.c_str());
    return result == CUDA_SUCCESS ? driver_.cuModuleGetFunction(&function, module, run.kernel.c_str()) : result;
  }
  CUresult launch(Run& run, CUfunction function) {
    std::vector<void*> pointers;
    for (std::uint64_t& parameter : run.parameters) pointers.push_back(&parameter);
    return driver_.cuLaunchKernel(function, run.blocks, 1, 1, run.x, run.y, run.z, run.shared, nullptr, pointers.data(),
                                  nullptr);
  }

  void map(CUdeviceptr address, std::uint64_t bytes) {
    CUmemAllocationProp properties{};
    properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, device_};
    CUmemGenericAllocationHandle handle = 0;
    driver_.check(driver_.cuMemCreate(&handle, bytes, &properties, 0), "cuMemCreate");
    handles_.push_back(handle);
    driver_.check(driver_.cuMemMap(address, bytes, 0, handle, 0), "cuMemMap");
    const CUmemAccessDesc access{properties.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    driver_.check(driver_.cuMemSetAccess(address, bytes, &access, 1), "cuMemSetAccess");
  }

  const Driver& driver_ = Driver::instance();
  CUdevice device_ = 0;
  CUcontext observer_ = nullptr;
  CUdeviceptr start_ = 0;
  std::vector<CUmemGenericAllocationHandle> handles_;
};

}  // namespace fairlead::fence::testing
