// The module's face: the cap and the counting around what Space lays out, and the driver's own allocations where it does
// not.
#include "shim/memory/memory.h"

#include "shim/driver.h"
#include "shim/memory/accounts.h"
#include "shim/memory/ledger.h"
#include "shim/memory/space.h"
#include "shim/room.h"

namespace fairlead::shim::memory {
namespace {

constinit Space the_space;
constinit Ledger the_ledger;

CUcontext current_context() {
  CUcontext context = nullptr;
  FAIRLEAD_REAL(cuCtxGetCurrent)(&context);
  return context;
}

void count_fixed(std::size_t bytes) {
  accounts::add_resident(bytes);
  accounts::add_fixed(bytes);
}
void uncount_fixed(std::size_t bytes) {
  accounts::drop_resident(bytes);
  accounts::drop_fixed(bytes);
}

// The driver's own memory, counted as fixed.
CUresult allocate_by_driver(CUdeviceptr* address, std::size_t bytes, CUcontext context) {
  CUresult result = FAIRLEAD_REAL(cuMemAlloc_v2)(address, bytes);
  if (result == CUDA_ERROR_OUT_OF_MEMORY) {
    the_space.drop_cached();
    result = making_room(bytes, [&] { return FAIRLEAD_REAL(cuMemAlloc_v2)(address, bytes); });
  }
  if (result != CUDA_SUCCESS) return result;
  Ledger::Entry replaced;
  if (!the_ledger.insert({*address, bytes, context, Ledger::Kind::kOurs}, &replaced)) {
    FAIRLEAD_REAL(cuMemFree_v2)(*address);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  count_fixed(bytes);
  return CUDA_SUCCESS;
}

Freed free_by_driver(CUdeviceptr address, CUresult* result) {
  // Out of the ledger before the driver may give the address to another thread.
  Ledger::Entry entry;
  if (!the_ledger.remove(address, Ledger::Kind::kOurs, &entry)) return Freed::kNotOurs;
  *result = FAIRLEAD_REAL(cuMemFree_v2)(address);
  if (*result != CUDA_SUCCESS) {
    Ledger::Entry replaced;
    the_ledger.insert(entry, &replaced);
    return Freed::kFailed;
  }
  uncount_fixed(entry.bytes);
  accounts::unreserve(entry.bytes);
  return Freed::kDone;
}

}  // namespace

Space& space() {
  return the_space;
}

void set_up(const Setup& setup) {
  // A node that comes back does not change what memory is made of.
  if (the_space.backing() == nullptr) {
    if (setup.backend == wire::MemoryBackend::kVmm) the_space.set_backing(&vmm_backing());
    if (setup.backend == wire::MemoryBackend::kUvm) the_space.set_backing(&uvm_backing(setup.uvm));
  }
  the_space.staging().use_arena(setup.arena_fd, setup.arena_bytes);
}

CUresult allocate(CUdeviceptr* address, std::size_t bytes) {
  // Without either it is the driver that says what is wrong.
  if (address == nullptr || bytes == 0) return FAIRLEAD_REAL(cuMemAlloc_v2)(address, bytes);
  const CUcontext context = current_context();
  if (context == nullptr) return FAIRLEAD_REAL(cuMemAlloc_v2)(address, bytes);
  if (!accounts::reserve(bytes)) return CUDA_ERROR_OUT_OF_MEMORY;
  Heap* heap = the_space.heap_of(context);
  const CUresult result =
      heap != nullptr ? the_space.allocate(*heap, bytes, address) : allocate_by_driver(address, bytes, context);
  if (result != CUDA_SUCCESS) accounts::unreserve(bytes);
  return result;
}

Freed free(CUdeviceptr address, CUresult* result) {
  std::size_t bytes = 0;
  const Freed freed = the_space.free(address, &bytes, result);
  if (freed == Freed::kNotOurs) return free_by_driver(address, result);
  if (freed == Freed::kDone) accounts::unreserve(bytes);
  return freed;
}

bool find(CUdeviceptr address, Range* range) {
  return the_space.find(address, range);
}

bool reserve(std::size_t bytes) {
  return accounts::reserve(bytes);
}

void unreserve(std::size_t bytes) {
  accounts::unreserve(bytes);
}

void record(std::uint64_t key, std::size_t bytes) {
  Ledger::Entry replaced;
  if (!the_ledger.insert({key, bytes, current_context(), Ledger::Kind::kRecorded}, &replaced)) {
    // What cannot be remembered could never be uncounted.
    accounts::unreserve(bytes);
    return;
  }
  count_fixed(bytes);
  if (replaced.key == 0) return;
  uncount_fixed(replaced.bytes);
  accounts::unreserve(replaced.bytes);
}

std::size_t forget(std::uint64_t key) {
  Ledger::Entry entry;
  if (!the_ledger.remove(key, Ledger::Kind::kRecorded, &entry)) return 0;
  uncount_fixed(entry.bytes);
  accounts::unreserve(entry.bytes);
  return entry.bytes;
}

void know_context(CUcontext context) {
  if (the_space.backing() != nullptr && context != nullptr) the_space.know(context);
}

void forget_context(CUcontext context) {
  accounts::unreserve(the_space.forget(context));
  const std::size_t bytes = the_ledger.remove_all(context);
  uncount_fixed(bytes);
  accounts::unreserve(bytes);
}

void forget_all() {
  new (&the_space) Space();
  new (&the_ledger) Ledger();
}

void pin(CUdeviceptr address) {
  the_space.pin(address);
}

CUresult grant(CUcontext owner, CUdevice device) {
  return the_space.grant(owner, device);
}

void show_capped(std::size_t* free, std::size_t* total) {
  const std::uint64_t cap = page().memory_cap.load(std::memory_order_relaxed);
  if (cap == 0 || cap >= *total) return;
  const std::uint64_t held = page().held.load(std::memory_order_relaxed);
  const std::size_t left = held < cap ? cap - held : 0;
  *total = cap;
  *free = left < *free ? left : *free;
}

}  // namespace fairlead::shim::memory
