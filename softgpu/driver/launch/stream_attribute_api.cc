// Attributes of streams. They are hints that change nothing here; what a program sets it reads back.
#include <cstring>

#include "softgpu/driver/launch/launch.h"
#include "softgpu/driver/stream/stream_handle.h"
#include "softgpu/mutex.h"

using softgpu::Stream;
using softgpu::StreamUse;

namespace {

static_assert(sizeof(CUlaunchAttributeValue) == 64);

bool is_of_streams(CUlaunchAttributeID id) {
  return id == CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW || id == CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY ||
         id == CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP || id == CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN;
}

auto values_of(Stream::Hints& hints) {
  const softgpu::LockGuard guard(hints.mutex);
  return hints.values;
}

}  // namespace

CUresult cuStreamSetAttribute(CUstream handle, CUlaunchAttributeID attribute, const CUlaunchAttributeValue* value) {
  StreamUse use;
  if (value == nullptr || !is_of_streams(attribute)) return CUDA_ERROR_INVALID_VALUE;
  SOFTGPU_TRY(softgpu::check_attribute(attribute, *value));
  SOFTGPU_TRY(softgpu::resolve_stream(handle, use));
  Stream::Hints& hints = use.stream->hints;
  const softgpu::LockGuard guard(hints.mutex);
  std::memcpy(hints.values[attribute].data(), value, sizeof *value);
  return CUDA_SUCCESS;
}

CUresult cuStreamGetAttribute(CUstream handle, CUlaunchAttributeID attribute, CUlaunchAttributeValue* value) {
  StreamUse use;
  const bool priority = attribute == CU_LAUNCH_ATTRIBUTE_PRIORITY;
  if (value == nullptr || (!is_of_streams(attribute) && !priority)) return CUDA_ERROR_INVALID_VALUE;
  SOFTGPU_TRY(softgpu::resolve_stream(handle, use));
  SOFTGPU_TRY(softgpu::default_attribute(attribute, *value));
  if (priority) value->priority = use.stream->priority;
  Stream::Hints& hints = use.stream->hints;
  const softgpu::LockGuard guard(hints.mutex);
  const auto found = hints.values.find(attribute);
  if (found != hints.values.end()) std::memcpy(value, found->second.data(), sizeof *value);
  return CUDA_SUCCESS;
}

CUresult cuStreamCopyAttributes(CUstream target, CUstream source) {
  StreamUse to;
  StreamUse from;
  SOFTGPU_TRY(softgpu::resolve_stream(target, to));
  SOFTGPU_TRY(softgpu::resolve_stream(source, from));
  auto values = values_of(from.stream->hints);
  Stream::Hints& hints = to.stream->hints;
  const softgpu::LockGuard guard(hints.mutex);
  hints.values = std::move(values);
  return CUDA_SUCCESS;
}
