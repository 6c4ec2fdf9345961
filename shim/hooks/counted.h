// Allocations that are left to the driver and counted (memory.h: reserve, record, forget).
#pragma once

#include "shim/gate.h"
#include "shim/hooks/hook.h"
#include "shim/hooks/keys.h"
#include "shim/memory/memory.h"
#include "shim/room.h"

namespace fairlead::shim {

// A program that allocates is about to work: it waits, as a launch would, for memory that is away.
inline void pass_gate() {
  const Passage passage;
}

// Reserves, calls `allocate`, and records what it made under `key()`. Out of memory past the cap, or when the device is
// full and the node finds no room.
template <typename Allocate, typename Key>
CUresult count_new(std::size_t bytes, Allocate allocate, Key key) {
  if (bypassed()) return allocate();
  pass_gate();
  const Bypass own_work;
  if (!memory::reserve(bytes)) return CUDA_ERROR_OUT_OF_MEMORY;
  const CUresult result = making_room(bytes, allocate);
  if (result == CUDA_SUCCESS) {
    memory::record(key(), bytes);
  } else {
    memory::unreserve(bytes);
  }
  return result;
}

// Calls `release`, which ends what was recorded under `key`. The record goes first: once the driver has freed something,
// another thread may be given the same address. It comes back if the driver refuses.
template <typename Release>
CUresult count_gone(std::uint64_t key, Release release) {
  if (bypassed()) return release();
  const Bypass own_work;
  const std::size_t bytes = memory::forget(key);
  const CUresult result = release();
  if (result == CUDA_SUCCESS || bytes == 0) return result;
  if (memory::reserve(bytes)) {
    memory::record(key, bytes);
  } else {
    count_passed_through();
  }
  return result;
}

}  // namespace fairlead::shim
