// Memory pools: order, reuse, counters, release. What the documentation of the stream-ordered allocator states.
#include "softgpu/conformance/fields.h"
#include "softgpu/conformance/scene.h"

namespace softgpu::conformance {
namespace {

constexpr std::size_t kMegabyte = 1 << 20;

bool pools_supported(Test& test) {
  if (test.attribute(CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED) == 0) test.skip("no memory pools");
  return test.ok();
}

// A pool of the first device, destroyed with the object.
class Pool {
 public:
  explicit Pool(Test& test, std::size_t max_bytes = 0) : test_(test) {
    CUmemPoolProps properties{};
    properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    properties.maxSize = max_bytes;
    test.check(driver().cuMemPoolCreate(&pool_, &properties), "cuMemPoolCreate");
  }
  ~Pool() { destroy(); }
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  CUmemoryPool get() const { return pool_; }
  CUdeviceptr allocate(std::size_t bytes, CUstream stream) {
    CUdeviceptr address = 0;
    if (test_.ok()) {
      test_.check(driver().cuMemAllocFromPoolAsync(&address, bytes, pool_, stream), "cuMemAllocFromPoolAsync");
    }
    return address;
  }
  void free(CUdeviceptr address, CUstream stream) {
    if (test_.ok()) test_.check(driver().cuMemFreeAsync(address, stream), "cuMemFreeAsync");
  }
  cuuint64_t counter(CUmemPool_attribute attribute) {
    cuuint64_t value = 0;
    test_.check(driver().cuMemPoolGetAttribute(pool_, attribute, &value), "cuMemPoolGetAttribute");
    return value;
  }
  CUresult set(CUmemPool_attribute attribute, cuuint64_t value) {
    return driver().cuMemPoolSetAttribute(pool_, attribute, &value);
  }
  void destroy() {
    if (pool_ != nullptr) driver().cuMemPoolDestroy(pool_);
    pool_ = nullptr;
  }

 private:
  Test& test_;
  CUmemoryPool pool_ = nullptr;
};

void store(Test& test, CUstream stream, CUdeviceptr address, int count) {
  Shape shape{static_cast<unsigned>(count + 255) / 256, 256};
  shape.stream = stream;
  test.launch("store_index", shape, count, Buffer<unsigned>{address, 0});
}

void counters(Test& test) {
  if (!pools_supported(test)) return;
  Scene scene(test);
  const CUstream stream = scene.stream(CU_STREAM_NON_BLOCKING);
  Pool pool(test);
  test.expect_value("used at first", static_cast<long long>(pool.counter(CU_MEMPOOL_ATTR_USED_MEM_CURRENT)), 0);
  const CUdeviceptr a = pool.allocate(kMegabyte, stream), b = pool.allocate(3 * kMegabyte, stream);
  test.expect(pool.counter(CU_MEMPOOL_ATTR_USED_MEM_CURRENT) >= 4 * kMegabyte, "used counts both");
  test.expect(pool.counter(CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) >= pool.counter(CU_MEMPOOL_ATTR_USED_MEM_CURRENT),
              "what is used is reserved");
  pool.free(a, stream);
  pool.free(b, stream);
  test.expect_code("cuStreamSynchronize", driver().cuStreamSynchronize(stream), CUDA_SUCCESS);
  test.expect_value("used at last", static_cast<long long>(pool.counter(CU_MEMPOOL_ATTR_USED_MEM_CURRENT)), 0);
  test.expect(pool.counter(CU_MEMPOOL_ATTR_USED_MEM_HIGH) >= 4 * kMegabyte, "the high mark stays");
  test.expect_code("a high mark is set to 0 only", pool.set(CU_MEMPOOL_ATTR_USED_MEM_HIGH, 5),
                   CUDA_ERROR_INVALID_VALUE);
  test.expect_code("reset", pool.set(CU_MEMPOOL_ATTR_USED_MEM_HIGH, 0), CUDA_SUCCESS);
  test.expect_value("after the reset", static_cast<long long>(pool.counter(CU_MEMPOOL_ATTR_USED_MEM_HIGH)), 0);
}

// The release threshold is what a pool holds on to before it tries to give memory back; a trim goes below it.
void threshold_and_trim(Test& test) {
  if (!pools_supported(test)) return;
  Scene scene(test);
  const CUstream stream = scene.stream(CU_STREAM_NON_BLOCKING);
  Pool pool(test);
  test.expect_value("threshold", static_cast<long long>(pool.counter(CU_MEMPOOL_ATTR_RELEASE_THRESHOLD)), 0);
  test.expect_code("set", pool.set(CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, ~cuuint64_t{0}), CUDA_SUCCESS);
  const CUdeviceptr kept = pool.allocate(2 * kMegabyte, stream);
  pool.free(pool.allocate(64 * kMegabyte, stream), stream);
  test.expect_code("cuStreamSynchronize", driver().cuStreamSynchronize(stream), CUDA_SUCCESS);
  test.expect(pool.counter(CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) >= 64 * kMegabyte, "the threshold keeps memory");
  test.expect_code("cuMemPoolTrimTo", driver().cuMemPoolTrimTo(pool.get(), 0), CUDA_SUCCESS);
  const cuuint64_t left = pool.counter(CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT);
  test.expect(left < 66 * kMegabyte, "a trim releases what is free");
  test.expect(left >= 2 * kMegabyte, "and nothing that is used");
  store(test, stream, kept, 1000);
  pool.free(kept, stream);
  test.expect_code("cuStreamSynchronize", driver().cuStreamSynchronize(stream), CUDA_SUCCESS);
  test.expect_code("cuMemPoolTrimTo", driver().cuMemPoolTrimTo(pool.get(), 0), CUDA_SUCCESS);
  test.expect_value("nothing is left", static_cast<long long>(pool.counter(CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT)), 0);
}

// Memory freed in a stream may be used again by what follows there, and is never seen changing before.
void reuse_in_order(Test& test) {
  if (!pools_supported(test)) return;
  Scene scene(test);
  const CUstream stream = scene.stream(CU_STREAM_NON_BLOCKING);
  Pool pool(test);
  pool.set(CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, ~cuuint64_t{0});
  const int count = 1000;
  std::vector<unsigned> got(20 * count), want;
  CUdeviceptr first = 0;
  bool same = true;
  for (unsigned round = 0; round < 20 && test.ok(); ++round) {
    const CUdeviceptr address = pool.allocate(kMegabyte, stream);
    if (first == 0) first = address;
    same = same && address == first;
    if (round % 2 == 0) {
      store(test, stream, address, count);
    } else {
      driver().cuMemsetD32Async(address, round, count, stream);
    }
    test.check(driver().cuMemcpyDtoHAsync(&got[round * count], address, count * 4, stream), "copy");
    pool.free(address, stream);
    for (unsigned i = 0; i < count; ++i) want.push_back(round % 2 == 0 ? i : round);
  }
  test.expect_code("cuStreamSynchronize", driver().cuStreamSynchronize(stream), CUDA_SUCCESS);
  test.equal("each round", got, want);
  test.observe("the same addresses each round", same ? "yes" : "no");
}

// An allocation of one stream is used and freed in another that waits for it.
void across_streams(Test& test) {
  if (!pools_supported(test)) return;
  Scene scene(test);
  const CUstream first = scene.stream(CU_STREAM_NON_BLOCKING), second = scene.stream(CU_STREAM_NON_BLOCKING);
  const CUevent ready = scene.event(CU_EVENT_DISABLE_TIMING);
  Pool pool(test);
  std::vector<unsigned> got(1000), want(1000);
  for (unsigned i = 0; i < 1000; ++i) want[i] = i;
  const CUdeviceptr address = pool.allocate(kMegabyte, first);
  store(test, first, address, 1000);
  test.check(driver().cuEventRecord(ready, first), "cuEventRecord");
  test.check(driver().cuStreamWaitEvent(second, ready, 0), "cuStreamWaitEvent");
  test.check(driver().cuMemcpyDtoHAsync(got.data(), address, 4000, second), "copy");
  pool.free(address, second);
  test.expect_code("cuStreamSynchronize", driver().cuStreamSynchronize(second), CUDA_SUCCESS);
  test.equal("values", got, want);
  test.expect_value("used", static_cast<long long>(pool.counter(CU_MEMPOOL_ATTR_USED_MEM_CURRENT)), 0);
}

// "The resources associated with the pool will be released automatically once there are no more outstanding allocations."
void destroyed_with_memory(Test& test) {
  if (!pools_supported(test)) return;
  Scene scene(test);
  const CUstream stream = scene.stream(CU_STREAM_NON_BLOCKING);
  Pool pool(test);
  const CUdeviceptr address = pool.allocate(kMegabyte, stream);
  pool.destroy();
  store(test, stream, address, 1000);
  unsigned last = 0;
  test.check(driver().cuMemcpyDtoHAsync(&last, address + 3996, 4, stream), "copy");
  test.expect_code("cuMemFreeAsync", driver().cuMemFreeAsync(address, stream), CUDA_SUCCESS);
  test.expect_code("cuStreamSynchronize", driver().cuStreamSynchronize(stream), CUDA_SUCCESS);
  test.expect_value("the memory lives on", last, 999);
}

void device_pools(Test& test) {
  if (!pools_supported(test)) return;
  Scene scene(test);
  const CUstream stream = scene.stream(CU_STREAM_NON_BLOCKING);
  CUmemoryPool initial = nullptr, current = nullptr, owner = nullptr;
  test.expect_code("cuDeviceGetDefaultMemPool", driver().cuDeviceGetDefaultMemPool(&initial, 0), CUDA_SUCCESS);
  test.expect_code("cuDeviceGetMemPool", driver().cuDeviceGetMemPool(&current, 0), CUDA_SUCCESS);
  test.expect(initial == current, "the default pool is current at first");
  test.expect(driver().cuMemPoolDestroy(initial) != CUDA_SUCCESS, "it cannot be destroyed");
  Pool pool(test);
  test.expect_code("cuDeviceSetMemPool", driver().cuDeviceSetMemPool(0, pool.get()), CUDA_SUCCESS);
  CUdeviceptr address = 0;
  test.expect_code("cuMemAllocAsync", driver().cuMemAllocAsync(&address, kMegabyte, stream), CUDA_SUCCESS);
  test.expect_code("CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE",
                   driver().cuPointerGetAttribute(&owner, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, address), CUDA_SUCCESS);
  test.expect(owner == pool.get(), "it comes from the device's current pool");
  test.expect_code("cuMemFree takes it, too", driver().cuMemFree(address), CUDA_SUCCESS);
  pool.destroy();
  test.expect_code("cuDeviceGetMemPool", driver().cuDeviceGetMemPool(&current, 0), CUDA_SUCCESS);
  test.expect(current == initial, "the default pool is current again");
}

// CUmemPoolProps::maxSize bounds the pool; what does not fit is CUDA_ERROR_OUT_OF_MEMORY.
void largest_size(Test& test) {
  if (!pools_supported(test)) return;
  int version = 0;
  driver().cuDriverGetVersion(&version);
  if (version < 12020) return test.skip("CUmemPoolProps::maxSize came with CUDA 12.2");
  Scene scene(test);
  const CUstream stream = scene.stream(CU_STREAM_NON_BLOCKING);
  Pool pool(test, 64 * kMegabyte);
  const CUdeviceptr address = pool.allocate(32 * kMegabyte, stream);
  CUdeviceptr more = 0;
  test.expect_code("beyond it", driver().cuMemAllocFromPoolAsync(&more, 64 * kMegabyte, pool.get(), stream),
                   CUDA_ERROR_OUT_OF_MEMORY);
  pool.free(address, stream);
  test.expect_code("cuStreamSynchronize", driver().cuStreamSynchronize(stream), CUDA_SUCCESS);
}

constexpr Case kCases[] = {
    {"counters", nullptr, counters},
    {"threshold_and_trim", "driver", threshold_and_trim},
    {"reuse_in_order", "driver", reuse_in_order},
    {"across_streams", "driver", across_streams},
    {"destroyed_with_memory", "driver", destroyed_with_memory},
    {"device_pools", nullptr, device_pools},
    {"largest_size", nullptr, largest_size},
};

}  // namespace

const Field kPools{"pools", kCases};

}  // namespace softgpu::conformance
