// The process's view of the events that it shares with others (device/shared_events.h).
#pragma once

#include "softgpu/device/shared_events.h"
#include "softgpu/driver/stream/stream_handle.h"

namespace softgpu {

// Null when the table cannot be opened. REQUIRES: Process::get().
SharedEvents* shared_events();

// cuEventRecord for an event that has a row: the recording's number is completed when the stream gets there.
CUresult record_shared(CUevent event, const StreamUse& use);
// Waits as cuEventSynchronize; queues the wait as cuStreamWaitEvent.
void wait_shared(CUevent event);
void queue_wait_shared(CUevent event, const StreamUse& use);

}  // namespace softgpu
