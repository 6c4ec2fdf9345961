// Whether kernels of one context may use the memory of another.
#include "softgpu/driver/context/context.h"
#include "softgpu/driver/memory/address_space.h"

using softgpu::check_context;
using softgpu::ContextSpace;

CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned flags) {
  CUcontext context = nullptr;
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  SOFTGPU_TRY(softgpu::healthy_context(context));
  SOFTGPU_TRY(check_context(peer));
  if (peer == context) return CUDA_ERROR_INVALID_CONTEXT;
  if (!softgpu::can_be_peers(peer->owner(), context->owner())) return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
  return context->part<ContextSpace>().enable_peer(peer) ? CUDA_SUCCESS : CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
}

CUresult cuCtxDisablePeerAccess(CUcontext peer) {
  CUcontext context = nullptr;
  SOFTGPU_TRY(softgpu::healthy_context(context));
  SOFTGPU_TRY(check_context(peer));
  return context->part<ContextSpace>().disable_peer(peer) ? CUDA_SUCCESS : CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
}
