#include "softgpu/driver/graph/payload.h"

#include "softgpu/driver/memory/copy.h"
#include "softgpu/driver/memory/stream_memory_operation.h"
#include "softgpu/driver/stream/stream_handle.h"

namespace softgpu::graph {
namespace {

template <typename... Visitors>
struct Overload : Visitors... {
  using Visitors::operator()...;
};
template <typename... Visitors>
Overload(Visitors...) -> Overload<Visitors...>;

CUresult check_event(CUevent event) {
  return Events::valid(event) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

}  // namespace

CUgraphNodeType type_of(const Payload& payload) {
  return std::visit(Overload{
                        [](const Empty&) { return CU_GRAPH_NODE_TYPE_EMPTY; },
                        [](const KernelLaunch&) { return CU_GRAPH_NODE_TYPE_KERNEL; },
                        [](const Copy&) { return CU_GRAPH_NODE_TYPE_MEMCPY; },
                        [](const Fill&) { return CU_GRAPH_NODE_TYPE_MEMSET; },
                        [](const HostCall&) { return CU_GRAPH_NODE_TYPE_HOST; },
                        [](const ChildGraph&) { return CU_GRAPH_NODE_TYPE_GRAPH; },
                        [](const EventRecord&) { return CU_GRAPH_NODE_TYPE_EVENT_RECORD; },
                        [](const EventWait&) { return CU_GRAPH_NODE_TYPE_WAIT_EVENT; },
                        [](const Allocate&) { return CU_GRAPH_NODE_TYPE_MEM_ALLOC; },
                        [](const Free&) { return CU_GRAPH_NODE_TYPE_MEM_FREE; },
                        [](const MemoryOperations&) { return CU_GRAPH_NODE_TYPE_BATCH_MEM_OP; },
                    },
                    payload);
}

CUresult prepare(const Payload& payload, std::function<void()>& run) {
  run = nullptr;
  return std::visit(Overload{
                        [&](const KernelLaunch& launch) { return prepare_kernel(launch, run); },
                        [&](const Copy& copy) { return prepare_copy(copy.shape, copy.context, run); },
                        [&](const Fill& fill) {
                          return prepare_fill(
                              {fill.dst, fill.pitch, fill.value, fill.elementSize, fill.width, fill.height}, fill.ctx,
                              run);
                        },
                        [&](const HostCall& call) {
                          if (call.fn == nullptr) return CUDA_ERROR_INVALID_VALUE;
                          run = [call] { call.fn(call.userData); };
                          return CUDA_SUCCESS;
                        },
                        [&](const EventRecord& record) { return check_event(record.event); },
                        [&](const EventWait& wait) { return check_event(wait.event); },
                        [&](const MemoryOperations& batch) {
                          return prepare_memory_operations(batch.context, batch.operations, batch.flags, run);
                        },
                        [](const auto&) { return CUDA_SUCCESS; },  // structure and memory
                    },
                    payload);
}

}  // namespace softgpu::graph
