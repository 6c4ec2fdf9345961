// Variables of modules and libraries. The driver tells their size only to who looks them up, so that is when they are
// counted; they go with their module.
#include "shim/hooks/counted.h"
#include "shim/lock.h"
#include "shim/table.h"

namespace fairlead::shim {
namespace {

constinit Lock lock;
constinit Table<const void*> owners FL_GUARDED_BY(lock);  // address -> module or library

void count_variable(const void* owner, CUdeviceptr address, std::size_t bytes) {
  const Guard guard(lock);
  if (address == 0 || owners.find(address) != nullptr) return;
  // It is there already: what does not fit under the cap is not refused, and not counted.
  if (!memory::reserve(bytes)) return count_passed_through();
  memory::record(address, bytes);
  owners.insert(address, owner);
}

void forget_variables(const void* owner) {
  const Guard guard(lock);
  while (const std::uint64_t address = owners.find_if([&](const void* other) { return other == owner; })) {
    owners.erase(address);
    memory::forget(address);
  }
}

// Looks a variable up and counts it. `address` and `bytes` may be null, as the driver allows.
template <typename LookUp>
CUresult look_up(const void* owner, CUdeviceptr* address, std::size_t* bytes, LookUp driver) {
  if (bypassed()) return driver(address, bytes);
  enter_process();
  const Bypass own_work;
  CUdeviceptr own_address = 0;
  std::size_t own_bytes = 0;
  const CUresult result = driver(address != nullptr ? address : &own_address, bytes != nullptr ? bytes : &own_bytes);
  if (result == CUDA_SUCCESS) {
    count_variable(owner, address != nullptr ? *address : own_address, bytes != nullptr ? *bytes : own_bytes);
  }
  return result;
}

}  // namespace
}  // namespace fairlead::shim

using namespace fairlead::shim;

HOOK cuModuleGetGlobal_v2(CUdeviceptr* address, size_t* bytes, CUmodule module, const char* name) {
  return look_up(module, address, bytes,
                 [&](CUdeviceptr* a, size_t* n) { return FAIRLEAD_REAL(cuModuleGetGlobal_v2)(a, n, module, name); });
}
HOOK cuLibraryGetGlobal(CUdeviceptr* address, size_t* bytes, CUlibrary library, const char* name) {
  return look_up(library, address, bytes,
                 [&](CUdeviceptr* a, size_t* n) { return FAIRLEAD_REAL(cuLibraryGetGlobal)(a, n, library, name); });
}
HOOK cuLibraryGetManaged(CUdeviceptr* address, size_t* bytes, CUlibrary library, const char* name) {
  return look_up(library, address, bytes,
                 [&](CUdeviceptr* a, size_t* n) { return FAIRLEAD_REAL(cuLibraryGetManaged)(a, n, library, name); });
}
HOOK cuModuleUnload(CUmodule module) {
  const CUresult result = FAIRLEAD_REAL(cuModuleUnload)(module);
  if (result == CUDA_SUCCESS && !bypassed()) forget_variables(module);
  return result;
}
HOOK cuLibraryUnload(CUlibrary library) {
  const CUresult result = FAIRLEAD_REAL(cuLibraryUnload)(library);
  if (result == CUDA_SUCCESS && !bypassed()) forget_variables(library);
  return result;
}
