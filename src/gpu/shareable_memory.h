// Device memory that other processes can map: the two calls of the driver that CudaContext has no use for.
//
// Threads: any.
#pragma once

#include <string>

#include "abi/cuda.h"
#include "base/result.h"
#include "base/unique_fd.h"
#include "base/units.h"
#include "gpu/context.h"
#include "gpu/shared_library.h"

namespace fairlead {

class ShareableMemory {
 public:
  // Of the context's device, which is the process's first; library_dir as the context's. kUnavailable: the driver lacks it.
  // `cuda` must outlive it.
  static Result<ShareableMemory> open(const std::string& library_dir, const CudaContext& cuda);

  // Not zeroed. kResourceExhausted. CudaContext maps and releases it.
  Result<CUmemGenericAllocationHandle> create(Bytes bytes) const;
  // A descriptor that holds it, for SCM_RIGHTS.
  Result<UniqueFd> share(CUmemGenericAllocationHandle memory) const;

 private:
  ShareableMemory(SharedLibrary library, const CudaContext& cuda) : library_(std::move(library)), cuda_(&cuda) {}

  SharedLibrary library_;
  const CudaContext* cuda_;
  decltype(cuMemCreate)* create_ = nullptr;
  decltype(cuMemExportToShareableHandle)* export_ = nullptr;
};

}  // namespace fairlead
