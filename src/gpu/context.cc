#include "gpu/context.h"

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

}  // namespace

struct CudaContext::Library {
  explicit Library(SharedLibrary file) : shared(std::move(file)) {}
  Status bind();
  void find_newer();

  CUmemAllocationProp allocation() const {
    CUmemAllocationProp properties{};
    properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, device};
    return properties;
  }

  SharedLibrary shared;
  std::optional<GraphCalls> graphs;  // none: the driver lacks some of them
  CUdevice device = 0;
  std::string name;
  DeviceLimits limits;
  std::uint32_t architecture = 0;
  std::size_t granularity = 0;

  decltype(cuInit)* init = nullptr;
  decltype(cuGetErrorName)* error_name = nullptr;
  decltype(cuGetErrorString)* error_text = nullptr;
  decltype(cuDeviceGet)* device_get = nullptr;
  decltype(cuDeviceGetName)* device_name = nullptr;
  decltype(cuDeviceGetAttribute)* attribute = nullptr;
  decltype(cuDevicePrimaryCtxRetain)* retain = nullptr;
  decltype(cuCtxSetCurrent)* set_current = nullptr;
  decltype(cuCtxSynchronize)* synchronize = nullptr;
  decltype(cuMemGetInfo_v2)* memory_info = nullptr;
  decltype(cuMemGetAllocationGranularity)* get_granularity = nullptr;
  decltype(cuMemAddressReserve)* reserve = nullptr;
  decltype(cuMemAddressFree)* free_addresses = nullptr;
  decltype(cuMemCreate)* create = nullptr;
  decltype(cuMemRelease)* release = nullptr;
  decltype(cuMemMap)* map = nullptr;
  decltype(cuMemUnmap)* unmap = nullptr;
  decltype(cuMemSetAccess)* set_access = nullptr;
  decltype(cuMemHostAlloc)* host_alloc = nullptr;
  decltype(cuMemFreeHost)* host_free = nullptr;
  decltype(cuMemHostRegister_v2)* host_register = nullptr;
  decltype(cuMemHostUnregister)* host_unregister = nullptr;
  decltype(cuModuleLoadDataEx)* load = nullptr;
  decltype(cuModuleUnload)* unload = nullptr;
  decltype(cuModuleGetFunction)* get_function = nullptr;
  decltype(cuFuncGetAttribute)* function_attribute = nullptr;
  decltype(cuFuncSetAttribute)* set_function_attribute = nullptr;
  decltype(cuStreamCreate)* stream_create = nullptr;
  decltype(cuStreamSynchronize)* stream_synchronize = nullptr;
  decltype(cuEventCreate)* event_create = nullptr;
  decltype(cuEventDestroy_v2)* event_destroy = nullptr;
  decltype(cuEventElapsedTime)* event_elapsed = nullptr;

  // Null: the driver lacks it.
  decltype(cuFuncLoad)* load_function = nullptr;
};

Status CudaContext::Library::bind() {
  for (const Status& status : {shared.bind(init, "cuInit"),
                               shared.bind(error_name, "cuGetErrorName"),
                               shared.bind(error_text, "cuGetErrorString"),
                               shared.bind(device_get, "cuDeviceGet"),
                               shared.bind(device_name, "cuDeviceGetName"),
                               shared.bind(attribute, "cuDeviceGetAttribute"),
                               shared.bind(retain, "cuDevicePrimaryCtxRetain"),
                               shared.bind(set_current, "cuCtxSetCurrent"),
                               shared.bind(synchronize, "cuCtxSynchronize"),
                               shared.bind(memory_info, "cuMemGetInfo_v2"),
                               shared.bind(get_granularity, "cuMemGetAllocationGranularity"),
                               shared.bind(reserve, "cuMemAddressReserve"),
                               shared.bind(free_addresses, "cuMemAddressFree"),
                               shared.bind(create, "cuMemCreate"),
                               shared.bind(release, "cuMemRelease"),
                               shared.bind(map, "cuMemMap"),
                               shared.bind(unmap, "cuMemUnmap"),
                               shared.bind(set_access, "cuMemSetAccess"),
                               shared.bind(host_alloc, "cuMemHostAlloc"),
                               shared.bind(host_free, "cuMemFreeHost"),
                               shared.bind(host_register, "cuMemHostRegister_v2"),
                               shared.bind(host_unregister, "cuMemHostUnregister"),
                               shared.bind(load, "cuModuleLoadDataEx"),
                               shared.bind(unload, "cuModuleUnload"),
                               shared.bind(get_function, "cuModuleGetFunction"),
                               shared.bind(function_attribute, "cuFuncGetAttribute"),
                               shared.bind(set_function_attribute, "cuFuncSetAttribute"),
                               shared.bind(stream_create, "cuStreamCreate"),
                               shared.bind(stream_synchronize, "cuStreamSynchronize"),
                               shared.bind(event_create, "cuEventCreate"),
                               shared.bind(event_destroy, "cuEventDestroy_v2"),
                               shared.bind(event_elapsed, "cuEventElapsedTime")}) {
    if (!status) return status;
  }
  if (!graphs.emplace().bind(shared)) graphs.reset();
  find_newer();
  return {};
}

// As the driver's own resolver has it: a symbol of the library may be there and mean nothing.
void CudaContext::Library::find_newer() {
  decltype(cuGetProcAddress_v2)* resolve = nullptr;
  void* address = nullptr;
  if (!shared.bind(resolve, "cuGetProcAddress_v2")) return;
  if (resolve("cuFuncLoad", &address, kFuncLoadSince, 0, nullptr) != CUDA_SUCCESS) return;
  load_function = reinterpret_cast<decltype(cuFuncLoad)*>(address);
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
  CUresult code = driver.init(0);
  if (code == CUDA_SUCCESS) code = driver.device_get(&driver.device, ordinal);
  if (code == CUDA_SUCCESS) code = driver.device_name(name.data(), name.size(), driver.device);
  if (code == CUDA_SUCCESS) code = driver.retain(&context, driver.device);
  if (code == CUDA_SUCCESS) code = driver.set_current(context);
  driver.name = name.data();
  const CUmemAllocationProp properties = driver.allocation();
  if (code == CUDA_SUCCESS) {
    code = driver.get_granularity(&driver.granularity, &properties, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED);
  }
  if (Status opened = check(code, fmt::format("open GPU {}", ordinal)); !opened) return opened;
  return read_limits();
}

Status CudaContext::read_limits() {
  const Library& driver = *library_;
  CUresult code = CUDA_SUCCESS;
  const auto read = [&](CUdevice_attribute attribute) {
    int value = 0;
    const CUresult got = driver.attribute(&value, attribute, driver.device);
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
  library_->architecture =
      10 * read(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) + read(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  return check(code, "limits of the device");
}

const std::string& CudaContext::device_name() const {
  return library_->name;
}
const DeviceLimits& CudaContext::limits() const {
  return library_->limits;
}

std::uint32_t CudaContext::architecture() const {
  return library_->architecture;
}

std::string CudaContext::describe(CUresult code) const {
  const char* name = nullptr;
  const char* text = nullptr;
  if (library_->error_name(code, &name) != CUDA_SUCCESS || name == nullptr) name = "unknown error";
  if (library_->error_text(code, &text) != CUDA_SUCCESS || text == nullptr) text = "no description";
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
  if (Status asked = check(library_->memory_info(&free, &total), "free device memory"); !asked) {
    return fail(asked.error());
  }
  return Bytes(static_cast<std::int64_t>(free));
}

// A driver may align less than it is asked to: then twice as much is reserved, and the aligned part of it used.
Result<CUdeviceptr> CudaContext::reserve_addresses(Bytes bytes, Bytes alignment, CUdeviceptr hint) {
  const Library& driver = *library_;
  CUdeviceptr address = 0;
  for (const CUdeviceptr wanted : {hint, CUdeviceptr{0}}) {
    const CUresult code = driver.reserve(&address, size_of(bytes), size_of(alignment), wanted, 0);
    if (code == CUDA_SUCCESS && address % size_of(alignment) == 0) return address;
    if (code == CUDA_SUCCESS) driver.free_addresses(address, size_of(bytes));
  }
  const CUresult code = driver.reserve(&address, size_of(bytes + alignment), 0, 0, 0);
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
  const CUresult code = driver.create(&memory, size_of(bytes), &properties, 0);
  if (Status made = check(code, fmt::format("take {} bytes of device memory", bytes.count())); !made) {
    return fail(made.error());
  }
  return memory;
}

Status CudaContext::map(CUdeviceptr address, Bytes bytes, CUmemGenericAllocationHandle memory) {
  const Library& driver = *library_;
  const CUmemAccessDesc access{driver.allocation().location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  CUresult code = driver.map(address, size_of(bytes), 0, memory, 0);
  if (code == CUDA_SUCCESS) code = driver.set_access(address, size_of(bytes), &access, 1);
  return check(code, fmt::format("map {} bytes of device memory", bytes.count()));
}

Status CudaContext::unmap(CUdeviceptr address, Bytes bytes) {
  return check(library_->unmap(address, size_of(bytes)), fmt::format("unmap {} bytes", bytes.count()));
}

void CudaContext::release_memory(CUmemGenericAllocationHandle memory) {
  library_->release(memory);
}

Result<void*> CudaContext::allocate_pinned(Bytes bytes) {
  void* memory = nullptr;
  const CUresult code = library_->host_alloc(&memory, size_of(bytes), CU_MEMHOSTALLOC_PORTABLE);
  if (Status allocated = check(code, fmt::format("{} bytes of pinned host memory", bytes.count())); !allocated) {
    return fail(allocated.error());
  }
  return memory;
}

void CudaContext::free_pinned(void* memory) {
  library_->host_free(memory);
}

bool CudaContext::pin(void* memory, Bytes bytes, bool read_only) {
  const unsigned flags = CU_MEMHOSTREGISTER_PORTABLE | (read_only ? CU_MEMHOSTREGISTER_READ_ONLY : 0);
  return library_->host_register(memory, size_of(bytes), flags) == CUDA_SUCCESS;
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
  CUresult code =
      driver.host_register(memory, size_of(bytes), CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP);
  if (code == CUDA_SUCCESS) {
    code = device_pointer_(&address, memory, 0);
    if (code != CUDA_SUCCESS) driver.host_unregister(memory);
  }
  if (Status pinned = cuda_.check(code, fmt::format("pin {} bytes of host memory", bytes.count())); !pinned) {
    return fail(pinned.error());
  }
  return address;
}

void CudaContext::unpin(void* memory) {
  library_->host_unregister(memory);
}

Result<CUmodule> CudaContext::load_module(const std::string& image) {
  std::string log(kJitLogBytes, '\0');
  std::array<CUjit_option, 2> options{CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  std::array<void*, 2> values{log.data(), reinterpret_cast<void*>(log.size())};
  CUmodule module = nullptr;
  const CUresult code = library_->load(&module, image.c_str(), options.size(), options.data(), values.data());
  if (code == CUDA_SUCCESS) return module;
  log.resize(log.find('\0') == std::string::npos ? log.size() : log.find('\0'));
  const Errc kind = code == CUDA_ERROR_OUT_OF_MEMORY ? Errc::kResourceExhausted : Errc::kInvalidArgument;
  return fail(kind, "the driver refuses the module: {}{}{}", describe(code), log.empty() ? "" : ": ", log);
}

void CudaContext::unload_module(CUmodule module) {
  library_->unload(module);
}

Result<CUfunction> CudaContext::find_kernel(CUmodule module, const std::string& name, std::uint32_t dynamic_shared) {
  constexpr std::uint32_t kWithoutAsking = 48 << 10;
  CUfunction function = nullptr;
  CUresult code = library_->get_function(&function, module, name.c_str());
  if (code == CUDA_ERROR_NOT_FOUND) return fail(Errc::kInvalidArgument, "the module has no kernel {}", name);
  int fixed = 0, allowed = 0;  // allowed: by somebody before, who may launch it still
  if (code == CUDA_SUCCESS) {
    code = library_->function_attribute(&fixed, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, function);
  }
  if (code == CUDA_SUCCESS) {
    code = library_->function_attribute(&allowed, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, function);
  }
  const bool must_ask = dynamic_shared + static_cast<std::uint32_t>(fixed) > kWithoutAsking;
  if (code == CUDA_SUCCESS && must_ask && std::cmp_greater(dynamic_shared, allowed)) {
    code = library_->set_function_attribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                            static_cast<int>(dynamic_shared));
  }
  if (code == CUDA_SUCCESS) {
    // Drivers without it load a kernel when they are asked for it above. If it fails, the launch says why.
    if (library_->load_function != nullptr) library_->load_function(function);
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
  if (Status made = check(library_->stream_create(&stream, CU_STREAM_NON_BLOCKING), "create a stream"); !made) {
    return fail(made.error());
  }
  return stream;
}

Result<CUevent> CudaContext::make_event(bool timed) {
  CUevent event = nullptr;
  const unsigned flags = timed ? CU_EVENT_DEFAULT : CU_EVENT_DISABLE_TIMING;
  if (Status made = check(library_->event_create(&event, flags), "create an event"); !made) return fail(made.error());
  return event;
}

void CudaContext::destroy_event(CUevent event) {
  library_->event_destroy(event);
}

Duration CudaContext::elapsed(CUevent begin, CUevent end) const {
  float milliseconds = 0;
  if (library_->event_elapsed(&milliseconds, begin, end) != CUDA_SUCCESS) return Duration(0);
  return from_seconds(static_cast<double>(milliseconds) / 1e3);
}

Status CudaContext::synchronize(CUstream stream) {
  return check(library_->stream_synchronize(stream), "wait for a stream");
}

Status CudaContext::synchronize() {
  return check(library_->synchronize(), "wait for the device");
}

}  // namespace fairlead
