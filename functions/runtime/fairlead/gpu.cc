#include "fairlead/gpu.h"

#include <dlfcn.h>

#include <utility>

#include "fairlead/driver.h"
#include "fairlead/error.h"

namespace fairlead {

namespace {

template <class Function>
void resolve(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(::dlsym(library, name));
  if (function == nullptr) throw Error("Gpu.DriverTooOld", std::string("libcuda.so.1 lacks ") + name);
}

Driver load_driver() {
  void* library = ::dlopen("libcuda.so.1", RTLD_NOW);
  if (library == nullptr) {
    throw Error("Gpu.NoDriver", std::string("the CUDA driver cannot be loaded: ") + ::dlerror() +
                                    "; install the GPU's driver or put the software GPU's folder on LD_LIBRARY_PATH");
  }
  Driver driver;
#define FAIRLEAD_DRIVER_RESOLVE(name) resolve(library, #name, driver.name);
  FAIRLEAD_DRIVER_CALLS(FAIRLEAD_DRIVER_RESOLVE)
#undef FAIRLEAD_DRIVER_RESOLVE
  return driver;
}

const Driver& shared_driver() {
  static const Driver driver = load_driver();
  return driver;
}

// After these the context answers every call with the same error.
bool context_is_lost(CUresult result) {
  switch (result) {
    case CUDA_ERROR_ECC_UNCORRECTABLE:
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_CONTEXT_IS_DESTROYED:
    case CUDA_ERROR_ASSERT:
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_INVALID_ADDRESS_SPACE:
    case CUDA_ERROR_INVALID_PC:
    case CUDA_ERROR_LAUNCH_FAILED:
    case CUDA_ERROR_MPS_RPC_FAILURE:
    case CUDA_ERROR_MPS_CLIENT_TERMINATED:
    case CUDA_ERROR_UNKNOWN: return true;
    default: return false;
  }
}

[[noreturn]] void fail(const Driver& driver, CUresult result, const std::string& what) {
  const char* name = nullptr;
  const char* text = nullptr;
  driver.cuGetErrorName(result, &name);
  driver.cuGetErrorString(result, &text);
  const std::string shown = name != nullptr ? name : "CUDA_ERROR_" + std::to_string(result);
  throw Error("Gpu." + shown, what + ": " + shown + (text != nullptr ? std::string(" (") + text + ")" : ""),
              context_is_lost(result) ? Error::Scope::kTerminal : Error::Scope::kRequest);
}

void check(const Driver& driver, CUresult result, const char* call) {
  if (result != CUDA_SUCCESS) fail(driver, result, call);
}

}  // namespace

void check_driver(const Driver& driver, CUresult result, const char* call) {
  check(driver, result, call);
}

Gpu::Gpu(int ordinal) : driver_(shared_driver()) {
  check(driver_, driver_.cuInit(0), "cuInit");
  if (const CUresult result = driver_.cuDeviceGet(&device_, ordinal); result != CUDA_SUCCESS) {
    fail(driver_, result, "cuDeviceGet of device " + std::to_string(ordinal));
  }
  char name[256] = {};
  check(driver_, driver_.cuDeviceGetName(name, sizeof name, device_), "cuDeviceGetName");
  name_ = name;
  check(driver_, driver_.cuDeviceTotalMem_v2(&memory_bytes_, device_), "cuDeviceTotalMem");
  CUcontext context = nullptr;
  check(driver_, driver_.cuDevicePrimaryCtxRetain(&context, device_), "cuDevicePrimaryCtxRetain");
  check(driver_, driver_.cuCtxSetCurrent(context), "cuCtxSetCurrent");
}

Gpu::~Gpu() {
  driver_.cuDevicePrimaryCtxRelease_v2(device_);
}

void Gpu::synchronize() const {
  check(driver_, driver_.cuCtxSynchronize(), "cuCtxSynchronize");
}

Buffer::Buffer(const Gpu& gpu, std::size_t bytes) : driver_(&gpu.driver()), bytes_(bytes) {
  CUdeviceptr address = 0;
  if (bytes == 0) return;
  if (const CUresult result = driver_->cuMemAlloc_v2(&address, bytes); result != CUDA_SUCCESS) {
    fail(*driver_, result, "cuMemAlloc of " + std::to_string(bytes) + " bytes");
  }
  address_ = address;
}

Buffer::~Buffer() {
  if (address_ != 0) driver_->cuMemFree_v2(address_);
}

Buffer::Buffer(Buffer&& other) noexcept
    : driver_(other.driver_), address_(std::exchange(other.address_, 0)), bytes_(std::exchange(other.bytes_, 0)) {}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  std::swap(driver_, other.driver_);
  std::swap(address_, other.address_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

void Buffer::upload(const void* source, std::size_t bytes) {
  if (bytes > 0) check(*driver_, driver_->cuMemcpyHtoD_v2(address_, source, bytes), "cuMemcpyHtoD");
}

void Buffer::download(void* target, std::size_t bytes) const {
  if (bytes > 0) check(*driver_, driver_->cuMemcpyDtoH_v2(target, address_, bytes), "cuMemcpyDtoH");
}

void Buffer::fill(std::uint8_t value) {
  if (bytes_ > 0) check(*driver_, driver_->cuMemsetD8_v2(address_, value, bytes_), "cuMemsetD8");
}

void Kernel::launch_raw(Dim3 grid, Dim3 block, void** arguments) const {
  const CUresult result =
      driver_->cuLaunchKernel(static_cast<CUfunction>(function_), grid.x, grid.y, grid.z, block.x, block.y, block.z,
                              /*shared_bytes=*/0, /*stream=*/nullptr, arguments, /*extra=*/nullptr);
  if (result != CUDA_SUCCESS) fail(*driver_, result, "launch of " + name_);
}

Module::Module(const Gpu& gpu, const char* ptx) : driver_(&gpu.driver()) {
  char log[4096] = {};
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void* values[] = {log, reinterpret_cast<void*>(sizeof log)};
  CUmodule module = nullptr;
  const CUresult result = driver_->cuModuleLoadDataEx(&module, ptx, 2, options, values);
  if (result != CUDA_SUCCESS) fail(*driver_, result, std::string("cuModuleLoadData: ") + log);
  module_ = module;
}

Module::~Module() {
  driver_->cuModuleUnload(static_cast<CUmodule>(module_));
}

Kernel Module::kernel(const char* name) const {
  CUfunction function = nullptr;
  const CUresult result = driver_->cuModuleGetFunction(&function, static_cast<CUmodule>(module_), name);
  if (result != CUDA_SUCCESS) fail(*driver_, result, std::string("cuModuleGetFunction of ") + name);
  return Kernel(*driver_, function, name);
}

GpuTimer::GpuTimer(const Gpu& gpu) : driver_(&gpu.driver()) {
  check(*driver_, driver_->cuEventCreate(reinterpret_cast<CUevent*>(&begin_), CU_EVENT_DEFAULT), "cuEventCreate");
  check(*driver_, driver_->cuEventCreate(reinterpret_cast<CUevent*>(&end_), CU_EVENT_DEFAULT), "cuEventCreate");
}

GpuTimer::~GpuTimer() {
  driver_->cuEventDestroy_v2(static_cast<CUevent>(begin_));
  driver_->cuEventDestroy_v2(static_cast<CUevent>(end_));
}

void GpuTimer::start() {
  check(*driver_, driver_->cuEventRecord(static_cast<CUevent>(begin_), nullptr), "cuEventRecord");
}

double GpuTimer::stop_ms() {
  check(*driver_, driver_->cuEventRecord(static_cast<CUevent>(end_), nullptr), "cuEventRecord");
  check(*driver_, driver_->cuEventSynchronize(static_cast<CUevent>(end_)), "cuEventSynchronize");
  float milliseconds = 0;
  check(*driver_, driver_->cuEventElapsedTime(&milliseconds, static_cast<CUevent>(begin_), static_cast<CUevent>(end_)),
        "cuEventElapsedTime");
  return milliseconds;
}

}  // namespace fairlead
