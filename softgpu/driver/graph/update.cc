#include "softgpu/driver/graph/update.h"

#include "softgpu/driver/code/module.h"
#include "softgpu/driver/memory/memory.h"

namespace softgpu::graph {
namespace {

CUgraphExecUpdateResult compare_kernels(const KernelLaunch& from, const KernelLaunch& to) {
  if (from.function->module->context != to.function->module->context) {
    return CU_GRAPH_EXEC_UPDATE_ERROR_UNSUPPORTED_FUNCTION_CHANGE;
  }
  return is_cooperative(from.attributes) == is_cooperative(to.attributes)
             ? CU_GRAPH_EXEC_UPDATE_SUCCESS
             : CU_GRAPH_EXEC_UPDATE_ERROR_ATTRIBUTES_CHANGED;
}

// The device of one side, or null for the host.
const DriverDevice* device_of(CUmemorytype type, CUdeviceptr device) {
  return type == CU_MEMORYTYPE_HOST ? nullptr : Process::get()->owner_of(device);
}

bool same_sides(const CUDA_MEMCPY3D& from, const CUDA_MEMCPY3D& to) {
  return from.srcMemoryType == to.srcMemoryType && from.dstMemoryType == to.dstMemoryType &&
         device_of(from.srcMemoryType, from.srcDevice) == device_of(to.srcMemoryType, to.srcDevice) &&
         device_of(from.dstMemoryType, from.dstDevice) == device_of(to.dstMemoryType, to.dstDevice);
}

bool same_fill(const Fill& from, const Fill& to) {
  if (Process::get()->owner_of(from.dst) != Process::get()->owner_of(to.dst) || from.ctx != to.ctx) return false;
  if (from.height == 1 && to.height == 1) return true;
  return from.height == to.height && from.width == to.width && from.pitch == to.pitch &&
         from.elementSize == to.elementSize;
}

CUgraphExecUpdateResult changed_unless(bool same) {
  return same ? CU_GRAPH_EXEC_UPDATE_SUCCESS : CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED;
}

}  // namespace

bool is_linear(const CUDA_MEMCPY3D& copy) {
  return copy.Height == 1 && copy.Depth == 1;
}

CUgraphExecUpdateResult compare_payloads(const Payload& from, const Payload& to) {
  if (type_of(from) != type_of(to)) return CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED;
  if (const auto* kernel = std::get_if<KernelLaunch>(&from))
    return compare_kernels(*kernel, std::get<KernelLaunch>(to));
  if (const auto* copy = std::get_if<Copy>(&from)) {
    return changed_unless(same_sides(copy->shape, std::get<Copy>(to).shape));
  }
  if (const auto* fill = std::get_if<Fill>(&from)) return changed_unless(same_fill(*fill, std::get<Fill>(to)));
  if (const auto* allocate = std::get_if<Allocate>(&from)) {
    return changed_unless(allocate->memory == std::get<Allocate>(to).memory);
  }
  if (const auto* free = std::get_if<Free>(&from)) return changed_unless(free->address == std::get<Free>(to).address);
  if (const auto* batch = std::get_if<MemoryOperations>(&from)) {
    return changed_unless(batch->operations.size() == std::get<MemoryOperations>(to).operations.size());
  }
  return CU_GRAPH_EXEC_UPDATE_SUCCESS;
}

CUgraphExecUpdateResultInfo compare_steps(const std::vector<Step>& from, const std::vector<Step>& to,
                                          std::size_t first) {
  for (std::size_t i = 0; i < from.size(); ++i) {
    if (from[i].type != to[i].type) return {CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED, to[i].node, nullptr};
    if (from[i].after.size() != to[i].after.size()) {
      return {CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, to[i].node, nullptr};
    }
    for (std::size_t edge = 0; edge < from[i].after.size(); ++edge) {
      if (from[i].after[edge] == to[i].after[edge]) continue;
      const std::size_t before = to[i].after[edge];
      const CUgraphNode other = before >= first ? to[before - first].node : nullptr;
      return {CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, to[i].node, other};
    }
    const CUgraphExecUpdateResult result = compare_payloads(from[i].payload, to[i].payload);
    if (result != CU_GRAPH_EXEC_UPDATE_SUCCESS) return {result, to[i].node, nullptr};
  }
  return {CU_GRAPH_EXEC_UPDATE_SUCCESS, nullptr, nullptr};
}

}  // namespace softgpu::graph
