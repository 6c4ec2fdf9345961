// A range of addresses for cases about virtual memory management: pages of the minimum granularity, mapped one by one.
#pragma once

#include "softgpu/conformance/test.h"

namespace softgpu::conformance {

inline CUmemAllocationProp device_memory(CUmemAllocationHandleType exported = CU_MEM_HANDLE_TYPE_NONE) {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.requestedHandleTypes = exported;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  return properties;
}

// False, with the case marked as skipped, on a device without virtual memory management.
inline bool virtual_memory_supported(Test& test) {
  if (test.attribute(CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED) == 0)
    test.skip("no virtual memory management");
  return test.ok();
}

// Reserved on the first device; unmapped, released and freed with the object, whatever the case left of it.
class Mapping {
 public:
  Mapping(Test& test, std::size_t pages, CUmemAllocationHandleType exported = CU_MEM_HANDLE_TYPE_NONE)
      : test_(test), properties_(device_memory(exported)) {
    test.check(driver().cuMemGetAllocationGranularity(&page_, &properties_, CU_MEM_ALLOC_GRANULARITY_MINIMUM),
               "cuMemGetAllocationGranularity");
    bytes_ = pages * page_;
    if (test.ok()) test.check(driver().cuMemAddressReserve(&address_, bytes_, 0, 0, 0), "cuMemAddressReserve");
  }
  ~Mapping() {
    if (address_ == 0) return;
    driver().cuCtxSynchronize();
    if (driver().cuMemUnmap(address_, bytes_) != CUDA_SUCCESS) {
      for (std::size_t at = 0; at < bytes_; at += page_) driver().cuMemUnmap(address_ + at, page_);
    }
    for (const auto handle : handles_) driver().cuMemRelease(handle);
    driver().cuMemAddressFree(address_, bytes_);
  }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  CUdeviceptr address() const { return address_; }
  std::size_t page() const { return page_; }
  std::size_t bytes() const { return bytes_; }

  CUmemGenericAllocationHandle create(std::size_t pages = 1) {
    CUmemGenericAllocationHandle handle = 0;
    if (test_.check(driver().cuMemCreate(&handle, pages * page_, &properties_, 0), "cuMemCreate")) {
      handles_.push_back(handle);
    }
    return handle;
  }
  void release(CUmemGenericAllocationHandle handle) {
    std::erase(handles_, handle);
    test_.check(driver().cuMemRelease(handle), "cuMemRelease");
  }
  // A page of the range becomes the first page of the allocation.
  void map(std::size_t page, CUmemGenericAllocationHandle handle) {
    if (test_.ok()) test_.check(driver().cuMemMap(address_ + page * page_, page_, 0, handle, 0), "cuMemMap");
  }
  // The whole range for reading and writing.
  void allow() {
    const CUmemAccessDesc access{properties_.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    if (test_.ok()) test_.check(driver().cuMemSetAccess(address_, bytes_, &access, 1), "cuMemSetAccess");
  }

 private:
  Test& test_;
  CUmemAllocationProp properties_;
  CUdeviceptr address_ = 0;
  std::size_t page_ = 0, bytes_ = 0;
  std::vector<CUmemGenericAllocationHandle> handles_;
};

}  // namespace softgpu::conformance
