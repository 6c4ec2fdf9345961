#include "gpu/driver.h"

#include <array>

#include "abi/cuda.h"
#include "gpu/shared_library.h"

namespace fairlead {
namespace {

constexpr const char* kAdvice =
    "install the NVIDIA driver (Debian: nvidia-driver and libcuda1), or use the software GPU (--softgpu)";

std::string_view advice_for(CUresult code) {
  switch (code) {
    case CUDA_ERROR_NO_DEVICE: return ": no GPU is visible (is CUDA_VISIBLE_DEVICES empty?)";
    case CUDA_ERROR_STUB_LIBRARY: return ": this is the toolkit's stub, not the driver; install the driver";
    default: return "";
  }
}

}  // namespace

struct CudaDriver::Library {
  explicit Library(SharedLibrary file) : shared(std::move(file)) {}

  Status bind_all() {
    for (const Status& status :
         {shared.bind(init, "cuInit"), shared.bind(error_name, "cuGetErrorName"),
          shared.bind(version, "cuDriverGetVersion"), shared.bind(device_count, "cuDeviceGetCount"),
          shared.bind(device_get, "cuDeviceGet"), shared.bind(name, "cuDeviceGetName"),
          shared.bind(total_memory, "cuDeviceTotalMem_v2"), shared.bind(attribute, "cuDeviceGetAttribute")}) {
      if (!status) return status;
    }
    return {};
  }

  Status check(CUresult code, const std::string& what) const {
    if (code == CUDA_SUCCESS) return {};
    const char* text = nullptr;
    if (error_name(code, &text) != CUDA_SUCCESS || text == nullptr) text = "unknown error";
    return fail(Errc::kUnavailable, "CUDA driver {}: {}: {} ({}){}", shared.path(), what, text, static_cast<int>(code),
                advice_for(code));
  }

  Status read(int ordinal, Device& out) const;

  SharedLibrary shared;
  decltype(cuInit)* init = nullptr;
  decltype(cuGetErrorName)* error_name = nullptr;
  decltype(cuDriverGetVersion)* version = nullptr;
  decltype(cuDeviceGetCount)* device_count = nullptr;
  decltype(cuDeviceGet)* device_get = nullptr;
  decltype(cuDeviceGetName)* name = nullptr;
  decltype(cuDeviceTotalMem_v2)* total_memory = nullptr;
  decltype(cuDeviceGetAttribute)* attribute = nullptr;
};

Status CudaDriver::Library::read(int ordinal, Device& out) const {
  CUdevice device = 0;
  std::array<char, 256> text{};
  std::size_t bytes = 0;
  CUresult code = device_get(&device, ordinal);
  if (code == CUDA_SUCCESS) code = name(text.data(), text.size(), device);
  if (code == CUDA_SUCCESS) code = total_memory(&bytes, device);
  if (code == CUDA_SUCCESS) {
    code = attribute(&out.compute_major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device);
  }
  if (code == CUDA_SUCCESS) {
    code = attribute(&out.compute_minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device);
  }
  out.name = text.data();
  out.memory = Bytes(static_cast<std::int64_t>(bytes));
  return check(code, fmt::format("properties of GPU {}", ordinal));
}

CudaDriver::CudaDriver(std::unique_ptr<Library> library) : library_(std::move(library)) {}
CudaDriver::~CudaDriver() = default;

Result<std::unique_ptr<CudaDriver>> CudaDriver::load(const std::string& library_dir) {
  Result<SharedLibrary> shared = SharedLibrary::load(library_dir, "libcuda.so.1", kAdvice);
  if (!shared) return fail(shared.error());
  auto library = std::make_unique<Library>(std::move(*shared));
  if (Status status = library->bind_all(); !status) return fail(status.error());
  if (Status status = library->check(library->init(0), "start"); !status) return fail(status.error());
  return std::unique_ptr<CudaDriver>(new CudaDriver(std::move(library)));
}

Result<std::string> CudaDriver::version() const {
  int version = 0;  // 1000 x major + 10 x minor
  if (Status status = library_->check(library_->version(&version), "version"); !status) return fail(status.error());
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

Result<std::vector<CudaDriver::Device>> CudaDriver::devices() const {
  int count = 0;
  if (Status status = library_->check(library_->device_count(&count), "number of GPUs"); !status) {
    return fail(status.error());
  }
  std::vector<Device> devices(static_cast<std::size_t>(count));
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    Status status = library_->read(ordinal, devices[static_cast<std::size_t>(ordinal)]);
    if (!status) return fail(status.error());
  }
  return devices;
}

const std::string& CudaDriver::library_path() const {
  return library_->shared.path();
}

}  // namespace fairlead
