// Contexts: primary, created, current.
#include <algorithm>

#include "softgpu/driver/context/context.h"
#include "softgpu/mutex.h"

using softgpu::check_context;
using softgpu::context_stack;
using softgpu::current_context;
using softgpu::DriverDevice;
using softgpu::get_device;

namespace {

softgpu::Mutex& primary_mutex() {
  static auto* mutex = new softgpu::Mutex;
  return *mutex;
}

bool known_flags(unsigned flags) {
  const unsigned schedule = flags & CU_CTX_SCHED_MASK;  // one way at most
  return (flags & ~static_cast<unsigned>(CU_CTX_FLAGS_MASK)) == 0 && (schedule & (schedule - 1)) == 0;
}

CUresult retain_primary(DriverDevice& device, CUcontext& context) {
  const softgpu::LockGuard guard(primary_mutex());
  if (device.primary == nullptr) device.primary = new CUctx_st(device, 0);
  if (!device.primary->active()) SOFTGPU_TRY(device.primary->activate());
  ++device.primary->primary_references;
  context = device.primary;
  return CUDA_SUCCESS;
}

CUresult create(CUcontext* context, unsigned flags, CUdevice ordinal) {
  DriverDevice* device = nullptr;
  if (context == nullptr || !known_flags(flags)) return CUDA_ERROR_INVALID_VALUE;
  SOFTGPU_TRY(get_device(ordinal, device));
  auto made = std::make_unique<CUctx_st>(*device, flags);
  SOFTGPU_TRY(made->activate());
  *context = made.release();  // the registry keeps it for ever: a stale handle must stay readable
  context_stack().push_back(*context);
  return CUDA_SUCCESS;
}

}  // namespace

CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice ordinal) {
  DriverDevice* device = nullptr;
  if (context == nullptr) return CUDA_ERROR_INVALID_VALUE;
  SOFTGPU_TRY(get_device(ordinal, device));
  return retain_primary(*device, *context);
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice ordinal) {
  DriverDevice* device = nullptr;
  SOFTGPU_TRY(get_device(ordinal, device));
  const softgpu::LockGuard guard(primary_mutex());
  if (device->primary == nullptr || device->primary->primary_references == 0) return CUDA_ERROR_INVALID_CONTEXT;
  if (--device->primary->primary_references == 0 && device->primary->active()) device->primary->shut_down();
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxReset_v2(CUdevice ordinal) {
  DriverDevice* device = nullptr;
  SOFTGPU_TRY(get_device(ordinal, device));
  const softgpu::LockGuard guard(primary_mutex());
  if (device->primary != nullptr && device->primary->active()) device->primary->shut_down();
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice ordinal, unsigned flags) {
  DriverDevice* device = nullptr;
  if (!known_flags(flags)) return CUDA_ERROR_INVALID_VALUE;
  SOFTGPU_TRY(get_device(ordinal, device));
  const softgpu::LockGuard guard(primary_mutex());
  if (device->primary == nullptr) device->primary = new CUctx_st(*device, 0);
  device->primary->settings.flags = flags;
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRelease(CUdevice device) {
  return cuDevicePrimaryCtxRelease_v2(device);
}
CUresult cuDevicePrimaryCtxReset(CUdevice device) {
  return cuDevicePrimaryCtxReset_v2(device);
}
CUresult cuDevicePrimaryCtxSetFlags(CUdevice device, unsigned flags) {
  return cuDevicePrimaryCtxSetFlags_v2(device, flags);
}

CUresult cuDevicePrimaryCtxGetState(CUdevice ordinal, unsigned* flags, int* active) {
  DriverDevice* device = nullptr;
  if (flags == nullptr || active == nullptr) return CUDA_ERROR_INVALID_VALUE;
  SOFTGPU_TRY(get_device(ordinal, device));
  const softgpu::LockGuard guard(primary_mutex());
  *flags = device->primary != nullptr ? device->primary->settings.flags.load() : 0;
  *active = device->primary != nullptr && device->primary->active() ? 1 : 0;
  return CUDA_SUCCESS;
}

CUresult cuCtxCreate(CUcontext* context, unsigned flags, CUdevice device) {
  return create(context, flags, device);
}
CUresult cuCtxCreate_v2(CUcontext* context, unsigned flags, CUdevice device) {
  return create(context, flags, device);
}

CUresult cuCtxCreate_v3(CUcontext* context, CUexecAffinityParam* affinity, int affinity_count, unsigned flags,
                        CUdevice device) {
  if (affinity != nullptr && affinity_count > 0) return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
  return create(context, flags, device);
}

CUresult cuCtxCreate_v4(CUcontext* context, CUctxCreateParams* parameters, unsigned flags, CUdevice device) {
  if (parameters != nullptr && parameters->cigParams != nullptr) return CUDA_ERROR_NOT_SUPPORTED;
  if (parameters == nullptr) return create(context, flags, device);
  return cuCtxCreate_v3(context, parameters->execAffinityParams, parameters->numExecAffinityParams, flags, device);
}

CUresult cuCtxDestroy_v2(CUcontext context) {
  SOFTGPU_TRY(check_context(context));
  if (context == context->owner().primary) return CUDA_ERROR_INVALID_CONTEXT;
  context->shut_down();
  auto& stack = context_stack();
  if (!stack.empty() && stack.back() == context) stack.pop_back();
  return CUDA_SUCCESS;
}

CUresult cuCtxDestroy(CUcontext context) {
  return cuCtxDestroy_v2(context);
}

CUresult cuCtxPushCurrent_v2(CUcontext context) {
  SOFTGPU_TRY(check_context(context));
  context_stack().push_back(context);
  return CUDA_SUCCESS;
}

CUresult cuCtxPushCurrent(CUcontext context) {
  return cuCtxPushCurrent_v2(context);
}

CUresult cuCtxPopCurrent_v2(CUcontext* context) {
  if (softgpu::Process::get() == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  auto& stack = context_stack();
  if (stack.empty()) return CUDA_ERROR_INVALID_CONTEXT;
  if (context != nullptr) *context = stack.back();
  stack.pop_back();
  return CUDA_SUCCESS;
}

CUresult cuCtxPopCurrent(CUcontext* context) {
  return cuCtxPopCurrent_v2(context);
}

CUresult cuCtxSetCurrent(CUcontext context) {
  auto& stack = context_stack();
  if (context != nullptr) SOFTGPU_TRY(check_context(context));
  if (softgpu::Process::get() == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  if (!stack.empty()) stack.pop_back();
  if (context != nullptr) stack.push_back(context);
  return CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext* context) {
  if (softgpu::Process::get() == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  if (context == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const auto& stack = context_stack();
  *context = stack.empty() ? nullptr : stack.back();
  return CUDA_SUCCESS;
}

CUresult cuCtxGetDevice(CUdevice* device) {
  CUcontext context = nullptr;
  if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
  SOFTGPU_TRY(current_context(context));
  *device = context->owner().ordinal;
  return CUDA_SUCCESS;
}

CUresult cuCtxGetDevice_v2(CUdevice* device, CUcontext context) {
  if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (context == nullptr) return cuCtxGetDevice(device);
  SOFTGPU_TRY(check_context(context));
  *device = context->owner().ordinal;
  return CUDA_SUCCESS;
}

CUresult cuCtxGetFlags(unsigned* flags) {
  CUcontext context = nullptr;
  if (flags == nullptr) return CUDA_ERROR_INVALID_VALUE;
  SOFTGPU_TRY(current_context(context));
  *flags = context->settings.flags;
  return CUDA_SUCCESS;
}

CUresult cuCtxSetFlags(unsigned flags) {
  CUcontext context = nullptr;
  if (!known_flags(flags)) return CUDA_ERROR_INVALID_VALUE;
  SOFTGPU_TRY(current_context(context));
  context->settings.flags = flags;
  return CUDA_SUCCESS;
}

CUresult cuCtxGetId(CUcontext context, unsigned long long* id) {
  if (id == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (context == nullptr) SOFTGPU_TRY(current_context(context));
  SOFTGPU_TRY(check_context(context));
  *id = context->id();
  return CUDA_SUCCESS;
}

CUresult cuCtxGetApiVersion(CUcontext context, unsigned* version) {
  constexpr unsigned kApiVersion = 3020;
  if (version == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (context == nullptr) SOFTGPU_TRY(current_context(context));
  SOFTGPU_TRY(check_context(context));
  *version = kApiVersion;
  return CUDA_SUCCESS;
}

CUresult cuCtxGetExecAffinity(CUexecAffinityParam* affinity, CUexecAffinityType type) {
  CUcontext context = nullptr;
  if (affinity == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (type != CU_EXEC_AFFINITY_TYPE_SM_COUNT) return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
  SOFTGPU_TRY(current_context(context));
  affinity->type = type;
  affinity->param.smCount.val = static_cast<unsigned>(context->device().profile().sm_count);
  return CUDA_SUCCESS;
}
