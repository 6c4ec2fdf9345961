#include "softgpu/driver/context/context_fault.h"

#include "softgpu/driver/log.h"

namespace softgpu {
namespace {

// The error that contexts get for an Xid of their device.
CUresult result_of_xid(unsigned xid) {
  switch (xid) {
    case 13: return CUDA_ERROR_LAUNCH_FAILED;    // graphics engine exception
    case 31: return CUDA_ERROR_ILLEGAL_ADDRESS;  // MMU fault
    case 48:                                     // double-bit ECC error
    case 94:                                     // contained and uncontained ECC errors
    case 95: return CUDA_ERROR_ECC_UNCORRECTABLE;
    case 74: return CUDA_ERROR_NVLINK_UNCORRECTABLE;
    case Faults::kFallenOffBus: return CUDA_ERROR_DEVICE_UNAVAILABLE;
    default: return CUDA_ERROR_UNKNOWN;
  }
}

}  // namespace

void ContextFault::reset() {
  xid_count_ = device_.faults().xid_count();
  shared_fault_count_ = device_.shared_fault_count();
  error_.store(CUDA_SUCCESS);
  cancel_.store(false);
}

void ContextFault::set(CUresult error, const std::string& detail) {
  int none = CUDA_SUCCESS;
  if (!error_.compare_exchange_strong(none, error)) return;
  end_work();  // kernels of other streams of this context end too
  if (!detail.empty()) log_line("error " + std::to_string(error) + ": " + detail);
}

void ContextFault::take_device_fault() {
  const std::uint32_t xid_count = device_.faults().xid_count();
  const std::uint32_t shared_fault_count = device_.shared_fault_count();
  if (mapping_lost()) {
    set(CUDA_ERROR_DEVICE_UNAVAILABLE,
        "a file in " + device_.machine().home +
            " was truncated or its file system is full; make room or lower the memory with "
            "SOFTGPU_MEMORY_SCALE, then run `softgpu reset`");
  } else if (xid_count != xid_count_) {
    const unsigned xid = device_.faults().last_xid();
    set(result_of_xid(xid), "Xid " + std::to_string(xid) + " of GPU " + std::to_string(device_.index()));
  } else if (device_.share().faults_shared) {
    set(static_cast<CUresult>(device_.shared_fault()), "the fault of another MPS client");
  }
  xid_count_ = xid_count;
  shared_fault_count_ = shared_fault_count;
}

}  // namespace softgpu
