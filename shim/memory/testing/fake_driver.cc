#include "shim/memory/testing/fake_driver.h"

#include <cstdlib>
#include <cstring>

namespace fairlead::shim {
namespace testing {
namespace {

constexpr std::size_t kGranularity = std::size_t{2} << 20;
constexpr std::size_t kMostEventsKept = 2;  // kContext's and kOther's
FakeDriver* the_driver = nullptr;

unsigned char pattern(unsigned seed, std::size_t at) {
  return static_cast<unsigned char>((seed * 2654435761U + at * 40503U) >> 7);
}

}  // namespace

FakeDriver& FakeDriver::get() {
  return *the_driver;
}

std::vector<CUcontext>& FakeDriver::current() {
  static thread_local std::vector<CUcontext> stack = {kContext};
  return stack;
}

CUresult FakeDriver::enter(Symbol symbol) {
  if (on_call) on_call();
  const int call = ++calls_[symbol];
  const auto planned = failures_.find(symbol);
  if (planned == failures_.end()) return CUDA_SUCCESS;
  const auto now = planned->second.find(call);
  return now == planned->second.end() ? CUDA_SUCCESS : now->second;
}

void FakeDriver::fail(Symbol symbol, int nth, CUresult result) {
  failures_[symbol][calls_[symbol] + nth] = result;
}

int FakeDriver::calls(Symbol symbol) const {
  const auto found = calls_.find(symbol);
  return found == calls_.end() ? 0 : found->second;
}

void FakeDriver::start_work(CUcontext context) {
  const MutexLock guard(mutex);
  working_.insert(context);
}
void FakeDriver::end_work(CUcontext context) {
  const MutexLock guard(mutex);
  working_.erase(context);
}

std::vector<std::string> FakeDriver::violations() const {
  std::vector<std::string> all = violations_;
  if (events_.size() > kMostEventsKept) all.emplace_back("events: more are left than one of each context");
  return all;
}
std::size_t FakeDriver::pending() const {
  return copies_.size();
}
std::size_t FakeDriver::reserved() const {
  return reservations_.size();
}

std::size_t FakeDriver::used() const {
  std::size_t bytes = plain_bytes_;
  std::set<const Physical*> seen;
  for (const auto& [handle, memory] : handles_) {
    if (seen.insert(memory.get()).second) bytes += memory->bytes;
  }
  for (const auto& [address, mapping] : mappings_) {
    if (seen.insert(mapping.memory.get()).second) bytes += mapping.memory->bytes;
  }
  return bytes;
}

// ---- Virtual memory ----

CUresult FakeDriver::reserve(CUdeviceptr* address, std::size_t bytes, std::size_t alignment) {
  if (bytes == 0 || bytes % kGranularity != 0) violate("reserve: not whole granules");
  if (alignment == 0) alignment = kGranularity;
  next_address_ = (next_address_ + alignment - 1) / alignment * alignment;
  *address = next_address_;
  next_address_ += bytes + kGranularity;
  reservations_[*address] = bytes;
  return CUDA_SUCCESS;
}

CUresult FakeDriver::free_address(CUdeviceptr address, std::size_t bytes) {
  const auto found = reservations_.find(address);
  if (found == reservations_.end() || found->second != bytes) violate("address free: not a whole reservation");
  if (mappings_.count(address) != 0) violate("address free: still mapped");
  reservations_.erase(address);
  return CUDA_SUCCESS;
}

CUresult FakeDriver::create(CUmemGenericAllocationHandle* handle, std::size_t bytes) {
  if (bytes == 0 || bytes % kGranularity != 0) violate("create: not whole granules");
  if (used() + bytes > device_bytes_) return CUDA_ERROR_OUT_OF_MEMORY;
  auto memory = std::make_shared<Physical>(bytes);
  *handle = ++last_handle_;
  handles_[*handle] = memory;
  return CUDA_SUCCESS;
}

CUresult FakeDriver::release(CUmemGenericAllocationHandle handle) {
  if (handles_.erase(handle) == 0) violate("release: unknown handle");
  return CUDA_SUCCESS;
}

CUresult FakeDriver::map(CUdeviceptr address, std::size_t bytes, CUmemGenericAllocationHandle handle) {
  const auto reservation = reservations_.find(address);
  if (reservation == reservations_.end() || reservation->second < bytes) violate("map: not reserved");
  if (mappings_.count(address) != 0) violate("map: mapped already");
  const auto memory = handles_.find(handle);
  if (memory == handles_.end() || memory->second->bytes != bytes) {
    violate("map: no such memory");
    return CUDA_ERROR_INVALID_VALUE;
  }
  mappings_[address] = {bytes, memory->second, {}};
  return CUDA_SUCCESS;
}

CUresult FakeDriver::unmap(CUdeviceptr address, std::size_t bytes) {
  const auto mapping = mappings_.find(address);
  if (mapping == mappings_.end() || mapping->second.bytes != bytes) {
    violate("unmap: not a whole mapping");
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (!working_.empty()) violate("unmap: work in flight");
  for (const Copy& copy : copies_) {
    if (copy.device >= address && copy.device < address + bytes) violate("unmap: a copy is in flight");
  }
  mappings_.erase(mapping);
  return CUDA_SUCCESS;
}

CUresult FakeDriver::set_access(CUdeviceptr address, std::size_t bytes, const CUmemAccessDesc* access,
                                std::size_t count) {
  const auto mapping = mappings_.find(address);
  if (mapping == mappings_.end() || mapping->second.bytes != bytes) {
    violate("set access: not mapped");
    return CUDA_ERROR_INVALID_VALUE;
  }
  mapping->second.devices.clear();
  for (std::size_t i = 0; i < count; ++i) mapping->second.devices.push_back(access[i].location.id);
  return CUDA_SUCCESS;
}

std::pair<const CUdeviceptr, FakeDriver::Mapping>* FakeDriver::mapping_at(CUdeviceptr address, std::size_t bytes) {
  auto next = mappings_.upper_bound(address);
  if (next == mappings_.begin()) return nullptr;
  --next;
  if (address + bytes > next->first + next->second.bytes || next->second.devices.empty()) return nullptr;
  return &*next;
}

unsigned char* FakeDriver::data_at(CUdeviceptr address, std::size_t bytes) {
  auto* mapping = mapping_at(address, bytes);
  return mapping == nullptr ? nullptr : mapping->second.memory->data.get() + (address - mapping->first);
}

void FakeDriver::poke(CUdeviceptr address, std::size_t bytes, unsigned seed) {
  const MutexLock guard(mutex);
  unsigned char* data = data_at(address, bytes);
  if (data == nullptr) return violate("a program writes where nothing is");
  for (std::size_t at = 0; at < bytes; at += 509) data[at] = pattern(seed, at);
  data[bytes - 1] = pattern(seed, bytes - 1);
}

bool FakeDriver::holds(CUdeviceptr address, std::size_t bytes, unsigned seed) {
  const MutexLock guard(mutex);
  const unsigned char* data = data_at(address, bytes);
  if (data == nullptr) return false;
  for (std::size_t at = 0; at < bytes; at += 509) {
    if (at != bytes - 1 && data[at] != pattern(seed, at)) return false;
  }
  return data[bytes - 1] == pattern(seed, bytes - 1);
}

// ---- Copies: queued, and run when somebody waits ----

CUresult FakeDriver::copy(CUdeviceptr device, void* host, std::size_t bytes, bool to_device, CUstream stream) {
  if (data_at(device, bytes) == nullptr) {
    violate("copy: not mapped or no access");
    return CUDA_ERROR_INVALID_VALUE;
  }
  copies_.push_back({device, static_cast<unsigned char*>(host), bytes, to_device, stream});
  return CUDA_SUCCESS;
}

CUresult FakeDriver::run(CUstream stream) {
  std::vector<Copy> others;
  for (const Copy& copy : copies_) {
    if (copy.stream != stream) {
      others.push_back(copy);
      continue;
    }
    unsigned char* data = data_at(copy.device, copy.bytes);
    if (data == nullptr) {
      violate("copy: its memory went before it ran");
      continue;
    }
    std::memcpy(copy.to_device ? data : copy.host, copy.to_device ? copy.host : data, copy.bytes);
  }
  copies_ = others;
  return CUDA_SUCCESS;
}

// ---- Memory that the driver lays out ----

CUresult FakeDriver::allocate(CUdeviceptr* address, std::size_t bytes, bool managed) {
  if (!managed && used() + bytes > device_bytes_) return CUDA_ERROR_OUT_OF_MEMORY;
  // Managed memory of a driver need not begin at a granule.
  next_address_ += managed ? 4096 : 512;
  *address = next_address_;
  next_address_ = (next_address_ + bytes + kGranularity) / kGranularity * kGranularity;
  plain_[*address] = {bytes, managed};
  if (!managed) plain_bytes_ += bytes;
  return CUDA_SUCCESS;
}

CUresult FakeDriver::free_plain(CUdeviceptr address) {
  const auto found = plain_.find(address);
  if (found == plain_.end()) {
    violate("free: unknown address");
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (!found->second.second) plain_bytes_ -= found->second.first;
  plain_.erase(found);
  return CUDA_SUCCESS;
}

CUresult FakeDriver::prefetch(CUdeviceptr address, std::size_t bytes, bool to_device) {
  auto next = plain_.upper_bound(address);
  if (next == plain_.begin()) return CUDA_ERROR_INVALID_VALUE;
  --next;
  if (address + bytes > next->first + next->second.first) violate("prefetch: outside the allocation");
  managed_on_device = to_device ? managed_on_device + bytes : managed_on_device - bytes;
  return CUDA_SUCCESS;
}

// ---- Host memory and events ----

void* FakeDriver::allocate_host(std::size_t bytes) {
  auto memory = std::make_unique<unsigned char[]>(bytes);
  void* const address = memory.get();
  host_memory_[address] = std::move(memory);
  return address;
}

CUresult FakeDriver::free_host(void* address) {
  if (host_memory_.erase(address) == 0) violate("host free: unknown address");
  return CUDA_SUCCESS;
}

// An event is a box for what it was recorded on: a context, or a stream.
CUevent FakeDriver::create_event() {
  auto box = std::make_unique<void*>(nullptr);
  const auto event = reinterpret_cast<CUevent>(box.get());
  events_[event] = std::move(box);
  return event;
}

CUresult FakeDriver::destroy_event(CUevent event) {
  if (events_.erase(event) == 0) violate("event destroy: unknown event");
  return CUDA_SUCCESS;
}

// ---- The functions themselves ----

namespace {

#define FAKE(name)                      \
  FakeDriver& fake = FakeDriver::get(); \
  const MutexLock guard(fake.mutex);    \
  if (const CUresult planned = fake.enter(Symbol::name); planned != CUDA_SUCCESS) return planned

CUresult mem_address_reserve(CUdeviceptr* address, size_t bytes, size_t alignment, CUdeviceptr, unsigned long long) {
  FAKE(cuMemAddressReserve);
  return fake.reserve(address, bytes, alignment);
}
CUresult mem_address_free(CUdeviceptr address, size_t bytes) {
  FAKE(cuMemAddressFree);
  return fake.free_address(address, bytes);
}
CUresult mem_create(CUmemGenericAllocationHandle* handle, size_t bytes, const CUmemAllocationProp*,
                    unsigned long long) {
  FAKE(cuMemCreate);
  return fake.create(handle, bytes);
}
CUresult mem_release(CUmemGenericAllocationHandle handle) {
  FAKE(cuMemRelease);
  return fake.release(handle);
}
CUresult mem_map(CUdeviceptr address, size_t bytes, size_t, CUmemGenericAllocationHandle handle, unsigned long long) {
  FAKE(cuMemMap);
  return fake.map(address, bytes, handle);
}
CUresult mem_unmap(CUdeviceptr address, size_t bytes) {
  FAKE(cuMemUnmap);
  return fake.unmap(address, bytes);
}
CUresult mem_set_access(CUdeviceptr address, size_t bytes, const CUmemAccessDesc* access, size_t count) {
  FAKE(cuMemSetAccess);
  return fake.set_access(address, bytes, access, count);
}
CUresult mem_get_granularity(size_t* bytes, const CUmemAllocationProp*, CUmemAllocationGranularity_flags) {
  FAKE(cuMemGetAllocationGranularity);
  *bytes = kGranularity;
  return CUDA_SUCCESS;
}
CUresult memcpy_out(void* host, CUdeviceptr device, size_t bytes, CUstream stream) {
  FAKE(cuMemcpyDtoHAsync_v2);
  return fake.copy(device, host, bytes, false, stream);
}
CUresult memcpy_in(CUdeviceptr device, const void* host, size_t bytes, CUstream stream) {
  FAKE(cuMemcpyHtoDAsync_v2);
  return fake.copy(device, const_cast<void*>(host), bytes, true, stream);
}
CUresult mem_alloc(CUdeviceptr* address, size_t bytes) {
  FAKE(cuMemAlloc_v2);
  return address == nullptr || bytes == 0 ? CUDA_ERROR_INVALID_VALUE : fake.allocate(address, bytes, false);
}
CUresult mem_alloc_managed(CUdeviceptr* address, size_t bytes, unsigned) {
  FAKE(cuMemAllocManaged);
  return fake.allocate(address, bytes, true);
}
CUresult mem_free(CUdeviceptr address) {
  FAKE(cuMemFree_v2);
  return fake.free_plain(address);
}
CUresult mem_prefetch(CUdeviceptr address, size_t bytes, CUmemLocation to, unsigned, CUstream) {
  FAKE(cuMemPrefetchAsync_v2);
  return fake.prefetch(address, bytes, to.type == CU_MEM_LOCATION_TYPE_DEVICE);
}
CUresult mem_prefetch_v1(CUdeviceptr address, size_t bytes, CUdevice to, CUstream) {
  FAKE(cuMemPrefetchAsync);
  return fake.prefetch(address, bytes, to != CU_DEVICE_CPU);
}
CUresult mem_advise(CUdeviceptr, size_t, CUmem_advise, CUmemLocation) {
  FAKE(cuMemAdvise_v2);
  return CUDA_SUCCESS;
}
CUresult mem_host_alloc(void** address, size_t bytes, unsigned) {
  FAKE(cuMemHostAlloc);
  *address = fake.allocate_host(bytes);
  return CUDA_SUCCESS;
}
CUresult mem_free_host(void* address) {
  FAKE(cuMemFreeHost);
  return fake.free_host(address);
}
CUresult mem_host_register(void*, size_t, unsigned) {
  FAKE(cuMemHostRegister_v2);
  return CUDA_SUCCESS;
}
CUresult mem_host_unregister(void*) {
  FAKE(cuMemHostUnregister);
  return CUDA_SUCCESS;
}
CUresult device_attribute(int* value, CUdevice_attribute, CUdevice) {
  FAKE(cuDeviceGetAttribute);
  *value = 1;
  return CUDA_SUCCESS;
}
CUresult device_total(size_t* bytes, CUdevice) {
  FAKE(cuDeviceTotalMem_v2);
  *bytes = fake.device_bytes();
  return CUDA_SUCCESS;
}
CUresult ctx_get_current(CUcontext* context) {
  FAKE(cuCtxGetCurrent);
  *context = FakeDriver::current().empty() ? nullptr : FakeDriver::current().back();
  return CUDA_SUCCESS;
}
CUresult ctx_push(CUcontext context) {
  FAKE(cuCtxPushCurrent_v2);
  FakeDriver::current().push_back(context);
  return CUDA_SUCCESS;
}
CUresult ctx_pop(CUcontext* context) {
  FAKE(cuCtxPopCurrent_v2);
  *context = FakeDriver::current().back();
  FakeDriver::current().pop_back();
  return CUDA_SUCCESS;
}
CUresult ctx_get_device(CUdevice* device) {
  FAKE(cuCtxGetDevice);
  *device = FakeDriver::current().back() == FakeDriver::kOther ? 1 : 0;
  return CUDA_SUCCESS;
}
CUresult ctx_synchronize() {
  FAKE(cuCtxSynchronize);
  return fake.working(FakeDriver::current().back()) ? CUDA_ERROR_LAUNCH_TIMEOUT : CUDA_SUCCESS;
}
CUresult ctx_record_event(CUcontext context, CUevent event) {
  FAKE(cuCtxRecordEvent);
  *reinterpret_cast<CUcontext*>(event) = context;
  return CUDA_SUCCESS;
}
CUresult event_create(CUevent* event, unsigned) {
  FAKE(cuEventCreate);
  *event = fake.create_event();
  return CUDA_SUCCESS;
}
CUresult event_record(CUevent event, CUstream stream) {
  FAKE(cuEventRecord);
  *reinterpret_cast<CUstream*>(event) = stream;
  return CUDA_SUCCESS;
}
CUresult event_query(CUevent event) {
  FAKE(cuEventQuery);
  return fake.working(*reinterpret_cast<CUcontext*>(event)) ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
}
CUresult event_synchronize(CUevent event) {
  FAKE(cuEventSynchronize);
  return fake.run(*reinterpret_cast<CUstream*>(event));
}
CUresult event_destroy(CUevent event) {
  FAKE(cuEventDestroy_v2);
  return fake.destroy_event(event);
}
CUresult stream_create(CUstream* stream, unsigned) {
  FAKE(cuStreamCreate);
  *stream = reinterpret_cast<CUstream>(fake.next_handle());
  return CUDA_SUCCESS;
}
CUresult stream_synchronize(CUstream stream) {
  FAKE(cuStreamSynchronize);
  return fake.run(stream);
}

#undef FAKE

struct Function {
  Symbol symbol;
  void* address;
};
#define ENTRY(name, function)                          \
  Function {                                           \
    Symbol::name, reinterpret_cast<void*>(&(function)) \
  }
const Function kFunctions[] = {
    ENTRY(cuMemAddressReserve, mem_address_reserve),
    ENTRY(cuMemAddressFree, mem_address_free),
    ENTRY(cuMemCreate, mem_create),
    ENTRY(cuMemRelease, mem_release),
    ENTRY(cuMemMap, mem_map),
    ENTRY(cuMemUnmap, mem_unmap),
    ENTRY(cuMemSetAccess, mem_set_access),
    ENTRY(cuMemGetAllocationGranularity, mem_get_granularity),
    ENTRY(cuMemcpyDtoHAsync_v2, memcpy_out),
    ENTRY(cuMemcpyHtoDAsync_v2, memcpy_in),
    ENTRY(cuMemAlloc_v2, mem_alloc),
    ENTRY(cuMemAllocManaged, mem_alloc_managed),
    ENTRY(cuMemFree_v2, mem_free),
    ENTRY(cuMemPrefetchAsync_v2, mem_prefetch),
    ENTRY(cuMemPrefetchAsync, mem_prefetch_v1),
    ENTRY(cuMemAdvise_v2, mem_advise),
    ENTRY(cuMemHostAlloc, mem_host_alloc),
    ENTRY(cuMemFreeHost, mem_free_host),
    ENTRY(cuMemHostRegister_v2, mem_host_register),
    ENTRY(cuMemHostUnregister, mem_host_unregister),
    ENTRY(cuDeviceGetAttribute, device_attribute),
    ENTRY(cuDeviceTotalMem_v2, device_total),
    ENTRY(cuCtxGetCurrent, ctx_get_current),
    ENTRY(cuCtxPushCurrent_v2, ctx_push),
    ENTRY(cuCtxPopCurrent_v2, ctx_pop),
    ENTRY(cuCtxGetDevice, ctx_get_device),
    ENTRY(cuCtxSynchronize, ctx_synchronize),
    ENTRY(cuCtxRecordEvent, ctx_record_event),
    ENTRY(cuEventCreate, event_create),
    ENTRY(cuEventRecord, event_record),
    ENTRY(cuEventQuery, event_query),
    ENTRY(cuEventSynchronize, event_synchronize),
    ENTRY(cuEventDestroy_v2, event_destroy),
    ENTRY(cuStreamCreate, stream_create),
    ENTRY(cuStreamSynchronize, stream_synchronize),
};
#undef ENTRY

}  // namespace

FakeDriver::FakeDriver(std::size_t device_bytes) : device_bytes_(device_bytes) {
  the_driver = this;
  current() = {kContext};
  for (const Function& function : kFunctions) {
    driver_detail::addresses[static_cast<std::uint16_t>(function.symbol)].store(function.address);
  }
}

FakeDriver::~FakeDriver() {
  the_driver = nullptr;
}

}  // namespace testing

// In place of driver.cc.
namespace driver_detail {
std::atomic<void*> addresses[kSymbols];
void* look_up(Symbol) {
  std::abort();  // a function that the fake does not have
}
}  // namespace driver_detail

bool driver_has(Symbol symbol) {
  if (symbol == Symbol::cuMemPrefetchAsync_v2) return testing::FakeDriver::get().has_v2_prefetch;
  return driver_detail::addresses[static_cast<std::uint16_t>(symbol)].load() != nullptr;
}

}  // namespace fairlead::shim
