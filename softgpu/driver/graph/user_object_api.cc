// User objects.
#include "softgpu/driver/graph/graph.h"
#include "softgpu/driver/graph/user_object.h"
#include "softgpu/driver/process.h"

using softgpu::graph::check_graph;
using softgpu::graph::UserObjects;

namespace {

constexpr unsigned kMaxReferences = 2147483647;

CUresult check_object(CUuserObject object, unsigned count) {
  if (softgpu::Process::get() == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  const bool possible = count != 0 && count <= kMaxReferences;
  return possible && UserObjects::valid(object) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

}  // namespace

void CUuserObject_st::release(std::uint64_t count) {
  if (references.fetch_sub(count) != count) return;
  const CUhostFn last = destroy;
  void* const argument = pointer;
  UserObjects::give_back(this);
  last(argument);
}

namespace softgpu::graph {

UserReferences::UserReferences(const UserReferences& other) : counts_(other.counts_) {
  for (const auto& [object, count] : counts_) object->references.fetch_add(count);
}

UserReferences& UserReferences::operator=(const UserReferences& other) {
  UserReferences copy(other);
  swap(copy);
  return *this;
}

bool UserReferences::release(CUuserObject object, std::uint64_t count) {
  const auto found = counts_.find(object);
  if (found == counts_.end() || found->second < count) return false;
  found->second -= count;
  if (found->second == 0) counts_.erase(found);
  object->release(count);
  return true;
}

void UserReferences::clear() {
  std::map<CUuserObject, std::uint64_t> counts;
  counts.swap(counts_);
  for (const auto& [object, count] : counts) object->release(count);
}

}  // namespace softgpu::graph

CUresult cuUserObjectCreate(CUuserObject* object, void* pointer, CUhostFn destroy, unsigned references,
                            unsigned flags) {
  if (softgpu::Process::get() == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  if (object == nullptr || destroy == nullptr || references == 0 || references > kMaxReferences ||
      flags != CU_USER_OBJECT_NO_DESTRUCTOR_SYNC) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  CUuserObject made = UserObjects::take();
  made->references = references;
  made->destroy = destroy;
  made->pointer = pointer;
  *object = made;
  return CUDA_SUCCESS;
}

CUresult cuUserObjectRetain(CUuserObject object, unsigned count) {
  SOFTGPU_TRY(check_object(object, count));
  object->references.fetch_add(count);
  return CUDA_SUCCESS;
}

CUresult cuUserObjectRelease(CUuserObject object, unsigned count) {
  SOFTGPU_TRY(check_object(object, count));
  if (object->references.load() < count) return CUDA_ERROR_INVALID_VALUE;
  object->release(count);
  return CUDA_SUCCESS;
}

CUresult cuGraphRetainUserObject(CUgraph graph, CUuserObject object, unsigned count, unsigned flags) {
  if ((flags & ~static_cast<unsigned>(CU_GRAPH_USER_OBJECT_MOVE)) != 0) return CUDA_ERROR_INVALID_VALUE;
  SOFTGPU_TRY(check_graph(graph));
  SOFTGPU_TRY(check_object(object, count));
  if (flags != CU_GRAPH_USER_OBJECT_MOVE) object->references.fetch_add(count);
  graph->references.adopt(object, count);
  return CUDA_SUCCESS;
}

CUresult cuGraphReleaseUserObject(CUgraph graph, CUuserObject object, unsigned count) {
  SOFTGPU_TRY(check_graph(graph));
  SOFTGPU_TRY(check_object(object, count));
  return graph->references.release(object, count) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
