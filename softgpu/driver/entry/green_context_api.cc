// Green contexts: views of a device's primary context that own some of its SMs. The kernels in their streams take the time of these SMs, and
// what a cooperative launch may have is counted by them. Time does not depend on which SMs they are, so two may own the same.
//
// Their streams are streams of the primary context, with its modules, events, errors and what waits for all of it. What cuCtxFromGreenCtx()
// shows, to be made current, is a context of its own underneath: its modules can be launched into both, its errors are the primary context's.
#include <algorithm>
#include <cstring>

#include "softgpu/driver/handle.h"
#include "softgpu/driver/stream/stream_handle.h"

using softgpu::DriverDevice;
using softgpu::StreamUse;

struct CUdevResourceDesc_st {
  static constexpr std::uint32_t kMagic = 0x72646573;  // "rdes"
  std::atomic<std::uint32_t> magic{0};
  unsigned sm_count = 0;
};

struct CUgreenCtx_st {
  static constexpr std::uint32_t kMagic = 0x6763756E;  // "gctx"
  std::atomic<std::uint32_t> magic{0};
  CUcontext context = nullptr;  // what cuCtxFromGreenCtx() shows
  unsigned sm_count = 0;
};

namespace {

using Descriptions = softgpu::HandlePool<CUdevResourceDesc_st>;
using GreenContexts = softgpu::HandlePool<CUgreenCtx_st>;

// SMs come in groups: the smallest partition and the step between sizes, by compute capability.
struct Granularity {
  unsigned smallest = 0;
  unsigned step = 0;
};

Granularity granularity_of(const softgpu::Profile& profile, bool fine) {
  if (fine) return {2, 2};
  if (profile.compute_major >= 9) return {8, 8};
  return profile.compute_major == 8 ? Granularity{4, 2} : Granularity{2, 2};
}

// Which split of which resource gave it, and which of its parts it is: what belongs together is known by that.
struct Origin {
  std::uint64_t split = 0;  // 0: none, it is whole
  std::uint64_t part = 0;
};

Origin origin_of(const CUdevResource& resource) {
  Origin origin;
  std::memcpy(&origin, resource._internal_padding, sizeof origin);
  return origin;
}

CUdevResource resource_of(const softgpu::Profile& profile, unsigned sm_count, const Origin& origin = {}) {
  const Granularity granularity = granularity_of(profile, false);
  CUdevResource resource = {};
  resource.type = CU_DEV_RESOURCE_TYPE_SM;
  std::memcpy(resource._internal_padding, &origin, sizeof origin);
  resource.sm = {sm_count, granularity.smallest, granularity.step};
  return resource;
}

CUgreenCtx green_of(CUcontext context) {
  return GreenContexts::find([&](const CUgreenCtx_st& green) { return green.context == context; });
}

CUresult check_green(CUgreenCtx green) {
  if (softgpu::Process::get() == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  return GreenContexts::valid(green) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult check_type(const CUdevResource* resource, CUdevResourceType type) {
  if (resource == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return type == CU_DEV_RESOURCE_TYPE_SM ? CUDA_SUCCESS : CUDA_ERROR_INVALID_RESOURCE_TYPE;
}

unsigned round_up(unsigned count, unsigned step) {
  return (count + step - 1) / step * step;
}

}  // namespace

CUresult cuDeviceGetDevResource(CUdevice ordinal, CUdevResource* resource, CUdevResourceType type) {
  DriverDevice* device = nullptr;
  SOFTGPU_TRY(check_type(resource, type));
  SOFTGPU_TRY(softgpu::get_device(ordinal, device));
  const softgpu::Profile& profile = device->device->profile();
  *resource = resource_of(profile, static_cast<unsigned>(profile.sm_count));
  return CUDA_SUCCESS;
}

CUresult cuCtxGetDevResource(CUcontext context, CUdevResource* resource, CUdevResourceType type) {
  SOFTGPU_TRY(check_type(resource, type));
  SOFTGPU_TRY(softgpu::check_context(context));
  if (CUgreenCtx green = green_of(context)) return cuGreenCtxGetDevResource(green, resource, type);
  return cuDeviceGetDevResource(context->owner().ordinal, resource, type);
}

CUresult cuGreenCtxGetDevResource(CUgreenCtx green, CUdevResource* resource, CUdevResourceType type) {
  SOFTGPU_TRY(check_type(resource, type));
  SOFTGPU_TRY(check_green(green));
  *resource = resource_of(green->context->device().profile(), green->sm_count);
  return CUDA_SUCCESS;
}

// Equal groups of at least `min_count` SMs, as many as were asked for or fit; the rest remains. What comes of a split is not split again.
CUresult cuDevSmResourceSplitByCount(CUdevResource* groups, unsigned* count, const CUdevResource* input,
                                     CUdevResource* remaining, unsigned flags, unsigned min_count) {
  DriverDevice* device = nullptr;
  if (count == nullptr || input == nullptr || flags > 3) return CUDA_ERROR_INVALID_VALUE;
  if (input->type != CU_DEV_RESOURCE_TYPE_SM) return CUDA_ERROR_INVALID_RESOURCE_TYPE;
  if (origin_of(*input).split != 0) return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
  const unsigned total = input->sm.smCount;
  if (min_count > total || total == 0) return CUDA_ERROR_INVALID_VALUE;
  SOFTGPU_TRY(softgpu::get_device(0, device));  // devices of a machine are equal
  const softgpu::Profile& profile = device->device->profile();
  const Granularity granularity =
      granularity_of(profile, (flags & CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING) != 0);
  const unsigned size = round_up(std::max(min_count, granularity.smallest), granularity.step);
  const unsigned possible = total / size;
  if (possible == 0) return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
  *count = groups == nullptr ? possible : std::min(*count, possible);
  static std::atomic<std::uint64_t> last_split{0};
  const std::uint64_t split = last_split.fetch_add(1) + 1;
  for (unsigned i = 0; groups != nullptr && i < *count; ++i) groups[i] = resource_of(profile, size, {split, i});
  if (remaining != nullptr) {
    *remaining = resource_of(profile, total - *count * size, {split, *count});
    if (remaining->sm.smCount == 0) remaining->type = CU_DEV_RESOURCE_TYPE_INVALID;
  }
  return CUDA_SUCCESS;
}

// Several are different parts of one split.
CUresult cuDevResourceGenerateDesc(CUdevResourceDesc* description, CUdevResource* resources, unsigned count) {
  if (description == nullptr || resources == nullptr || count == 0) return CUDA_ERROR_INVALID_VALUE;
  unsigned sm_count = 0;
  for (unsigned i = 0; i < count; ++i) {
    if (resources[i].type != CU_DEV_RESOURCE_TYPE_SM) return CUDA_ERROR_INVALID_RESOURCE_TYPE;
    sm_count += resources[i].sm.smCount;
    const Origin own = origin_of(resources[i]);
    for (unsigned other = 0; other < i; ++other) {
      const Origin before = origin_of(resources[other]);
      const bool fits = own.split != 0 && own.split == before.split && own.part != before.part;
      if (!fits) return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
    }
  }
  *description = Descriptions::take();
  (*description)->sm_count = sm_count;
  return CUDA_SUCCESS;
}

CUresult cuGreenCtxCreate(CUgreenCtx* green, CUdevResourceDesc description, CUdevice ordinal, unsigned flags) {
  DriverDevice* device = nullptr;
  if (green == nullptr || flags != CU_GREEN_CTX_DEFAULT_STREAM || !Descriptions::valid(description)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  SOFTGPU_TRY(softgpu::get_device(ordinal, device));
  if (description->sm_count > device->device->profile().sm_count) return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
  auto context = std::make_unique<CUctx_st>(*device, 0);
  context->settings.sms.store(description->sm_count);
  SOFTGPU_TRY(cuDevicePrimaryCtxRetain(&context->primary, ordinal));
  if (const CUresult activated = context->activate(); activated != CUDA_SUCCESS) {
    cuDevicePrimaryCtxRelease_v2(ordinal);
    return activated;
  }
  CUgreenCtx made = GreenContexts::take();
  made->sm_count = description->sm_count;
  context->green = std::make_shared<softgpu::GreenStreams>(made, made->sm_count);
  made->context = context.release();  // the registry keeps it for ever: a stale handle must stay readable
  *green = made;
  return CUDA_SUCCESS;
}

CUresult cuGreenCtxDestroy(CUgreenCtx green) {
  SOFTGPU_TRY(check_green(green));
  CUcontext context = green->context;
  context->green->detached = true;
  GreenContexts::give_back(green);
  const CUresult destroyed = cuCtxDestroy_v2(context);
  cuDevicePrimaryCtxRelease_v2(context->owner().ordinal);
  return destroyed;
}

CUresult cuGreenCtxGetId(CUgreenCtx green, unsigned long long* id) {
  if (id == nullptr) return CUDA_ERROR_INVALID_VALUE;
  SOFTGPU_TRY(check_green(green));
  *id = green->context->id();
  return CUDA_SUCCESS;
}

CUresult cuCtxFromGreenCtx(CUcontext* context, CUgreenCtx green) {
  if (context == nullptr) return CUDA_ERROR_INVALID_VALUE;
  SOFTGPU_TRY(check_green(green));
  *context = green->context;
  return CUDA_SUCCESS;
}

CUresult cuGreenCtxStreamCreate(CUstream* stream, CUgreenCtx green, unsigned flags, int priority) {
  SOFTGPU_TRY(check_green(green));
  if (flags != CU_STREAM_NON_BLOCKING) return CUDA_ERROR_INVALID_VALUE;
  SOFTGPU_TRY(cuCtxPushCurrent_v2(green->context->primary));
  const CUresult result = cuStreamCreateWithPriority(stream, flags, priority);
  cuCtxPopCurrent_v2(nullptr);
  if (result != CUDA_SUCCESS) return result;
  (*stream)->green = green->context->green;
  green->context->green->add((*stream)->stream);
  return CUDA_SUCCESS;
}

CUresult cuStreamGetGreenCtx(CUstream handle, CUgreenCtx* green) {
  StreamUse use;
  if (green == nullptr) return CUDA_ERROR_INVALID_VALUE;
  SOFTGPU_TRY(softgpu::resolve_stream(handle, use));
  *green = use.green != nullptr ? use.green->handle : green_of(use.context);
  return CUDA_SUCCESS;
}

CUresult cuStreamGetCtx_v2(CUstream handle, CUcontext* context, CUgreenCtx* green) {
  StreamUse use;
  if (context == nullptr || green == nullptr) return CUDA_ERROR_INVALID_VALUE;
  SOFTGPU_TRY(softgpu::resolve_stream(handle, use));
  SOFTGPU_TRY(cuStreamGetGreenCtx(handle, green));
  *context = *green == nullptr ? use.context : nullptr;
  return CUDA_SUCCESS;
}

CUresult cuGreenCtxRecordEvent(CUgreenCtx green, CUevent event) {
  SOFTGPU_TRY(check_green(green));
  return cuCtxRecordEvent(green->context, event);
}

CUresult cuGreenCtxWaitEvent(CUgreenCtx green, CUevent event) {
  SOFTGPU_TRY(check_green(green));
  return cuCtxWaitEvent(green->context, event);
}
