// Streams under capture. What is put on such a stream does not run; most ways of waiting for the device, and recording
// an event on another stream, would break the capture.
//
// Threads: any.
#pragma once

#include "abi/cuda_types.h"

namespace fairlead::shim {

// Some stream of this process is under capture now, as the driver says: a stream whose capture ended without our seeing
// it does not count.
bool capturing();

// Called by the hooks.
void capture_began(CUstream stream);
void capture_ended(CUstream stream);
// In the child of a fork: there are none.
void forget_captures();

}  // namespace fairlead::shim
