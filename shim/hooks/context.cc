// Contexts: what a context held is gone with it; which one is current decides where GPU time is measured.
#include <algorithm>

#include "shim/hooks/counted.h"
#include "shim/room.h"

namespace fairlead::shim {
namespace {

CUresult changes_context(CUresult result) {
  context_changed();
  return result;
}

// Work will come from the context, even if it allocates nothing.
CUresult comes_into_use(CUcontext context, CUresult result) {
  if (result == CUDA_SUCCESS && !bypassed()) {
    const Bypass own_work;
    memory::know_context(context);
  }
  return changes_context(result);
}

// What a context takes of a device, about: an H200's takes 550 MiB. The driver tells nobody beforehand.
std::uint64_t context_bytes(CUdevice device) {
  constexpr std::uint64_t kMost = std::uint64_t{512} << 20;
  std::size_t total = 0;
  if (FAIRLEAD_REAL(cuDeviceTotalMem_v2)(&total, device) != CUDA_SUCCESS) return kMost;
  return std::min<std::uint64_t>(kMost, total / 8);
}

// On a full device a context needs room like any allocation.
template <typename Create>
CUresult make_context(CUdevice device, Create create) {
  if (bypassed()) return create();
  const Bypass own_work;
  return making_room(context_bytes(device), create);
}

template <typename Create>
CUresult create_context(CUcontext* context, CUdevice device, Create create) {
  const CUresult result = make_context(device, create);
  return comes_into_use(result == CUDA_SUCCESS ? *context : nullptr, result);
}

// Our mappings have rights of their own, which the driver's call does not change.
CUresult let_in(CUcontext owner) {
  const Bypass own_work;
  CUdevice device = 0;
  const CUresult result = FAIRLEAD_REAL(cuCtxGetDevice)(&device);
  return result == CUDA_SUCCESS ? memory::grant(owner, device) : result;
}

void forget(CUcontext context) {
  const Bypass own_work;
  memory::forget_context(context);
  forget_work(context);
}

template <typename Destroy>
CUresult destroy(CUcontext context, Destroy real) {
  if (bypassed() || context == nullptr) return real();
  // Not while its memory moves.
  const Passage passage;
  const ContextEnd end;
  const CUresult result = real();
  if (result == CUDA_SUCCESS) forget(context);
  return changes_context(result);
}

// The primary context of the device, if it is active now; else null.
CUcontext active_primary(CUdevice device) {
  const Bypass own_work;
  unsigned int flags = 0;
  int active = 0;
  CUcontext context = nullptr;
  if (FAIRLEAD_REAL(cuDevicePrimaryCtxGetState)(device, &flags, &active) != CUDA_SUCCESS || active == 0) return nullptr;
  if (FAIRLEAD_REAL(cuDevicePrimaryCtxRetain)(&context, device) != CUDA_SUCCESS) return nullptr;
  FAIRLEAD_REAL(cuDevicePrimaryCtxRelease_v2)(device);
  return context;
}

// A release destroys the context only if it is the last one; a reset does so always.
template <typename End>
CUresult end_primary(CUdevice device, bool always, End real) {
  if (bypassed()) return real(device);
  const Passage passage;
  const ContextEnd end;
  CUcontext const context = active_primary(device);
  const CUresult result = real(device);
  if (result == CUDA_SUCCESS && context != nullptr && (always || active_primary(device) == nullptr)) forget(context);
  return changes_context(result);
}

}  // namespace
}  // namespace fairlead::shim

using namespace fairlead::shim;

HOOK cuInit(unsigned int flags) {
  enter_process();
  return FAIRLEAD_REAL(cuInit)(flags);
}

HOOK cuCtxCreate(CUcontext* context, unsigned int flags, CUdevice device) {
  return create_context(context, device, [&] { return FAIRLEAD_REAL(cuCtxCreate)(context, flags, device); });
}
HOOK cuCtxCreate_v2(CUcontext* context, unsigned int flags, CUdevice device) {
  return create_context(context, device, [&] { return FAIRLEAD_REAL(cuCtxCreate_v2)(context, flags, device); });
}
HOOK cuCtxCreate_v3(CUcontext* context, CUexecAffinityParam* affinity, int count, unsigned int flags, CUdevice device) {
  return create_context(context, device,
                        [&] { return FAIRLEAD_REAL(cuCtxCreate_v3)(context, affinity, count, flags, device); });
}
HOOK cuCtxCreate_v4(CUcontext* context, CUctxCreateParams* parameters, unsigned int flags, CUdevice device) {
  return create_context(context, device,
                        [&] { return FAIRLEAD_REAL(cuCtxCreate_v4)(context, parameters, flags, device); });
}
HOOK cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  return make_context(device, [&] { return FAIRLEAD_REAL(cuDevicePrimaryCtxRetain)(context, device); });
}
HOOK cuCtxSetCurrent(CUcontext context) {
  return comes_into_use(context, FAIRLEAD_REAL(cuCtxSetCurrent)(context));
}
HOOK cuCtxPushCurrent(CUcontext context) {
  return comes_into_use(context, FAIRLEAD_REAL(cuCtxPushCurrent)(context));
}
HOOK cuCtxPushCurrent_v2(CUcontext context) {
  return comes_into_use(context, FAIRLEAD_REAL(cuCtxPushCurrent_v2)(context));
}
HOOK cuCtxPopCurrent(CUcontext* context) {
  return changes_context(FAIRLEAD_REAL(cuCtxPopCurrent)(context));
}
HOOK cuCtxPopCurrent_v2(CUcontext* context) {
  return changes_context(FAIRLEAD_REAL(cuCtxPopCurrent_v2)(context));
}

HOOK cuCtxEnablePeerAccess(CUcontext peer, unsigned int flags) {
  const Passage passage;
  const CUresult result = FAIRLEAD_REAL(cuCtxEnablePeerAccess)(peer, flags);
  return result == CUDA_SUCCESS && passage.slot() != nullptr ? let_in(peer) : result;
}

HOOK cuCtxDestroy(CUcontext context) {
  return destroy(context, [&] { return FAIRLEAD_REAL(cuCtxDestroy)(context); });
}
HOOK cuCtxDestroy_v2(CUcontext context) {
  return destroy(context, [&] { return FAIRLEAD_REAL(cuCtxDestroy_v2)(context); });
}
HOOK cuCtxDetach(CUcontext context) {
  return changes_context(FAIRLEAD_REAL(cuCtxDetach)(context));
}
HOOK cuGreenCtxDestroy(CUgreenCtx green) {
  CUcontext context = nullptr;
  if (!bypassed()) FAIRLEAD_REAL(cuCtxFromGreenCtx)(&context, green);
  return destroy(context, [&] { return FAIRLEAD_REAL(cuGreenCtxDestroy)(green); });
}
HOOK cuDevicePrimaryCtxRelease(CUdevice device) {
  return end_primary(device, false, FAIRLEAD_REAL(cuDevicePrimaryCtxRelease));
}
HOOK cuDevicePrimaryCtxRelease_v2(CUdevice device) {
  return end_primary(device, false, FAIRLEAD_REAL(cuDevicePrimaryCtxRelease_v2));
}
HOOK cuDevicePrimaryCtxReset(CUdevice device) {
  return end_primary(device, true, FAIRLEAD_REAL(cuDevicePrimaryCtxReset));
}
HOOK cuDevicePrimaryCtxReset_v2(CUdevice device) {
  return end_primary(device, true, FAIRLEAD_REAL(cuDevicePrimaryCtxReset_v2));
}
