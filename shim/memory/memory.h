// A program's device memory, as the hooks see it: allocations that look like the driver's own and whose contents can
// leave the device and come back to the same address. One of three back ends (wire::MemoryBackend) does it; where one
// cannot take an allocation it is left to the driver and counted as fixed.
//
//   resident ──swap_out──> leaving ──> away ──swap_in──> returning ──> resident         per allocation or slab
//
// Every function returns the driver's own codes. Threads: any; the two moves are called by the shim's service thread only.
#pragma once

#include <cstddef>
#include <cstdint>

#include "abi/cuda_types.h"
#include "wire/shim_frames.h"

namespace fairlead::shim::memory {

struct Range {
  CUdeviceptr start = 0;
  std::size_t bytes = 0;        // as the program asked
  CUcontext context = nullptr;  // current when it was allocated
};

// Before the first allocation: what the node's Welcome says. Again whenever a node has come back: then only the arena is
// new, and what is away stays where it is until it returns. `arena_fd` is this module's from here on.
struct Setup {
  wire::MemoryBackend backend = wire::MemoryBackend::kNone;
  wire::UvmMode uvm = wire::UvmMode::kPrefetchSwap;
  int arena_fd = -1;  // staging shared by the node; -1: memory of this process
  std::uint64_t arena_bytes = 0;
};
void set_up(const Setup& setup);

// cuMemAlloc in the current context: CUDA_ERROR_OUT_OF_MEMORY past the cap, or when the device is full and the node
// finds no room.
CUresult allocate(CUdeviceptr* address, std::size_t bytes);
// cuMemFree. kNotOurs: no allocation of this module starts there; the caller asks the driver.
enum class Freed { kDone, kFailed, kNotOurs };
Freed free(CUdeviceptr address, CUresult* result);

// The allocation that contains `address`; false: none of this module's.
bool find(CUdeviceptr address, Range* range);

// Memory that the driver gave by another way (pools, arrays, graphs, cuMemCreate, managed), for the accounting: reserve
// before the driver is asked (false: past the cap), take back if it refused or when it is freed. `key` is the pointer or
// handle.
bool reserve(std::size_t bytes);
void unreserve(std::size_t bytes);
void record(std::uint64_t key, std::size_t bytes);
// The bytes recorded under `key`, which are counted no more; 0: none were.
std::size_t forget(std::uint64_t key);

// A context that may use memory of others without allocating any: its work, too, must end before memory leaves.
void know_context(CUcontext context);
// The context has been destroyed, and with it all that was allocated or recorded while it was current: counted no more.
// What does not go with a context (address space, memory of cuMemCreate, staging) is released here. REQUIRES: within the
// Passage in which it was destroyed, so that nothing moves.
void forget_context(CUcontext context);
// For the child of a fork, where nothing of the parent's is there and locks may be held by threads that are not: makes no
// driver call and leaves the module as new.
void forget_all();

// The allocation that contains `address` never moves from now on (exported, registered with another device).
void pin(CUdeviceptr address);
// cuCtxEnablePeerAccess: from now on `device` reaches what `owner` has and will allocate.
CUresult grant(CUcontext owner, CUdevice device);

// As in wire: at least `bytes` out, or everything back in. The gate is closed by these functions, and while anything is
// away it stays closed. `deadline_ns` is for the work under way to end.
wire::Moved swap_out(std::uint64_t bytes, std::uint64_t deadline_ns);
wire::Moved swap_in();

// Makes of the device's own numbers what the program is shown: under a cap the cap and what is left of it; without one,
// or where the device has less, they stay.
void show_capped(std::size_t* free, std::size_t* total);

}  // namespace fairlead::shim::memory
