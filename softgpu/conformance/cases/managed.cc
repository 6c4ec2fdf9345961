// Managed memory: one pointer for host and device, advice, prefetching, more than the device has. What the documentation
// of cuMemAllocManaged, cuMemAdvise and cuMemPrefetchAsync states.
#include <unistd.h>

#include "softgpu/conformance/fields.h"
#include "softgpu/conformance/inputs.h"
#include "softgpu/conformance/test.h"

namespace softgpu::conformance {
namespace {

constexpr CUmemLocation kDevice{CU_MEM_LOCATION_TYPE_DEVICE, 0};
constexpr CUmemLocation kHost{CU_MEM_LOCATION_TYPE_HOST, 0};

// Host access while the device works, advice and oversubscription need this. Skips the case without it.
bool concurrent_access(Test& test) {
  if (test.attribute(CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS) == 0) test.skip("no concurrent managed access");
  return test.ok();
}

// Bytes. A host that cannot take what the device evicts would hang the GPU for everyone.
std::size_t free_host_memory() {
  return static_cast<std::size_t>(sysconf(_SC_AVPHYS_PAGES)) * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

class Managed {
 public:
  Managed(Test& test, std::size_t bytes) {
    test.check(driver().cuMemAllocManaged(&address_, bytes, CU_MEM_ATTACH_GLOBAL), "cuMemAllocManaged");
  }
  ~Managed() {
    driver().cuCtxSynchronize();
    if (address_ != 0) driver().cuMemFree(address_);
  }
  Managed(const Managed&) = delete;
  Managed& operator=(const Managed&) = delete;

  CUdeviceptr address() const { return address_; }
  unsigned* words() const { return reinterpret_cast<unsigned*>(address_); }
  Buffer<unsigned> buffer(std::size_t count) const { return {address_, count}; }

 private:
  CUdeviceptr address_ = 0;
};

void both_sides(Test& test) {
  const Managed memory(test, 4096);
  if (!test.ok()) return;
  unsigned want = 11;
  memory.words()[5] = want;
  for (unsigned round = 0; round < 5; ++round) {
    test.launch("add_to", {1, 1}, Buffer<unsigned>{memory.address() + 20, 1}, round);
    test.synchronize();
    want = want * 3 + round;
    test.expect_value("the host sees it", memory.words()[5], want);
    memory.words()[5] = ++want;
  }
  test.expect_code("cuMemsetD32", driver().cuMemsetD32(memory.address(), 9, 4), CUDA_SUCCESS);
  test.synchronize();
  test.expect_value("a fill", memory.words()[3], 9);
  const unsigned source[] = {1, 2, 3, 4};
  test.expect_code("cuMemcpy from the host", driver().cuMemcpyHtoD(memory.address() + 16, source, 16), CUDA_SUCCESS);
  test.expect_value("a copy", memory.words()[7], 4);
}

void attributes(Test& test) {
  const Managed memory(test, 4096);
  if (!test.ok()) return;
  unsigned managed = 0;
  CUmemorytype type{};
  CUdeviceptr device = 0;
  void* host = nullptr;
  const CUdeviceptr at = memory.address() + 64;
  test.expect_code("IS_MANAGED", driver().cuPointerGetAttribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, at),
                   CUDA_SUCCESS);
  test.expect_value("is managed", managed & 1, 1);
  test.check(driver().cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, at), "type");
  test.observe("memory type", std::to_string(type));
  test.check(driver().cuPointerGetAttribute(&device, CU_POINTER_ATTRIBUTE_DEVICE_POINTER, at), "device pointer");
  test.check(driver().cuPointerGetAttribute(&host, CU_POINTER_ATTRIBUTE_HOST_POINTER, at), "host pointer");
  test.expect(device == at && reinterpret_cast<CUdeviceptr>(host) == at, "one address for both sides");
  CUdeviceptr none = 0;
  test.expect_code("no bytes", driver().cuMemAllocManaged(&none, 0, CU_MEM_ATTACH_GLOBAL), CUDA_ERROR_INVALID_VALUE);
  test.expect_code("no flag", driver().cuMemAllocManaged(&none, 4096, 0), CUDA_ERROR_INVALID_VALUE);
  test.expect_code("both flags", driver().cuMemAllocManaged(&none, 4096, CU_MEM_ATTACH_GLOBAL | CU_MEM_ATTACH_HOST),
                   CUDA_ERROR_INVALID_VALUE);
}

int range_attribute(Test& test, CUmem_range_attribute attribute, CUdeviceptr address, std::size_t bytes) {
  int value = -9;
  test.check(driver().cuMemRangeGetAttribute(&value, sizeof value, attribute, address, bytes),
             "cuMemRangeGetAttribute");
  return value;
}

// What was advised can be asked for; a range that is not uniform has no answer (CU_DEVICE_INVALID).
void advice(Test& test) {
  if (!concurrent_access(test)) return;
  const std::size_t bytes = std::size_t{8} << 20;
  const Managed memory(test, bytes);
  const CUdeviceptr at = memory.address();
  if (!test.ok()) return;
  test.expect_code("read mostly", driver().cuMemAdvise(at, bytes, CU_MEM_ADVISE_SET_READ_MOSTLY, kDevice),
                   CUDA_SUCCESS);
  test.expect_value("is read mostly", range_attribute(test, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, at, bytes), 1);
  test.expect_code("no more", driver().cuMemAdvise(at, bytes, CU_MEM_ADVISE_UNSET_READ_MOSTLY, kDevice), CUDA_SUCCESS);
  test.expect_value("is not", range_attribute(test, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, at, bytes), 0);
  test.expect_value("no preference", range_attribute(test, CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION, at, bytes),
                    CU_DEVICE_INVALID);
  test.expect_code("prefer the device",
                   driver().cuMemAdvise(at, bytes / 2, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, kDevice), CUDA_SUCCESS);
  test.expect_value("the first half", range_attribute(test, CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION, at, bytes / 2),
                    0);
  test.expect_value("the whole", range_attribute(test, CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION, at, bytes),
                    CU_DEVICE_INVALID);
  test.expect_code("prefer the host", driver().cuMemAdvise(at, bytes, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, kHost),
                   CUDA_SUCCESS);
  test.expect_value("the host", range_attribute(test, CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION, at, bytes),
                    CU_DEVICE_CPU);
  const auto unmanaged = test.zeros<char>(4096);
  test.expect_code("memory that is not managed",
                   driver().cuMemAdvise(unmanaged.address, 4096, CU_MEM_ADVISE_SET_READ_MOSTLY, kDevice),
                   CUDA_ERROR_INVALID_VALUE);
}

void prefetch(Test& test) {
  if (!concurrent_access(test)) return;
  const std::size_t count = 1 << 20, bytes = 4 * count;
  const Managed memory(test, bytes);
  if (!test.ok()) return;
  const CUdeviceptr at = memory.address();
  for (std::size_t i = 0; i < count; i += 1024) memory.words()[i] = static_cast<unsigned>(i);
  test.expect_code("to the device", driver().cuMemPrefetchAsync(at, bytes, kDevice, 0, nullptr), CUDA_SUCCESS);
  test.synchronize();
  test.expect_value("last prefetch", range_attribute(test, CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION, at, bytes),
                    0);
  test.launch("add_to", {1, 1}, Buffer<unsigned>{at + 4096, 1}, 2u);
  test.expect_code("to the host", driver().cuMemPrefetchAsync(at, bytes, kHost, 0, nullptr), CUDA_SUCCESS);
  test.synchronize();
  test.expect_value("last prefetch", range_attribute(test, CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION, at, bytes),
                    CU_DEVICE_CPU);
  std::vector<unsigned> got, want;
  for (std::size_t i = 0; i < count; i += 1024) {
    got.push_back(memory.words()[i]);
    want.push_back(static_cast<unsigned>(i == 1024 ? 3 * i + 2 : i));
  }
  test.equal("nothing changed on the way", got, want);
  const auto unmanaged = test.zeros<char>(4096);
  test.expect_code("memory that is not managed",
                   driver().cuMemPrefetchAsync(unmanaged.address, 4096, kDevice, 0, nullptr), CUDA_ERROR_INVALID_VALUE);
}

// Managed memory may exceed the device's: what does not fit is evicted to the host and comes back on demand. One word in
// each 2 MiB page, the size in which memory moves.
void more_than_the_device_has(Test& test) {
  if (!concurrent_access(test)) return;
  const std::size_t stride = std::size_t{2} << 20;
  std::size_t total = 0;
  test.check(driver().cuDeviceTotalMem(&total, 0), "cuDeviceTotalMem");
  if (free_host_memory() / 2 < total) return test.skip("needs twice the device's memory free on the host");
  const std::size_t pages = total / stride + 16;
  const Managed memory(test, pages * stride);
  if (!test.ok()) return;
  const int n = static_cast<int>(pages), step = static_cast<int>(stride / 4);
  const unsigned blocks = static_cast<unsigned>(n + 127) / 128;
  const auto sum = test.zeros<unsigned long long>(1);
  for (unsigned round = 1; round <= 2; ++round) {
    test.launch("touch_pages", {blocks, 128}, n, step, memory.buffer(0), round);
  }
  test.launch("sum_pages", {blocks, 128}, n, step, memory.buffer(0), sum);
  test.synchronize();
  if (!test.ok()) return;
  unsigned long long want = 0;
  for (unsigned i = 0; i < pages; ++i) want += 3 * i + 3;
  const auto got = test.download(sum);
  test.expect(got.front() == want, "the device finds all that it wrote");
  bool right = true;
  for (std::size_t i = 0; i < pages; i += 7) right = right && memory.words()[i * (stride / 4)] == 3 * i + 3;
  test.expect(right, "and so does the host");
}

// A __managed__ variable of a module.
void managed_variable(Test& test) {
  const auto variable = test.global<unsigned>("counters");
  test.expect_value("elements", static_cast<long long>(variable.count), 4);
  unsigned managed = 0;
  test.check(driver().cuPointerGetAttribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, variable.address), "IS_MANAGED");
  test.expect_value("is managed", managed & 1, 1);
  if (!test.ok()) return;
  auto* words = reinterpret_cast<volatile unsigned*>(variable.address);
  test.expect_value("initial value", words[2], 30);
  words[2] = 100;
  test.launch("count_up", {1, 4});
  test.synchronize();
  test.expect_value("after the kernel", words[2], 101);
  test.expect_value("its neighbour", words[3], 41);
}

constexpr Case kCases[] = {
    {"both_sides", "driver", both_sides},
    {"attributes", nullptr, attributes},
    {"advice", nullptr, advice},
    {"prefetch", "driver", prefetch},
    {"more_than_the_device_has", "managed", more_than_the_device_has, Bits::kFree},
    {"managed_variable", "managed_variable", managed_variable},
};

}  // namespace

const Field kManaged{"managed", kCases};

}  // namespace softgpu::conformance
