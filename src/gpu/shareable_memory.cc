#include "gpu/shareable_memory.h"

namespace fairlead {

Result<ShareableMemory> ShareableMemory::open(const std::string& library_dir, const CudaContext& cuda) {
  auto library = SharedLibrary::load(library_dir, "libcuda.so.1", "install the NVIDIA driver");
  if (!library) return fail(library.error());
  ShareableMemory memory(*std::move(library), cuda);
  for (const Status& bound : {memory.library_.bind(memory.create_, "cuMemCreate"),
                              memory.library_.bind(memory.export_, "cuMemExportToShareableHandle")}) {
    if (!bound) return fail(bound.error());
  }
  return memory;
}

Result<CUmemGenericAllocationHandle> ShareableMemory::create(Bytes bytes) const {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  CUmemGenericAllocationHandle memory = 0;
  const CUresult code = create_(&memory, static_cast<std::size_t>(bytes.count()), &properties, 0);
  const Status made = cuda_->check(code, fmt::format("take {} bytes of device memory to be shared", bytes.count()));
  if (!made) return fail(made.error());
  return memory;
}

Result<UniqueFd> ShareableMemory::share(CUmemGenericAllocationHandle memory) const {
  int descriptor = -1;
  const CUresult code = export_(&descriptor, memory, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
  if (Status exported = cuda_->check(code, "cuMemExportToShareableHandle"); !exported) return fail(exported.error());
  return UniqueFd(descriptor);
}

}  // namespace fairlead
