// Allocation, fills, copies and pointer queries: what the documentation of the driver API states.
#include <cstdlib>

#include "softgpu/conformance/fields.h"
#include "softgpu/conformance/inputs.h"
#include "softgpu/conformance/test.h"

namespace softgpu::conformance {
namespace {

void fills(Test& test) {
  const auto words = test.zeros<unsigned>(64);
  const CUdeviceptr at = words.address;
  test.expect_code("cuMemsetD8", driver().cuMemsetD8(at, 0xab, 7), CUDA_SUCCESS);
  test.expect_code("cuMemsetD16", driver().cuMemsetD16(at + 16, 0x1234, 5), CUDA_SUCCESS);
  test.expect_code("cuMemsetD32", driver().cuMemsetD32(at + 64, 0xdeadbeef, 3), CUDA_SUCCESS);
  test.expect_code("cuMemsetD8Async", driver().cuMemsetD8Async(at + 100, 0x77, 9, nullptr), CUDA_SUCCESS);
  test.expect_code("cuMemsetD32Async", driver().cuMemsetD32Async(at + 128, 42, 4, nullptr), CUDA_SUCCESS);
  test.expect_code("cuMemsetD2D8", driver().cuMemsetD2D8(at + 160, 16, 0x5a, 3, 4), CUDA_SUCCESS);
  test.expect_code("cuMemsetD2D32", driver().cuMemsetD2D32(at + 224, 16, 9, 1, 2), CUDA_SUCCESS);
  test.expect_code("a misaligned word", driver().cuMemsetD32(at + 2, 1, 1), CUDA_ERROR_INVALID_VALUE);
  test.expect_code("beyond the end", driver().cuMemsetD8(at, 0, 257), CUDA_ERROR_INVALID_VALUE);
  std::vector<unsigned char> want(256);
  const auto put = [&](std::size_t offset, const void* bytes, std::size_t count) {
    std::memcpy(&want[offset], bytes, count);
  };
  const unsigned short half = 0x1234;
  const unsigned word = 0xdeadbeef, answer = 42, nine = 9;
  std::memset(&want[0], 0xab, 7);
  for (std::size_t i = 0; i < 5; ++i) put(16 + 2 * i, &half, 2);
  for (std::size_t i = 0; i < 3; ++i) put(64 + 4 * i, &word, 4);
  std::memset(&want[100], 0x77, 9);
  for (std::size_t i = 0; i < 4; ++i) put(128 + 4 * i, &answer, 4);
  for (std::size_t i = 0; i < 4; ++i) std::memset(&want[160 + 16 * i], 0x5a, 3);
  for (std::size_t i = 0; i < 2; ++i) put(224 + 16 * i, &nine, 4);
  test.equal("bytes", test.download(Buffer<unsigned char>{at, 256}), want);
}

void copies(Test& test) {
  const auto data = words(256, 1);
  const auto a = test.upload(data), b = test.zeros<unsigned>(256), c = test.zeros<unsigned>(256);
  test.expect_code("cuMemcpyDtoD", driver().cuMemcpyDtoD(b.address, a.address, 1024), CUDA_SUCCESS);
  test.expect_code("cuMemcpy", driver().cuMemcpy(c.address, b.address, 1024), CUDA_SUCCESS);
  std::vector<unsigned> back(256);
  test.expect_code("cuMemcpyDtoHAsync to pageable memory",
                   driver().cuMemcpyDtoHAsync(back.data(), c.address, 1024, nullptr), CUDA_SUCCESS);
  test.synchronize();
  test.equal("round trip", back, data);
  test.expect_code("no bytes", driver().cuMemcpyDtoD(b.address, a.address, 0), CUDA_SUCCESS);
  test.expect_code("beyond the end", driver().cuMemcpyDtoH(back.data(), c.address + 4, 1024), CUDA_ERROR_INVALID_VALUE);
  test.expect_code("from nowhere", driver().cuMemcpyDtoH(back.data(), 0x1000, 4), CUDA_ERROR_INVALID_VALUE);
}

void rectangles(Test& test) {
  const std::size_t width = 40, height = 10;
  CUdeviceptr address = 0;
  std::size_t pitch = 0;
  test.expect_code("cuMemAllocPitch", driver().cuMemAllocPitch(&address, &pitch, width, height, 4), CUDA_SUCCESS);
  test.expect(pitch >= width && pitch % 32 == 0, "the pitch is wide enough and aligned");
  if (!test.ok()) return;
  const auto random = words(width * height, 2, 256);
  const std::vector<unsigned char> data(random.begin(), random.end());
  std::vector<unsigned char> back(width * height, 1);
  CUDA_MEMCPY2D copy{};
  copy.srcMemoryType = CU_MEMORYTYPE_HOST, copy.srcHost = data.data(), copy.srcPitch = width;
  copy.dstMemoryType = CU_MEMORYTYPE_DEVICE, copy.dstDevice = address, copy.dstPitch = pitch;
  copy.WidthInBytes = width, copy.Height = height;
  test.expect_code("host to device", driver().cuMemcpy2D(&copy), CUDA_SUCCESS);
  CUDA_MEMCPY2D part{};
  part.srcMemoryType = CU_MEMORYTYPE_DEVICE, part.srcDevice = address, part.srcPitch = pitch;
  part.srcXInBytes = 5, part.srcY = 2;
  part.dstMemoryType = CU_MEMORYTYPE_HOST, part.dstHost = back.data(), part.dstPitch = width;
  part.dstXInBytes = 11, part.dstY = 3;
  part.WidthInBytes = 20, part.Height = 6;
  test.expect_code("a part of it to the host", driver().cuMemcpy2D(&part), CUDA_SUCCESS);
  std::vector<unsigned char> want(width * height, 1);
  for (std::size_t y = 0; y < 6; ++y) std::memcpy(&want[(3 + y) * width + 11], &data[(2 + y) * width + 5], 20);
  test.equal("rectangle", back, want);
  part.dstPitch = 10;
  test.expect_code("a pitch below the width", driver().cuMemcpy2D(&part), CUDA_ERROR_INVALID_VALUE);
  test.expect_code("cuMemFree", driver().cuMemFree(address), CUDA_SUCCESS);
}

void memory_info(Test& test) {
  const std::size_t bytes = std::size_t{64} << 20;
  std::size_t free_before = 0, free_after = 0, total = 0, device_total = 0;
  CUdeviceptr address = 0;
  test.check(driver().cuMemGetInfo(&free_before, &total), "cuMemGetInfo");
  test.check(driver().cuDeviceTotalMem(&device_total, 0), "cuDeviceTotalMem");
  test.check(driver().cuMemAlloc(&address, bytes), "cuMemAlloc");
  test.check(driver().cuMemGetInfo(&free_after, &total), "cuMemGetInfo");
  test.expect(free_before <= total && total <= device_total, "free <= total <= the device's memory");
  test.expect(free_after + bytes <= free_before, "an allocation takes at least its size");
  test.expect_code("cuMemFree", driver().cuMemFree(address), CUDA_SUCCESS);
  test.check(driver().cuMemGetInfo(&free_after, &total), "cuMemGetInfo");
  test.expect(free_after >= free_before, "freeing gives it back");
}

template <class T>
T pointer_attribute(Test& test, const char* what, CUpointer_attribute attribute, CUdeviceptr address) {
  T value{};
  test.check(driver().cuPointerGetAttribute(&value, attribute, address), what);
  return value;
}

void device_pointers(Test& test) {
  const auto buffer = test.zeros<char>(1000);
  const CUdeviceptr inside = buffer.address + 300;
  CUdeviceptr base = 0;
  std::size_t bytes = 0;
  CUcontext current = nullptr;
  driver().cuCtxGetCurrent(&current);
  test.expect_value("alignment", static_cast<long long>(buffer.address % 256), 0);
  test.expect_code("cuMemGetAddressRange", driver().cuMemGetAddressRange(&base, &bytes, inside), CUDA_SUCCESS);
  test.expect_value("offset of the pointer", static_cast<long long>(inside - base), 300);
  test.expect_value("bytes", static_cast<long long>(bytes), 1000);
  test.expect_value("memory type",
                    pointer_attribute<CUmemorytype>(test, "type", CU_POINTER_ATTRIBUTE_MEMORY_TYPE, inside),
                    CU_MEMORYTYPE_DEVICE);
  test.expect_value("ordinal", pointer_attribute<int>(test, "ordinal", CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, inside), 0);
  test.expect(pointer_attribute<CUcontext>(test, "context", CU_POINTER_ATTRIBUTE_CONTEXT, inside) == current,
              "the context it was allocated in");
  test.expect(pointer_attribute<CUdeviceptr>(test, "start", CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, inside) == base,
              "the start of its allocation");
  int local = 0;
  CUmemorytype type{};
  test.expect_code(
      "a pointer the driver does not know",
      driver().cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, reinterpret_cast<CUdeviceptr>(&local)),
      CUDA_ERROR_INVALID_VALUE);
}

void pinned_memory(Test& test) {
  void* memory = nullptr;
  CUdeviceptr device = 0;
  test.expect_code("cuMemHostAlloc", driver().cuMemHostAlloc(&memory, 4096, CU_MEMHOSTALLOC_DEVICEMAP), CUDA_SUCCESS);
  test.expect_code("cuMemHostGetDevicePointer", driver().cuMemHostGetDevicePointer(&device, memory, 0), CUDA_SUCCESS);
  if (!test.ok()) return;
  test.expect_value("memory type",
                    pointer_attribute<CUmemorytype>(test, "type", CU_POINTER_ATTRIBUTE_MEMORY_TYPE, device),
                    CU_MEMORYTYPE_HOST);
  const int n = 256;
  test.launch("store_index", {2, 128}, n, Buffer<unsigned>{device, 256});
  test.synchronize();
  const auto* words = static_cast<const unsigned*>(memory);
  test.expect_value("the kernel wrote host memory", words[255], 255);
  test.expect_code("cuMemFreeHost", driver().cuMemFreeHost(memory), CUDA_SUCCESS);
  test.expect_code("cuMemFreeHost twice", driver().cuMemFreeHost(memory), CUDA_ERROR_INVALID_VALUE);
}

void registered_memory(Test& test) {
  const std::size_t bytes = 8192;
  void* memory = std::aligned_alloc(4096, bytes);
  CUdeviceptr device = 0;
  test.expect_code("cuMemHostRegister", driver().cuMemHostRegister(memory, bytes, CU_MEMHOSTREGISTER_DEVICEMAP),
                   CUDA_SUCCESS);
  test.expect_code("registered twice", driver().cuMemHostRegister(memory, bytes, CU_MEMHOSTREGISTER_DEVICEMAP),
                   CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
  test.expect_code("cuMemHostGetDevicePointer", driver().cuMemHostGetDevicePointer(&device, memory, 0), CUDA_SUCCESS);
  const int n = 100;
  test.launch("store_index", {1, 128}, n, Buffer<unsigned>{device, 100});
  test.synchronize();
  test.expect_value("the kernel wrote it", static_cast<const unsigned*>(memory)[99], 99);
  test.expect_code("cuMemHostUnregister", driver().cuMemHostUnregister(memory), CUDA_SUCCESS);
  test.expect_code("not registered any more", driver().cuMemHostUnregister(memory),
                   CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
  std::free(memory);
}

void stream_ordered(Test& test) {
  CUstream stream = nullptr;
  CUdeviceptr address = 0;
  test.check(driver().cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
  test.expect_code("cuMemAllocAsync", driver().cuMemAllocAsync(&address, 1024, stream), CUDA_SUCCESS);
  if (!test.ok()) return;
  const int n = 256;
  Shape shape{2, 128};
  shape.stream = stream;
  test.launch("store_index", shape, n, Buffer<unsigned>{address, 256});
  std::vector<unsigned> back(256), want(256);
  for (unsigned i = 0; i < 256; ++i) want[i] = i;
  test.expect_code("copy", driver().cuMemcpyDtoHAsync(back.data(), address, 1024, stream), CUDA_SUCCESS);
  test.expect_code("cuMemFreeAsync", driver().cuMemFreeAsync(address, stream), CUDA_SUCCESS);
  test.expect_code("cuStreamSynchronize", driver().cuStreamSynchronize(stream), CUDA_SUCCESS);
  test.equal("values", back, want);
  test.expect_code("cuStreamDestroy", driver().cuStreamDestroy(stream), CUDA_SUCCESS);
}

constexpr Case kCases[] = {
    {"fills", nullptr, fills},
    {"copies", nullptr, copies},
    {"rectangles", nullptr, rectangles},
    {"memory_info", nullptr, memory_info},
    {"device_pointers", nullptr, device_pointers},
    {"pinned_memory", "driver", pinned_memory},
    {"registered_memory", "driver", registered_memory},
    {"stream_ordered", "driver", stream_ordered},
};

}  // namespace

const Field kMemory{"memory", kCases};

}  // namespace softgpu::conformance
