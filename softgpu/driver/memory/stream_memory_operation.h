// Waits for, and writes of, a word of memory in a stream's order.
#pragma once

#include <functional>
#include <vector>

#include "softgpu/driver/context/context.h"

namespace softgpu {

// What executes the batch in order; waits end early when the context ends. INVALID_VALUE for an operation that does not
// exist, an unknown flag, or an address that is no aligned word of device or pinned memory; NOT_SUPPORTED for flushing
// remote writes, of which the device says that it has none.
CUresult prepare_memory_operations(CUcontext context, const std::vector<CUstreamBatchMemOpParams>& operations,
                                   unsigned flags, std::function<void()>& run);

}  // namespace softgpu
