// Memory that somebody else gets to know by another name: another process, a network card, a multicast object. It never
// moves from then on.
#include "shim/hooks/counted.h"

using namespace fairlead::shim;

namespace {

template <typename Share>
CUresult share(CUdeviceptr address, Share real) {
  const Passage passage;
  memory::Range range;
  const bool ours = passage.slot() != nullptr && memory::find(address, &range);
  if (ours) memory::pin(address);
  const CUresult result = real();
  // Memory that can move is not cuMemAlloc's to the driver, which cannot share it in every way.
  if (ours && result != CUDA_SUCCESS) count_passed_through();
  return result;
}

}  // namespace

HOOK cuIpcGetMemHandle(CUipcMemHandle* handle, CUdeviceptr address) {
  return share(address, [&] { return FAIRLEAD_REAL(cuIpcGetMemHandle)(handle, address); });
}
HOOK cuMemGetHandleForAddressRange(void* handle, CUdeviceptr address, size_t bytes, int type,
                                   unsigned long long flags) {
  return share(address,
               [&] { return FAIRLEAD_REAL(cuMemGetHandleForAddressRange)(handle, address, bytes, type, flags); });
}
HOOK cuMulticastBindAddr(CUmemGenericAllocationHandle multicast, size_t offset, CUdeviceptr address, size_t bytes,
                         unsigned long long flags) {
  return share(address, [&] { return FAIRLEAD_REAL(cuMulticastBindAddr)(multicast, offset, address, bytes, flags); });
}
// Programs that register memory with a network card set CU_POINTER_ATTRIBUTE_SYNC_MEMOPS on it.
HOOK cuPointerSetAttribute(const void* value, CUpointer_attribute attribute, CUdeviceptr address) {
  return share(address, [&] { return FAIRLEAD_REAL(cuPointerSetAttribute)(value, attribute, address); });
}
