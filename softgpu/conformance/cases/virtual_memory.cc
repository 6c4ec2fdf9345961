// Virtual memory management: addresses that are reserved, memory that is mapped there, access that is granted. What the
// documentation of cuMem* states. Export to another process is in processes.cc.
#include "softgpu/conformance/fields.h"
#include "softgpu/conformance/inputs.h"
#include "softgpu/conformance/mapping.h"

namespace softgpu::conformance {
namespace {

std::vector<unsigned> indices(std::size_t count) {
  std::vector<unsigned> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<unsigned>(i);
  return values;
}

void store_indices(Test& test, CUdeviceptr address, int count) {
  test.launch("store_index", {static_cast<unsigned>(count + 255) / 256, 256}, count, Buffer<unsigned>{address, 0});
  test.synchronize();
}

void granularity(Test& test) {
  if (!virtual_memory_supported(test)) return;
  const CUmemAllocationProp properties = device_memory();
  std::size_t least = 0, recommended = 0;
  test.check(driver().cuMemGetAllocationGranularity(&least, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM), "minimum");
  test.check(driver().cuMemGetAllocationGranularity(&recommended, &properties, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED),
             "recommended");
  if (!test.ok()) return;
  test.expect(least != 0 && (least & (least - 1)) == 0, "the minimum is a power of two");
  test.expect(recommended % least == 0, "the recommended granularity is a multiple of it");
  CUmemGenericAllocationHandle handle = 0;
  CUdeviceptr address = 0;
  test.expect_code("cuMemCreate of half a page", driver().cuMemCreate(&handle, least / 2, &properties, 0),
                   CUDA_ERROR_INVALID_VALUE);
  test.expect_code("cuMemCreate of a page and a half", driver().cuMemCreate(&handle, least * 3 / 2, &properties, 0),
                   CUDA_ERROR_INVALID_VALUE);
  test.expect_code("an alignment that is no power of two", driver().cuMemAddressReserve(&address, least, 3, 0, 0),
                   CUDA_ERROR_INVALID_VALUE);
  test.expect_code("cuMemAddressReserve", driver().cuMemAddressReserve(&address, least, 8 * least, 0, 0), CUDA_SUCCESS);
  test.expect_value("alignment", static_cast<long long>(address % (8 * least)), 0);
  test.expect_code("cuMemAddressFree", driver().cuMemAddressFree(address, least), CUDA_SUCCESS);
}

// Two allocations side by side are one range for kernels, copies and fills.
void one_range_of_two_allocations(Test& test) {
  if (!virtual_memory_supported(test)) return;
  Mapping mapping(test, 2);
  const std::size_t page = mapping.page();
  const auto first = mapping.create(), second = mapping.create();
  mapping.map(0, first);
  mapping.map(1, second);
  mapping.allow();
  if (!test.ok()) return;
  const int half = 500;
  const CUdeviceptr across = mapping.address() + page - half * 4;
  store_indices(test, across, 2 * half);
  test.equal("across the border", test.download(Buffer<unsigned>{across, 1000}), indices(1000));
  test.expect_code("cuMemsetD32", driver().cuMemsetD32(across + 4, 7, 998), CUDA_SUCCESS);
  std::vector<unsigned> want(1000, 7);
  want[0] = 0, want[999] = 999;
  test.equal("filled", test.download(Buffer<unsigned>{across, 1000}), want);
  unsigned long long flags = 0;
  const CUmemLocation here{CU_MEM_LOCATION_TYPE_DEVICE, 0};
  test.expect_code("cuMemGetAccess", driver().cuMemGetAccess(&flags, &here, across), CUDA_SUCCESS);
  test.expect_value("access", static_cast<long long>(flags), CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
  test.expect_code("cuMemUnmap of both at once", driver().cuMemUnmap(mapping.address(), 2 * page), CUDA_SUCCESS);
}

// Memory leaves the device and comes back, in another allocation, under the addresses that kernels know.
void evict_and_restore(Test& test) {
  if (!virtual_memory_supported(test)) return;
  Mapping mapping(test, 1);
  const std::size_t page = mapping.page();
  auto handle = mapping.create();
  mapping.map(0, handle);
  mapping.allow();
  if (!test.ok()) return;
  const int count = 4096;
  const CUdeviceptr data = mapping.address();
  store_indices(test, data, count);
  std::size_t resident = 0, evicted = 0, total = 0;
  driver().cuMemGetInfo(&resident, &total);
  auto saved = test.download(Buffer<unsigned>{data, count});
  test.equal("saved", saved, indices(count));
  test.expect_code("cuMemUnmap", driver().cuMemUnmap(data, page), CUDA_SUCCESS);
  mapping.release(handle);
  driver().cuMemGetInfo(&evicted, &total);
  test.expect(evicted >= resident + page, "eviction gives the memory back");
  for (unsigned& word : saved) word += 5;
  handle = mapping.create();
  mapping.map(0, handle);
  mapping.allow();
  test.expect_code("restore", driver().cuMemcpyHtoD(data, saved.data(), count * 4), CUDA_SUCCESS);
  const Buffer<unsigned> last{data + 4 * (count - 1), 1};
  test.launch("add_to", {1, 1}, last, 1u);
  saved[count - 1] = saved[count - 1] * 3 + 1;
  test.equal("restored", test.download(Buffer<unsigned>{data, count}), saved);
}

// One allocation mapped twice: what is written under one address is read under the other.
void two_views(Test& test) {
  if (!virtual_memory_supported(test)) return;
  Mapping mapping(test, 2);
  const auto handle = mapping.create();
  mapping.map(0, handle);
  mapping.map(1, handle);
  mapping.allow();
  if (!test.ok()) return;
  store_indices(test, mapping.address(), 1000);
  test.equal("the other view", test.download(Buffer<unsigned>{mapping.address() + mapping.page(), 1000}),
             indices(1000));
}

// cuMemRelease while mapped: the memory lives until it is unmapped.
void release_while_mapped(Test& test) {
  if (!virtual_memory_supported(test)) return;
  Mapping mapping(test, 1);
  const auto handle = mapping.create();
  mapping.map(0, handle);
  mapping.allow();
  if (!test.ok()) return;
  mapping.release(handle);
  store_indices(test, mapping.address(), 1000);
  test.equal("still there", test.download(Buffer<unsigned>{mapping.address(), 1000}), indices(1000));
  CUmemGenericAllocationHandle again = 0;
  CUmemAllocationProp properties{};
  test.expect_code("cuMemRetainAllocationHandle",
                   driver().cuMemRetainAllocationHandle(&again, reinterpret_cast<void*>(mapping.address() + 8)),
                   CUDA_SUCCESS);
  test.expect_code("its properties", driver().cuMemGetAllocationPropertiesFromHandle(&properties, again), CUDA_SUCCESS);
  test.expect_value("type", properties.type, CU_MEM_ALLOCATION_TYPE_PINNED);
  test.expect_value("location", properties.location.type, CU_MEM_LOCATION_TYPE_DEVICE);
  test.expect_code("cuMemRelease", driver().cuMemRelease(again), CUDA_SUCCESS);
}

// cuMemUnmap: "the range must be an entire contiguous address range mapped to". A GPU refuses a part of a mapping, and
// accepts a reserved range where nothing is mapped.
void whole_ranges(Test& test) {
  if (!virtual_memory_supported(test)) return;
  Mapping mapping(test, 2);
  const std::size_t page = mapping.page();
  const auto handle = mapping.create(2);
  test.check(driver().cuMemMap(mapping.address(), 2 * page, 0, handle, 0), "cuMemMap");
  mapping.allow();
  if (!test.ok()) return;
  test.expect_code("cuMemUnmap of a half", driver().cuMemUnmap(mapping.address(), page), CUDA_ERROR_INVALID_VALUE);
  test.expect_code("cuMemAddressFree of a half", driver().cuMemAddressFree(mapping.address(), page),
                   CUDA_ERROR_INVALID_VALUE);
  store_indices(test, mapping.address(), 1000);
  test.equal("nothing was lost", test.download(Buffer<unsigned>{mapping.address(), 1000}), indices(1000));
  test.expect(driver().cuMemMap(mapping.address(), page, 0, handle, 0) != CUDA_SUCCESS,
              "mapping over a mapping is refused");
  test.expect_code("cuMemUnmap", driver().cuMemUnmap(mapping.address(), 2 * page), CUDA_SUCCESS);
  test.expect_code("cuMemUnmap twice", driver().cuMemUnmap(mapping.address(), 2 * page), CUDA_SUCCESS);
  test.observe("cuMemUnmap of a part where nothing is mapped",
               name_of(driver().cuMemUnmap(mapping.address() + page, page)));
  mapping.map(0, mapping.create());
  test.observe("cuMemUnmap of a mapping and a hole", name_of(driver().cuMemUnmap(mapping.address(), 2 * page)));
}

void use_after_unmap(Test& test) {
  if (!virtual_memory_supported(test)) return;
  Mapping mapping(test, 1);
  const auto handle = mapping.create();
  mapping.map(0, handle);
  mapping.allow();
  store_indices(test, mapping.address(), 1);
  test.expect_code("cuMemUnmap", driver().cuMemUnmap(mapping.address(), mapping.page()), CUDA_SUCCESS);
  test.launch("store_index", {1, 32}, 32, Buffer<unsigned>{mapping.address(), 32});
  test.expect_code("cuCtxSynchronize", driver().cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
}

void use_without_access(Test& test) {
  if (!virtual_memory_supported(test)) return;
  Mapping mapping(test, 1);
  const auto handle = mapping.create();
  mapping.map(0, handle);
  test.launch("store_index", {1, 32}, 32, Buffer<unsigned>{mapping.address(), 32});
  test.expect_code("cuCtxSynchronize", driver().cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
}

constexpr Case kCases[] = {
    {"granularity", nullptr, granularity},
    {"one_range_of_two_allocations", "driver", one_range_of_two_allocations},
    {"evict_and_restore", "driver", evict_and_restore},
    {"two_views", "driver", two_views},
    {"release_while_mapped", "driver", release_while_mapped},
    {"whole_ranges", "driver", whole_ranges},
    {.name = "use_after_unmap", .kernels = "driver", .run = use_after_unmap, .isolated = true},
    {.name = "use_without_access", .kernels = "driver", .run = use_without_access, .isolated = true},
};

}  // namespace

const Field kVirtualMemory{"virtual_memory", kCases};

}  // namespace softgpu::conformance
