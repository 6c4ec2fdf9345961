// What the environment says to the shim. A value that cannot be read is reported on standard error and counts as unset:
// a host program must not fail over it.
//
//   FAIRLEAD_SHIM_SOCKET       path of the node's socket; unset: no node
//   FAIRLEAD_SHIM_TOKEN        the instance's token, decimal
//   FAIRLEAD_SHIM_MEMORY_CAP   without a node: bytes of device memory this process may hold; 0 or unset: no cap
//   FAIRLEAD_SHIM_BACKEND      without a node: none, vmm, uvm
//   FAIRLEAD_SHIM_UVM          without a node: plain, advise, prefetch, prefetch-swap
#pragma once

#include <cstddef>
#include <cstdint>

#include "wire/shim_frames.h"

namespace fairlead::shim {

struct Settings {
  const char* socket = nullptr;  // of the environment; null: no node
  std::uint64_t token = 0;
  std::uint64_t memory_cap = 0;
  wire::MemoryBackend backend = wire::MemoryBackend::kNone;
  wire::UvmMode uvm = wire::UvmMode::kPrefetchSwap;
};

// `get` is getenv, `complain` is told one line per value that cannot be read. Threads: as getenv.
Settings read_settings(const char* (*get)(const char* name), void (*complain)(const char* line));

}  // namespace fairlead::shim
