// Which changes of its nodes' parameters an executable graph allows.
#pragma once

#include "softgpu/driver/graph/flatten.h"

namespace softgpu::graph {

// Whether a step with description `from` may become `to`.
CUgraphExecUpdateResult compare_payloads(const Payload& from, const Payload& to);

// Whether the steps `to` are those of `from`, in the same structure, with parameters that may change; else why and where.
// Both are the steps from number `first` on of their lists. REQUIRES: they are equally many.
CUgraphExecUpdateResultInfo compare_steps(const std::vector<Step>& from, const std::vector<Step>& to,
                                          std::size_t first);

// Whether the copy is one row, which is all that the per-node update of a copy allows.
bool is_linear(const CUDA_MEMCPY3D& copy);

}  // namespace softgpu::graph
