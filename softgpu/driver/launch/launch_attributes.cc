// Launch attributes: which exist, what values they may have, and which ask for something the machine lacks.
#include "softgpu/driver/launch/launch.h"

#include <algorithm>

#include "softgpu/driver/stream/stream_handle.h"

namespace softgpu {
namespace {

CUresult check_cluster(unsigned x, unsigned y, unsigned z) {
  if (x == 0 || y == 0 || z == 0) return CUDA_ERROR_INVALID_VALUE;
  return x == 1 && y == 1 && z == 1 ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED;
}

CUresult check_window(const CUaccessPolicyWindow& window) {
  const bool ratio = window.hitRatio >= 0 && window.hitRatio <= 1;
  const bool hit = window.hitProp >= CU_ACCESS_PROPERTY_NORMAL && window.hitProp <= CU_ACCESS_PROPERTY_PERSISTING;
  const bool miss = window.missProp == CU_ACCESS_PROPERTY_NORMAL || window.missProp == CU_ACCESS_PROPERTY_STREAMING;
  return ratio && hit && miss ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult check_between(int value, int low, int high) {
  return value >= low && value <= high ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

}  // namespace

CUresult check_attribute(CUlaunchAttributeID id, const CUlaunchAttributeValue& value) {
  switch (id) {
    case CU_LAUNCH_ATTRIBUTE_IGNORE:
    case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
    case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION:
    case CU_LAUNCH_ATTRIBUTE_PRIORITY:
    case CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING:
    case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT:
    case CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT: return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW: return check_window(value.accessPolicyWindow);
    case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY:
      return check_between(value.syncPolicy, CU_SYNC_POLICY_AUTO, CU_SYNC_POLICY_BLOCKING_SYNC);
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
    case CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION:
      return check_cluster(value.clusterDim.x, value.clusterDim.y, value.clusterDim.z);
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE: return check_between(value.cooperative, 0, 2);
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP: return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN: return check_between(value.memSyncDomain, 0, 1);
    case CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE:
      return value.deviceUpdatableKernelNode.deviceUpdatable == 0 ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED;
    case CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
      return check_between(static_cast<int>(value.sharedMemCarveout), -1, 100);
  }
  return CUDA_ERROR_INVALID_VALUE;
}

CUresult read_attributes(const CUlaunchAttribute* list, unsigned count, LaunchAttributes& attributes) {
  if (count != 0 && list == nullptr) return CUDA_ERROR_INVALID_VALUE;
  for (unsigned i = 0; i < count; ++i) {
    SOFTGPU_TRY(check_attribute(list[i].id, list[i].value));
    if (list[i].id != CU_LAUNCH_ATTRIBUTE_IGNORE) attributes[list[i].id] = list[i].value;
  }
  return CUDA_SUCCESS;
}

CUresult default_attribute(CUlaunchAttributeID id, CUlaunchAttributeValue& value) {
  value = {};
  if (id == CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY) value.syncPolicy = CU_SYNC_POLICY_AUTO;
  if (id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION || id == CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION) {
    value.clusterDim = {1, 1, 1};
  }
  return check_attribute(id, value);
}

bool records_events(const LaunchAttributes& attributes) {
  return attributes.contains(CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT) ||
         attributes.contains(CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT);
}

CUresult check_events(const LaunchAttributes& attributes) {
  const auto valid = [](const auto& entry) {
    if (entry.first == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT)
      return Events::valid(entry.second.programmaticEvent.event);
    if (entry.first != CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT) return true;
    return Events::valid(entry.second.launchCompletionEvent.event);
  };
  return std::all_of(attributes.begin(), attributes.end(), valid) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

bool is_cooperative(const LaunchAttributes& attributes) {
  const auto found = attributes.find(CU_LAUNCH_ATTRIBUTE_COOPERATIVE);
  return found != attributes.end() && found->second.cooperative != 0;
}

}  // namespace softgpu
