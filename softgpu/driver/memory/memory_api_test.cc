// Memory: capacity, extents, copies, fills, pinned memory, pointers, memory of other processes.
#include <cstring>
#include <vector>

#include "softgpu/driver/driver_testing.h"

namespace {

using softgpu::testing::Fresh;
using softgpu::testing::Scenario;
using softgpu::testing::use_device;

constexpr std::size_t kMib = 1 << 20;

DRIVER_TEST(Memory, MoreThanIsFreeIsRefused) {
  use_device();
  std::size_t free_bytes = 0;
  std::size_t total = 0;
  CUdeviceptr address = 0;
  EXPECT_EQ(cuMemGetInfo_v2(&free_bytes, &total), CUDA_SUCCESS);
  EXPECT_EQ(total, 256 * kMib);
  EXPECT_EQ(cuMemAlloc_v2(&address, free_bytes + 1), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(cuMemAlloc_v2(&address, free_bytes), CUDA_SUCCESS);
  CUdeviceptr more = 0;
  EXPECT_EQ(cuMemAlloc_v2(&more, 3 * kMib), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(cuMemFree_v2(address), CUDA_SUCCESS);
  std::size_t after = 0;
  cuMemGetInfo_v2(&after, &total);
  EXPECT_EQ(after, free_bytes);
  EXPECT_EQ(cuMemAlloc_v2(&address, 0), CUDA_ERROR_INVALID_VALUE);
}

DRIVER_TEST(Memory, FreeTakesOnlyWhatWasAllocated) {
  use_device();
  CUdeviceptr address = 0;
  ASSERT_EQ(cuMemAlloc_v2(&address, 1000), CUDA_SUCCESS);
  EXPECT_EQ(cuMemFree_v2(address + 256), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemFree_v2(address), CUDA_SUCCESS);
  EXPECT_EQ(cuMemFree_v2(address), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemFree_v2(0), CUDA_SUCCESS);
}

DRIVER_TEST(Memory, CopiesMoveBytesAndCheckBounds) {
  use_device();
  std::vector<unsigned> out(1000);
  std::vector<unsigned> in(1000, 7);
  CUdeviceptr a = 0;
  CUdeviceptr b = 0;
  ASSERT_EQ(cuMemAlloc_v2(&a, 4000), CUDA_SUCCESS);
  ASSERT_EQ(cuMemAlloc_v2(&b, 3 * kMib), CUDA_SUCCESS);
  EXPECT_EQ(cuMemcpyHtoD_v2(a, in.data(), 4000), CUDA_SUCCESS);
  EXPECT_EQ(cuMemcpyDtoD_v2(b + kMib, a, 4000), CUDA_SUCCESS);
  EXPECT_EQ(cuMemcpy(reinterpret_cast<CUdeviceptr>(out.data()), b + kMib, 4000), CUDA_SUCCESS);
  EXPECT_EQ(in, out);
  EXPECT_EQ(cuMemcpyHtoD_v2(a, in.data(), 4001), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemcpyDtoH_v2(out.data(), a + 4, 4000), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemcpyDtoH_v2(out.data(), reinterpret_cast<CUdeviceptr>(in.data()), 4), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemcpyDtoH_v2(out.data(), a, 0), CUDA_SUCCESS);
}

DRIVER_TEST(Memory, FillsRepeatTheirPattern) {
  use_device();
  CUdeviceptr a = 0;
  std::size_t pitch = 0;
  std::vector<unsigned> words(4);
  ASSERT_EQ(cuMemAlloc_v2(&a, 16), CUDA_SUCCESS);
  EXPECT_EQ(cuMemsetD32_v2(a, 0x01020304, 4), CUDA_SUCCESS);
  EXPECT_EQ(cuMemsetD16_v2(a + 4, 0xABCD, 2), CUDA_SUCCESS);
  EXPECT_EQ(cuMemsetD8_v2(a + 8, 0x55, 4), CUDA_SUCCESS);
  cuMemcpyDtoH_v2(words.data(), a, 16);
  EXPECT_EQ(words, (std::vector<unsigned>{0x01020304, 0xABCDABCD, 0x55555555, 0x01020304}));
  EXPECT_EQ(cuMemsetD32_v2(a, 0, 5), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemsetD32_v2(a + 1, 0, 1), CUDA_ERROR_INVALID_VALUE);
  ASSERT_EQ(cuMemAllocPitch_v2(&a, &pitch, 100, 3, 4), CUDA_SUCCESS);
  EXPECT_EQ(pitch % 512, 0U);
  EXPECT_EQ(cuMemsetD2D8_v2(a, pitch, 9, 100, 3), CUDA_SUCCESS);
  EXPECT_EQ(cuMemsetD2D8_v2(a, pitch, 9, 100, 4), CUDA_ERROR_INVALID_VALUE);
}

DRIVER_TEST(Memory, RectanglesKeepTheirPitches) {
  use_device();
  CUdeviceptr a = 0;
  const unsigned char in[6] = {1, 2, 3, 4, 5, 6};
  unsigned char out[4] = {};
  ASSERT_EQ(cuMemAlloc_v2(&a, 256), CUDA_SUCCESS);
  CUDA_MEMCPY2D copy = {};
  copy.srcMemoryType = CU_MEMORYTYPE_HOST;
  copy.srcHost = in;
  copy.srcPitch = 3;
  copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.dstDevice = a;
  copy.dstPitch = 128;
  copy.WidthInBytes = 3;
  copy.Height = 2;
  EXPECT_EQ(cuMemcpy2D_v2(&copy), CUDA_SUCCESS);
  copy = {};
  copy.srcMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.srcDevice = a;
  copy.srcPitch = 128;
  copy.srcXInBytes = 1;
  copy.dstMemoryType = CU_MEMORYTYPE_HOST;
  copy.dstHost = out;
  copy.dstPitch = 2;
  copy.WidthInBytes = 2;
  copy.Height = 2;
  EXPECT_EQ(cuMemcpy2D_v2(&copy), CUDA_SUCCESS);
  EXPECT_EQ(std::memcmp(out, "\x02\x03\x05\x06", 4), 0);
  copy.Height = 3;
  EXPECT_EQ(cuMemcpy2D_v2(&copy), CUDA_ERROR_INVALID_VALUE);
}

DRIVER_TEST(Memory, SizesThatOverflowAreRefused) {
  use_device();
  CUdeviceptr memory = 0;
  ASSERT_EQ(cuMemAlloc_v2(&memory, 64), CUDA_SUCCESS);
  EXPECT_EQ(cuMemsetD32_v2(memory, 1, std::size_t{1} << 62), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemsetD16_v2(memory, 1, (std::size_t{1} << 63) + 1), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemsetD2D8_v2(memory, std::size_t{1} << 32, 1, 1, (std::size_t{1} << 32) + 1), CUDA_ERROR_INVALID_VALUE);
  char host[64] = {};
  CUDA_MEMCPY2D copy = {};
  copy.srcMemoryType = CU_MEMORYTYPE_HOST;
  copy.srcHost = host;
  copy.srcPitch = 1;
  copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.dstDevice = memory;
  copy.dstPitch = std::size_t{1} << 32;
  copy.WidthInBytes = 1;
  copy.Height = (std::size_t{1} << 32) + 1;
  EXPECT_EQ(cuMemcpy2D_v2(&copy), CUDA_ERROR_INVALID_VALUE);
  CUdeviceptr other = 0;
  EXPECT_EQ(cuMemAllocManaged(&other, SIZE_MAX, CU_MEM_ATTACH_GLOBAL), CUDA_ERROR_OUT_OF_MEMORY);
  constexpr std::size_t kHalf = std::size_t{1} << 63;
  EXPECT_EQ(cuMemAddressReserve(&other, kHalf + (2 << 20), kHalf, 0, 0), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(cuMemHostRegister_v2(host, SIZE_MAX / 2, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemHostRegister_v2(host, SIZE_MAX, 0), CUDA_ERROR_INVALID_VALUE);
}

DRIVER_TEST(Memory, PinnedMemoryIsKnownByItsHostAddress) {
  use_device();
  void* host = nullptr;
  CUdeviceptr device = 0;
  unsigned flags = 0;
  std::vector<char> own(4096);
  ASSERT_EQ(cuMemHostAlloc(&host, 1000, CU_MEMHOSTALLOC_PORTABLE), CUDA_SUCCESS);
  EXPECT_EQ(cuMemHostGetDevicePointer_v2(&device, host, 0), CUDA_SUCCESS);
  EXPECT_EQ(device, reinterpret_cast<CUdeviceptr>(host));
  EXPECT_EQ(cuMemHostGetFlags(&flags, host), CUDA_SUCCESS);
  EXPECT_TRUE((flags & CU_MEMHOSTALLOC_PORTABLE) != 0);
  EXPECT_EQ(cuMemFreeHost(host), CUDA_SUCCESS);
  EXPECT_EQ(cuMemFreeHost(host), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemHostRegister_v2(own.data(), own.size(), 0), CUDA_SUCCESS);
  EXPECT_EQ(cuMemHostRegister_v2(own.data() + 10, 10, 0), CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
  EXPECT_EQ(cuMemHostUnregister(own.data()), CUDA_SUCCESS);
  EXPECT_EQ(cuMemHostUnregister(own.data()), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
  EXPECT_EQ(cuMemHostRegister_v2(own.data(), 4096, CU_MEMHOSTREGISTER_IOMEMORY), CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(cuMemHostRegister_v2(own.data(), 4096, 0x100), CUDA_ERROR_INVALID_VALUE);
}

DRIVER_TEST(Memory, PointersTellWhatTheyAre) {
  const CUcontext context = use_device();
  CUdeviceptr address = 0;
  CUdeviceptr start = 0;
  CUcontext owner = nullptr;
  unsigned type = 0;
  std::size_t bytes = 0;
  ASSERT_EQ(cuMemAlloc_v2(&address, 1000), CUDA_SUCCESS);
  EXPECT_EQ(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address + 10), CUDA_SUCCESS);
  EXPECT_EQ(type, static_cast<unsigned>(CU_MEMORYTYPE_DEVICE));
  EXPECT_EQ(cuPointerGetAttribute(&start, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, address + 10), CUDA_SUCCESS);
  EXPECT_EQ(start, address);
  EXPECT_EQ(cuPointerGetAttribute(&owner, CU_POINTER_ATTRIBUTE_CONTEXT, address + 10), CUDA_SUCCESS);
  EXPECT_EQ(owner, context);
  EXPECT_EQ(cuMemGetAddressRange_v2(&start, &bytes, address + 999), CUDA_SUCCESS);
  EXPECT_EQ(bytes, 1000U);
  EXPECT_EQ(cuMemGetAddressRange_v2(&start, &bytes, address + 1000), CUDA_ERROR_NOT_FOUND);
  EXPECT_EQ(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, 4096), CUDA_ERROR_INVALID_VALUE);
  CUpointer_attribute attributes[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE};
  void* values[] = {&type};
  EXPECT_EQ(cuPointerGetAttributes(1, attributes, values, 4096), CUDA_SUCCESS);
  EXPECT_EQ(type, 0U);
}

DRIVER_TEST(Memory, StreamOrderedMemoryComesAndGoes) {
  use_device();
  CUstream stream = nullptr;
  CUdeviceptr address = 0;
  ASSERT_EQ(cuStreamCreate(&stream, 0), CUDA_SUCCESS);
  EXPECT_EQ(cuMemAllocAsync(&address, 5 * kMib, stream), CUDA_SUCCESS);
  EXPECT_EQ(cuMemsetD8Async(address, 1, 5 * kMib, stream), CUDA_SUCCESS);
  EXPECT_EQ(cuMemFreeAsync(address, stream), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamSynchronize(stream), CUDA_SUCCESS);
  EXPECT_EQ(cuMemFree_v2(address), CUDA_ERROR_INVALID_VALUE);
}

// Takes 150 of the device's 256 MiB and keeps them.
const Scenario kHolder("hold memory", [] {
  use_device();
  CUdeviceptr address = 0;
  ASSERT_EQ(cuMemAlloc_v2(&address, 150 * kMib), CUDA_SUCCESS);
});

DRIVER_TEST(Processes, ShareOneCapacity) {
  use_device();
  std::size_t alone = 0;
  std::size_t shared = 0;
  std::size_t total = 0;
  CUdeviceptr address = 0;
  cuMemGetInfo_v2(&alone, &total);
  Fresh holder("hold memory");
  ASSERT_TRUE(holder.ran());
  cuMemGetInfo_v2(&shared, &total);
  EXPECT_LE(shared + 150 * kMib, alone);
  EXPECT_EQ(cuMemAlloc_v2(&address, 150 * kMib), CUDA_ERROR_OUT_OF_MEMORY);
  holder.kill();
  cuMemGetInfo_v2(&shared, &total);
  EXPECT_EQ(shared, alone);
  EXPECT_EQ(cuMemAlloc_v2(&address, 150 * kMib), CUDA_SUCCESS);
}

// Reads the handle in $IPC_HANDLE, checks the content and changes it.
const Scenario kImporter("import memory", [] {
  use_device();
  CUipcMemHandle handle;
  const std::string text = std::getenv("IPC_HANDLE");
  for (std::size_t i = 0; i < sizeof handle; ++i) {
    handle.reserved[i] = static_cast<char>(std::stoi(text.substr(2 * i, 2), nullptr, 16));
  }
  CUdeviceptr address = 0;
  unsigned value = 0;
  ASSERT_EQ(cuIpcOpenMemHandle_v2(&address, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS), CUDA_SUCCESS);
  EXPECT_EQ(cuMemcpyDtoH_v2(&value, address, 4), CUDA_SUCCESS);
  EXPECT_EQ(value, 42U);
  EXPECT_EQ(cuMemcpyDtoH_v2(&value, address + 100, 4), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemsetD32_v2(address, 43, 1), CUDA_SUCCESS);
  EXPECT_EQ(cuIpcCloseMemHandle(address), CUDA_SUCCESS);
  EXPECT_EQ(cuIpcCloseMemHandle(address), CUDA_ERROR_INVALID_VALUE);
  handle.reserved[0] ^= 1;
  EXPECT_EQ(cuIpcOpenMemHandle_v2(&address, handle, 1), CUDA_ERROR_INVALID_VALUE);
});

DRIVER_TEST(Processes, ImportMemoryByHandle) {
  use_device();
  CUdeviceptr address = 0;
  CUipcMemHandle handle;
  unsigned value = 0;
  ASSERT_EQ(cuMemAlloc_v2(&address, 64), CUDA_SUCCESS);  // leaves the first block of the slab to another
  ASSERT_EQ(cuMemAlloc_v2(&address, 100), CUDA_SUCCESS);
  EXPECT_EQ(cuMemsetD32_v2(address, 42, 1), CUDA_SUCCESS);
  ASSERT_EQ(cuIpcGetMemHandle(&handle, address), CUDA_SUCCESS);
  CUdeviceptr own = 0;
  EXPECT_EQ(cuIpcOpenMemHandle_v2(&own, handle, 1), CUDA_ERROR_INVALID_CONTEXT);
  std::string text;
  for (const char byte : handle.reserved) {
    constexpr char kHex[] = "0123456789abcdef";
    text += kHex[static_cast<unsigned char>(byte) / 16];
    text += kHex[static_cast<unsigned char>(byte) % 16];
  }
  ::setenv("IPC_HANDLE", text.c_str(), 1);
  EXPECT_TRUE(Fresh("import memory").ran());
  cuMemcpyDtoH_v2(&value, address, 4);
  EXPECT_EQ(value, 43U);
}

}  // namespace
