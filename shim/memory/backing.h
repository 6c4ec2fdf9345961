// What a back end does with one region. The order of calls is the state machine's (residency_state.h); no lock is held.
//
//   vmm   an address of its own; memory under it is made, mapped and given up
//   uvm   managed memory, which the driver moves; there is nothing to map and no staging
#pragma once

#include <cstddef>

#include "shim/memory/region.h"
#include "wire/shim_frames.h"

namespace fairlead::shim::memory {

struct Backing {
  // Whether the device can do it. REQUIRES: its context is current.
  bool (*supported)(CUdevice device);
  // Fills in start (a multiple of kGranule) and reserved. REQUIRES: bytes is set; the heap's context is current.
  CUresult (*reserve)(Region& region);
  void (*release)(Region& region);

  // Device memory under the address, reachable from `access`.
  CUresult (*map)(Region& region, const CUmemAccessDesc* access, unsigned accessors);
  // Mapped memory: changes who reaches it.
  CUresult (*set_access)(Region& region, const CUmemAccessDesc* access, unsigned accessors);
  // REQUIRES: no work uses it.
  CUresult (*unmap)(Region& region);

  // On the stream. With staging: from and to region.staged.
  CUresult (*copy_out)(Region& region, CUstream stream);
  CUresult (*copy_in)(Region& region, CUstream stream);

  bool staged;      // contents that are away are in staging
  bool moves;       // else the driver alone decides, and the moves have nothing to do
  bool of_context;  // the driver frees it with the context
};

const Backing& vmm_backing();
const Backing& uvm_backing(wire::UvmMode mode);

}  // namespace fairlead::shim::memory
