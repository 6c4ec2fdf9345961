#include "gpu/context.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "base/check.h"
#include "gpu/shared_library.h"

namespace fairlead {
namespace {

constexpr const char* kAdvice =
    "install the NVIDIA driver (Debian: nvidia-driver and libcuda1), or use the software GPU (--softgpu)";
constexpr std::size_t kJitLogBytes = 8192;
constexpr int kFuncLoadSince = 12040;  // CUDA's version that brought cuFuncLoad

std::size_t size_of(Bytes bytes) {
  return static_cast<std::size_t>(bytes.count());
}

// The device, its context and what its errors are called.
struct DeviceCalls {
  Status bind(const SharedLibrary& shared);

  decltype(cuInit)* init = nullptr;
  decltype(cuGetErrorName)* error_name = nullptr;
  decltype(cuGetErrorString)* error_text = nullptr;
  decltype(cuDeviceGet)* get = nullptr;
  decltype(cuDeviceGetName)* name = nullptr;
  decltype(cuDeviceGetAttribute)* attribute = nullptr;
  decltype(cuDevicePrimaryCtxRetain)* retain = nullptr;
  decltype(cuCtxSetCurrent)* set_current = nullptr;
  decltype(cuCtxSynchronize)* synchronize = nullptr;
  decltype(cuMemGetInfo_v2)* memory_info = nullptr;
};

// Device memory, and the addresses at which it is mapped.
struct MappingCalls {
  Status bind(const SharedLibrary& shared);

  decltype(cuMemGetAllocationGranularity)* granularity = nullptr;
  decltype(cuMemAddressReserve)* reserve = nullptr;
  decltype(cuMemAddressFree)* free = nullptr;
  decltype(cuMemCreate)* create = nullptr;
  decltype(cuMemRelease)* release = nullptr;
  decltype(cuMemMap)* map = nullptr;
  decltype(cuMemUnmap)* unmap = nullptr;
  decltype(cuMemSetAccess)* set_access = nullptr;
};

// Host memory that the driver has pinned.
struct HostMemoryCalls {
  Status bind(const SharedLibrary& shared);

  decltype(cuMemHostAlloc)* alloc = nullptr;
  decltype(cuMemFreeHost)* free = nullptr;
  decltype(cuMemHostRegister_v2)* pin = nullptr;
  decltype(cuMemHostUnregister)* unpin = nullptr;
};

// Modules and the kernels in them.
struct CodeCalls {
  Status bind(const SharedLibrary& shared);

  decltype(cuModuleLoadDataEx)* load = nullptr;
  decltype(cuModuleUnload)* unload = nullptr;
  decltype(cuModuleGetFunction)* get_kernel = nullptr;
  decltype(cuFuncGetAttribute)* attribute = nullptr;
  decltype(cuFuncSetAttribute)* set_attribute = nullptr;
  decltype(cuFuncLoad)* load_kernel = nullptr;  // null: the driver lacks it
};

// Streams and events.
struct StreamCalls {
  Status bind(const SharedLibrary& shared);

  decltype(cuStreamCreate)* create = nullptr;
  decltype(cuStreamSynchronize)* synchronize = nullptr;
  decltype(cuEventCreate)* create_event = nullptr;
  decltype(cuEventDestroy_v2)* destroy_event = nullptr;
  decltype(cuEventElapsedTime)* elapsed = nullptr;
};

Status DeviceCalls::bind(const SharedLibrary& shared) {
  for (const Status& status :
       {shared.bind(init, "cuInit"), shared.bind(error_name, "cuGetErrorName"),
        shared.bind(error_text, "cuGetErrorString"), shared.bind(get, "cuDeviceGet"),
        shared.bind(name, "cuDeviceGetName"), shared.bind(attribute, "cuDeviceGetAttribute"),
        shared.bind(retain, "cuDevicePrimaryCtxRetain"), shared.bind(set_current, "cuCtxSetCurrent"),
        shared.bind(synchronize, "cuCtxSynchronize"), shared.bind(memory_info, "cuMemGetInfo_v2")}) {
    if (!status) return status;
  }
  return {};
}

Status MappingCalls::bind(const SharedLibrary& shared) {
  for (const Status& status :
       {shared.bind(granularity, "cuMemGetAllocationGranularity"), shared.bind(reserve, "cuMemAddressReserve"),
        shared.bind(free, "cuMemAddressFree"), shared.bind(create, "cuMemCreate"), shared.bind(release, "cuMemRelease"),
        shared.bind(map, "cuMemMap"), shared.bind(unmap, "cuMemUnmap"), shared.bind(set_access, "cuMemSetAccess")}) {
    if (!status) return status;
  }
  return {};
}

Status HostMemoryCalls::bind(const SharedLibrary& shared) {
  for (const Status& status : {shared.bind(alloc, "cuMemHostAlloc"), shared.bind(free, "cuMemFreeHost"),
                               shared.bind(pin, "cuMemHostRegister_v2"), shared.bind(unpin, "cuMemHostUnregister")}) {
    if (!status) return status;
  }
  return {};
}

Status CodeCalls::bind(const SharedLibrary& shared) {
  for (const Status& status :
       {shared.bind(load, "cuModuleLoadDataEx"), shared.bind(unload, "cuModuleUnload"),
        shared.bind(get_kernel, "cuModuleGetFunction"), shared.bind(attribute, "cuFuncGetAttribute"),
        shared.bind(set_attribute, "cuFuncSetAttribute")}) {
    if (!status) return status;
  }
  // As the driver's own resolver has it: a symbol of the library may be there and mean nothing.
  decltype(cuGetProcAddress_v2)* resolve = nullptr;
  void* address = nullptr;
  if (!shared.bind(resolve, "cuGetProcAddress_v2")) return {};
  if (resolve("cuFuncLoad", &address, kFuncLoadSince, 0, nullptr) != CUDA_SUCCESS) return {};
  load_kernel = reinterpret_cast<decltype(cuFuncLoad)*>(address);
  return {};
}

Status StreamCalls::bind(const SharedLibrary& shared) {
  for (const Status& status :
       {shared.bind(create, "cuStreamCreate"), shared.bind(synchronize, "cuStreamSynchronize"),
        shared.bind(create_event, "cuEventCreate"), shared.bind(destroy_event, "cuEventDestroy_v2"),
        shared.bind(elapsed, "cuEventElapsedTime")}) {
    if (!status) return status;
  }
  return {};
}

}  // namespace

// The driver's calls by what they are about, and what the device is.
struct CudaContext::Library {
  explicit Library(SharedLibrary file) : shared(std::move(file)) {}
  Status bind();

  CUmemAllocationProp allocation() const {
    CUmemAllocationProp properties{};
    properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, facts.number};
    return properties;
  }

  SharedLibrary shared;
  DeviceCalls device;
  MappingCalls mapping;
  HostMemoryCalls host;
  CodeCalls code;
  StreamCalls stream;
  std::optional<GraphCalls> graphs;  // none: the driver lacks some of them

  Device facts;
  DeviceLimits limits;
  std::size_t granularity = 0;
};

Status CudaContext::Library::bind() {
  for (const Status& status :
       {device.bind(shared), mapping.bind(shared), host.bind(shared), code.bind(shared), stream.bind(shared)}) {
    if (!status) return status;
  }
  if (!graphs.emplace().bind(shared)) graphs.reset();
  return {};
}

Status CudaContext::bind_hot() {
  const SharedLibrary& shared = library_->shared;
  for (const Status& status :
       {shared.bind(calls_.launch, "cuLaunchKernel"), shared.bind(calls_.copy_in, "cuMemcpyHtoDAsync_v2"),
        shared.bind(calls_.copy_out, "cuMemcpyDtoHAsync_v2"), shared.bind(calls_.copy_within, "cuMemcpyDtoDAsync_v2"),
        shared.bind(calls_.fill, "cuMemsetD8Async"), shared.bind(calls_.record, "cuEventRecord"),
        shared.bind(calls_.wait, "cuStreamWaitEvent"), shared.bind(calls_.query, "cuEventQuery"),
        shared.bind(calls_.call_host, "cuLaunchHostFunc")}) {
    if (!status) return status;
  }
  return {};
}

CudaContext::CudaContext(std::unique_ptr<Library> library) : library_(std::move(library)) {}
CudaContext::~CudaContext() = default;

Result<std::unique_ptr<CudaContext>> CudaContext::open(const std::string& library_dir, int ordinal) {
  Result<SharedLibrary> shared = SharedLibrary::load(library_dir, "libcuda.so.1", kAdvice);
  if (!shared) return fail(shared.error());
  auto library = std::make_unique<Library>(std::move(*shared));
  if (Status bound = library->bind(); !bound) return fail(bound.error());
  std::unique_ptr<CudaContext> context(new CudaContext(std::move(library)));
  if (Status bound = context->bind_hot(); !bound) return fail(bound.error());
  if (Status started = context->start(ordinal); !started) return fail(started.error());
  return context;
}

Status CudaContext::start(int ordinal) {
  Library& driver = *library_;
  CUcontext context = nullptr;
  std::array<char, 256> name{};
  CUresult code = driver.device.init(0);
  if (code == CUDA_SUCCESS) code = driver.device.get(&driver.facts.number, ordinal);
  if (code == CUDA_SUCCESS) code = driver.device.name(name.data(), name.size(), driver.facts.number);
  if (code == CUDA_SUCCESS) code = driver.device.retain(&context, driver.facts.number);
  if (code == CUDA_SUCCESS) code = driver.device.set_current(context);
  driver.facts.name = name.data();
  const CUmemAllocationProp properties = driver.allocation();
  if (code == CUDA_SUCCESS) {
    code = driver.mapping.granularity(&driver.granularity, &properties, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED);
  }
  if (Status opened = check(code, fmt::format("open GPU {}", ordinal)); !opened) return opened;
  return read_limits();
}

Status CudaContext::read_limits() {
  const Library& driver = *library_;
  CUresult code = CUDA_SUCCESS;
  const auto read = [&](CUdevice_attribute attribute) {
    int value = 0;
    const CUresult got = driver.device.attribute(&value, attribute, driver.facts.number);
    if (code == CUDA_SUCCESS) code = got;
    return static_cast<std::uint32_t>(value);
  };
  DeviceLimits& limits = library_->limits;
  limits.max_grid = {read(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X), read(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y),
                     read(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z)};
  limits.max_block = {read(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X), read(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y),
                      read(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z)};
  limits.max_threads_per_block = read(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
  limits.max_shared_bytes = read(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
  library_->facts.architecture =
      10 * read(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) + read(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  return check(code, "limits of the device");
}

const CudaContext::Device& CudaContext::device() const {
  return library_->facts;
}

const DeviceLimits& CudaContext::limits() const {
  return library_->limits;
}

const SharedLibrary& CudaContext::driver() const {
  return library_->shared;
}

std::string CudaContext::describe(CUresult code) const {
  const char* name = nullptr;
  const char* text = nullptr;
  if (library_->device.error_name(code, &name) != CUDA_SUCCESS || name == nullptr) name = "unknown error";
  if (library_->device.error_text(code, &text) != CUDA_SUCCESS || text == nullptr) text = "no description";
  return fmt::format("{} ({}, {})", text, name, static_cast<int>(code));
}

Status CudaContext::check(CUresult code, std::string_view what) const {
  if (code == CUDA_SUCCESS) return {};
  const Errc kind = code == CUDA_ERROR_OUT_OF_MEMORY ? Errc::kResourceExhausted : Errc::kUnavailable;
  return fail(kind, "{}: {}", what, describe(code));
}

Result<Bytes> CudaContext::free_memory() const {
  std::size_t free = 0;
  std::size_t total = 0;
  if (Status asked = check(library_->device.memory_info(&free, &total), "free device memory"); !asked) {
    return fail(asked.error());
  }
  return Bytes(static_cast<std::int64_t>(free));
}

// A driver may align less than it is asked to: then twice as much is reserved, and the aligned part of it used.
Result<CUdeviceptr> CudaContext::reserve_addresses(Bytes bytes, Bytes alignment, CUdeviceptr hint) {
  const Library& driver = *library_;
  CUdeviceptr address = 0;
  for (const CUdeviceptr wanted : {hint, CUdeviceptr{0}}) {
    const CUresult code = driver.mapping.reserve(&address, size_of(bytes), size_of(alignment), wanted, 0);
    if (code == CUDA_SUCCESS && address % size_of(alignment) == 0) return address;
    if (code == CUDA_SUCCESS) driver.mapping.free(address, size_of(bytes));
  }
  const CUresult code = driver.mapping.reserve(&address, size_of(bytes + alignment), 0, 0, 0);
  if (Status reserved = check(code, fmt::format("reserve {} bytes of addresses", bytes.count())); !reserved) {
    return fail(reserved.error());
  }
  return (address + size_of(alignment) - 1) / size_of(alignment) * size_of(alignment);
}

Bytes CudaContext::mapping_granularity() const {
  return Bytes(static_cast<std::int64_t>(library_->granularity));
}

Status CudaContext::map_memory(CUdeviceptr address, Bytes bytes) {
  const auto memory = create_memory(bytes);
  if (!memory) return fail(memory.error());
  Status mapped = map(address, bytes, *memory);
  release_memory(*memory);  // the mapping keeps it
  return mapped;
}

Result<CUmemGenericAllocationHandle> CudaContext::create_memory(Bytes bytes) {
  const Library& driver = *library_;
  const CUmemAllocationProp properties = driver.allocation();
  CUmemGenericAllocationHandle memory = 0;
  const CUresult code = driver.mapping.create(&memory, size_of(bytes), &properties, 0);
  if (Status made = check(code, fmt::format("take {} bytes of device memory", bytes.count())); !made) {
    return fail(made.error());
  }
  return memory;
}

Status CudaContext::map(CUdeviceptr address, Bytes bytes, CUmemGenericAllocationHandle memory) {
  const Library& driver = *library_;
  const CUmemAccessDesc access{driver.allocation().location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  CUresult code = driver.mapping.map(address, size_of(bytes), 0, memory, 0);
  if (code == CUDA_SUCCESS) code = driver.mapping.set_access(address, size_of(bytes), &access, 1);
  return check(code, fmt::format("map {} bytes of device memory", bytes.count()));
}

Status CudaContext::unmap(CUdeviceptr address, Bytes bytes) {
  return check(library_->mapping.unmap(address, size_of(bytes)), fmt::format("unmap {} bytes", bytes.count()));
}

void CudaContext::release_memory(CUmemGenericAllocationHandle memory) {
  library_->mapping.release(memory);
}

Result<void*> CudaContext::allocate_pinned(Bytes bytes) {
  void* memory = nullptr;
  const CUresult code = library_->host.alloc(&memory, size_of(bytes), CU_MEMHOSTALLOC_PORTABLE);
  if (Status allocated = check(code, fmt::format("{} bytes of pinned host memory", bytes.count())); !allocated) {
    return fail(allocated.error());
  }
  return memory;
}

void CudaContext::free_pinned(void* memory) {
  library_->host.free(memory);
}

bool CudaContext::pin(void* memory, Bytes bytes, bool read_only) {
  const unsigned flags = CU_MEMHOSTREGISTER_PORTABLE | (read_only ? CU_MEMHOSTREGISTER_READ_ONLY : 0);
  return library_->host.pin(memory, size_of(bytes), flags) == CUDA_SUCCESS;
}

StreamWords::StreamWords(const CudaContext& cuda) : cuda_(cuda) {
  const SharedLibrary& shared = cuda.library_->shared;
  const bool found = shared.bind(wait_, "cuStreamWaitValue32_v2") && shared.bind(set_, "cuStreamWriteValue32_v2") &&
                     shared.bind(device_pointer_, "cuMemHostGetDevicePointer_v2");
  if (!found) wait_ = nullptr;
}

Result<CUdeviceptr> StreamWords::pin(void* memory, Bytes bytes) const {
  const CudaContext::Library& driver = *cuda_.library_;
  CUdeviceptr address = 0;
  CUresult code = driver.host.pin(memory, size_of(bytes), CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP);
  if (code == CUDA_SUCCESS) {
    code = device_pointer_(&address, memory, 0);
    if (code != CUDA_SUCCESS) driver.host.unpin(memory);
  }
  if (Status pinned = cuda_.check(code, fmt::format("pin {} bytes of host memory", bytes.count())); !pinned) {
    return fail(pinned.error());
  }
  return address;
}

void CudaContext::unpin(void* memory) {
  library_->host.unpin(memory);
}

Result<CUmodule> CudaContext::load_module(const std::string& image) {
  std::string log(kJitLogBytes, '\0');
  std::array<CUjit_option, 2> options{CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  std::array<void*, 2> values{log.data(), reinterpret_cast<void*>(log.size())};
  CUmodule module = nullptr;
  const CUresult code = library_->code.load(&module, image.c_str(), options.size(), options.data(), values.data());
  if (code == CUDA_SUCCESS) return module;
  log.resize(log.find('\0') == std::string::npos ? log.size() : log.find('\0'));
  const Errc kind = code == CUDA_ERROR_OUT_OF_MEMORY ? Errc::kResourceExhausted : Errc::kInvalidArgument;
  return fail(kind, "the driver refuses the module: {}{}{}", describe(code), log.empty() ? "" : ": ", log);
}

void CudaContext::unload_module(CUmodule module) {
  library_->code.unload(module);
}

Result<CUfunction> CudaContext::find_kernel(CUmodule module, const std::string& name, std::uint32_t dynamic_shared) {
  constexpr std::uint32_t kWithoutAsking = 48 << 10;
  CUfunction function = nullptr;
  CUresult code = library_->code.get_kernel(&function, module, name.c_str());
  if (code == CUDA_ERROR_NOT_FOUND) return fail(Errc::kInvalidArgument, "the module has no kernel {}", name);
  int fixed = 0, allowed = 0;  // allowed: by somebody before, who may launch it still
  if (code == CUDA_SUCCESS) {
    code = library_->code.attribute(&fixed, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, function);
  }
  if (code == CUDA_SUCCESS) {
    code = library_->code.attribute(&allowed, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, function);
  }
  const bool must_ask = dynamic_shared + static_cast<std::uint32_t>(fixed) > kWithoutAsking;
  if (code == CUDA_SUCCESS && must_ask && std::cmp_greater(dynamic_shared, allowed)) {
    code = library_->code.set_attribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                        static_cast<int>(dynamic_shared));
  }
  if (code == CUDA_SUCCESS) {
    // Drivers without it load a kernel when they are asked for it above. If it fails, the launch says why.
    if (library_->code.load_kernel != nullptr) library_->code.load_kernel(function);
    return function;
  }
  return fail(Errc::kInvalidArgument, "kernel {} with {} bytes of dynamic shared memory: {}", name, dynamic_shared,
              describe(code));
}

const GraphCalls* CudaContext::graphs() const {
  return library_->graphs ? &*library_->graphs : nullptr;
}

Result<CUstream> CudaContext::make_stream() {
  CUstream stream = nullptr;
  if (Status made = check(library_->stream.create(&stream, CU_STREAM_NON_BLOCKING), "create a stream"); !made) {
    return fail(made.error());
  }
  return stream;
}

Result<CUevent> CudaContext::make_event(bool timed) {
  CUevent event = nullptr;
  const unsigned flags = timed ? CU_EVENT_DEFAULT : CU_EVENT_DISABLE_TIMING;
  if (Status made = check(library_->stream.create_event(&event, flags), "create an event"); !made)
    return fail(made.error());
  return event;
}

void CudaContext::destroy_event(CUevent event) {
  library_->stream.destroy_event(event);
}

Duration CudaContext::elapsed(CUevent begin, CUevent end) const {
  float milliseconds = 0;
  if (library_->stream.elapsed(&milliseconds, begin, end) != CUDA_SUCCESS) return Duration(0);
  return from_seconds(static_cast<double>(milliseconds) / 1e3);
}

Status CudaContext::synchronize(CUstream stream) {
  return check(library_->stream.synchronize(stream), "wait for a stream");
}

Status CudaContext::synchronize() {
  return check(library_->device.synchronize(), "wait for the device");
}

Occupancy::Occupancy(const CudaContext& cuda) {
  const CudaContext::Library& driver = *cuda.library_;
  if (!driver.shared.bind(of_one_, "cuOccupancyMaxActiveBlocksPerMultiprocessor")) of_one_ = nullptr;
  const auto read = [&driver](CUdevice_attribute attribute) {
    int value = 0;
    const bool is_said = driver.device.attribute(&value, attribute, driver.facts.number) == CUDA_SUCCESS;
    return is_said ? static_cast<std::uint64_t>(value) : 0;
  };
  multiprocessors_ = std::max<std::uint64_t>(1, read(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT));
  threads_of_one_ = read(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR);
}

std::uint64_t Occupancy::blocks_at_once(CUfunction function, std::uint32_t threads,
                                        std::uint32_t dynamic_shared) const {
  int said = 0;
  const bool is_said =
      of_one_ != nullptr && of_one_(&said, function, static_cast<int>(threads), dynamic_shared) == CUDA_SUCCESS;
  const std::uint64_t at_most = threads_of_one_ / std::max<std::uint64_t>(1, threads);
  return multiprocessors_ * std::max<std::uint64_t>(1, is_said ? static_cast<std::uint64_t>(said) : at_most);
}

}  // namespace fairlead
