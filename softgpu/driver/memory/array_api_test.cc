// Arrays, boxes, batches, texture and surface objects.
#include <cstring>
#include <numeric>
#include <vector>

#include "softgpu/driver/driver_testing.h"

namespace {

using softgpu::testing::use_device;

CUarray make_array(std::size_t width, std::size_t height, std::size_t depth, unsigned flags = 0) {
  const CUDA_ARRAY3D_DESCRIPTOR descriptor = {width, height, depth, CU_AD_FORMAT_FLOAT, 1, flags};
  CUarray array = nullptr;
  EXPECT_EQ(cuArray3DCreate_v2(&array, &descriptor), CUDA_SUCCESS);
  return array;
}

DRIVER_TEST(Array, BoxesGoInAndOut) {
  use_device();
  const CUarray array = make_array(10, 6, 4);
  std::vector<float> in(3 * 2 * 2);
  std::iota(in.begin(), in.end(), 1.0F);
  CUDA_MEMCPY3D copy = {};
  copy.srcMemoryType = CU_MEMORYTYPE_HOST;
  copy.srcHost = in.data();
  copy.srcPitch = 12;
  copy.srcHeight = 2;
  copy.dstMemoryType = CU_MEMORYTYPE_ARRAY;
  copy.dstArray = array;
  copy.dstXInBytes = 7 * 4;
  copy.dstY = 4;
  copy.dstZ = 2;
  copy.WidthInBytes = 12;
  copy.Height = 2;
  copy.Depth = 2;
  EXPECT_EQ(cuMemcpy3D_v2(&copy), CUDA_SUCCESS);
  copy.dstXInBytes += 4;
  EXPECT_EQ(cuMemcpy3D_v2(&copy), CUDA_ERROR_INVALID_VALUE);  // leaves the array
  copy.dstXInBytes -= 4;
  copy.dstZ = 3;
  EXPECT_EQ(cuMemcpy3D_v2(&copy), CUDA_ERROR_INVALID_VALUE);
  // One plane out again, through device memory.
  CUdeviceptr plane = 0;
  ASSERT_EQ(cuMemAlloc_v2(&plane, 256), CUDA_SUCCESS);
  CUDA_MEMCPY2D flat = {};
  copy = {};
  copy.srcMemoryType = CU_MEMORYTYPE_ARRAY;
  copy.srcArray = array;
  copy.srcXInBytes = 7 * 4;
  copy.srcY = 4;
  copy.srcZ = 3;
  copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.dstDevice = plane;
  copy.dstPitch = 128;
  copy.WidthInBytes = 12;
  copy.Height = 2;
  copy.Depth = 1;
  EXPECT_EQ(cuMemcpy3DAsync_v2(&copy, nullptr), CUDA_SUCCESS);
  std::vector<float> out(6);
  flat.srcMemoryType = CU_MEMORYTYPE_DEVICE;
  flat.srcDevice = plane;
  flat.srcPitch = 128;
  flat.dstMemoryType = CU_MEMORYTYPE_HOST;
  flat.dstHost = out.data();
  flat.WidthInBytes = 12;
  flat.Height = 2;
  EXPECT_EQ(cuMemcpy2D_v2(&flat), CUDA_SUCCESS);
  EXPECT_EQ(out, (std::vector<float>{7, 8, 9, 10, 11, 12}));
  flat.srcPitch = 8;
  EXPECT_EQ(cuMemcpy2D_v2(&flat), CUDA_ERROR_INVALID_VALUE);  // narrower than a row
  EXPECT_EQ(cuMemcpy3D_v2(nullptr), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuArrayDestroy(array), CUDA_SUCCESS);
  EXPECT_EQ(cuArrayDestroy(array), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(cuMemcpy3D_v2(&copy), CUDA_ERROR_INVALID_HANDLE);
}

DRIVER_TEST(Array, LinearCopiesAreForOneDimension) {
  use_device();
  const CUDA_ARRAY_DESCRIPTOR descriptor = {16, 0, CU_AD_FORMAT_UNSIGNED_INT32, 1};
  CUarray first = nullptr;
  CUarray second = nullptr;
  CUDA_ARRAY_DESCRIPTOR back = {};
  ASSERT_EQ(cuArrayCreate_v2(&first, &descriptor), CUDA_SUCCESS);
  ASSERT_EQ(cuArrayCreate_v2(&second, &descriptor), CUDA_SUCCESS);
  EXPECT_EQ(cuArrayGetDescriptor_v2(&back, first), CUDA_SUCCESS);
  EXPECT_EQ(back.Width, 16U);
  EXPECT_EQ(back.Height, 0U);
  std::vector<unsigned> in(16);
  std::vector<unsigned> out(16);
  CUdeviceptr device = 0;
  std::iota(in.begin(), in.end(), 0U);
  ASSERT_EQ(cuMemAlloc_v2(&device, 64), CUDA_SUCCESS);
  EXPECT_EQ(cuMemcpyHtoA_v2(first, 0, in.data(), 64), CUDA_SUCCESS);
  EXPECT_EQ(cuMemcpyAtoA_v2(second, 32, first, 0, 32), CUDA_SUCCESS);
  EXPECT_EQ(cuMemcpyAtoD_v2(device, first, 32, 32), CUDA_SUCCESS);
  EXPECT_EQ(cuMemcpyDtoA_v2(second, 0, device, 32), CUDA_SUCCESS);
  EXPECT_EQ(cuMemcpyAtoH_v2(out.data(), second, 0, 64), CUDA_SUCCESS);
  EXPECT_EQ(out[0], 8U);
  EXPECT_EQ(out[8], 0U);
  EXPECT_EQ(cuMemcpyAtoH_v2(out.data(), second, 4, 64), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemcpyAtoH_v2(out.data(), make_array(4, 4, 0), 0, 16), CUDA_ERROR_INVALID_VALUE);
}

DRIVER_TEST(Array, ImpossibleOnesAreRefused) {
  use_device();
  CUarray array = nullptr;
  const auto create = [&](CUDA_ARRAY3D_DESCRIPTOR descriptor) { return cuArray3DCreate_v2(&array, &descriptor); };
  EXPECT_EQ(create({0, 1, 0, CU_AD_FORMAT_FLOAT, 1, 0}), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(create({4, 4, 0, CU_AD_FORMAT_FLOAT, 3, 0}), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(create({4, 4, 0, static_cast<CUarray_format>(5), 1, 0}), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(create({4, 0, 4, CU_AD_FORMAT_FLOAT, 1, 0}), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(create({20000, 4, 4, CU_AD_FORMAT_FLOAT, 1, 0}), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(create({4, 4, 0, CU_AD_FORMAT_FLOAT, 1, 0x80}), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(create({16384, 16384, 4, CU_AD_FORMAT_FLOAT, 4, 0}), CUDA_ERROR_OUT_OF_MEMORY);
}

DRIVER_TEST(Copies, ABatchIsCopiedInItsStream) {
  use_device();
  CUstream stream = nullptr;
  CUdeviceptr device[2] = {};
  unsigned in[2] = {3, 4};
  ASSERT_EQ(cuStreamCreate(&stream, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuMemAlloc_v2(&device[0], 4), CUDA_SUCCESS);
  ASSERT_EQ(cuMemAlloc_v2(&device[1], 4), CUDA_SUCCESS);
  CUdeviceptr sources[] = {reinterpret_cast<CUdeviceptr>(&in[0]), reinterpret_cast<CUdeviceptr>(&in[1])};
  std::size_t bytes[] = {4, 4};
  CUmemcpyAttributes attributes[] = {{CU_MEMCPY_SRC_ACCESS_ORDER_STREAM, {}, {}, 0}};
  std::size_t indices[] = {0};
  std::size_t failed = 0;
  EXPECT_EQ(cuMemcpyBatchAsync_v2(device, sources, bytes, 2, attributes, indices, 1, stream), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamSynchronize(stream), CUDA_SUCCESS);
  unsigned out = 0;
  EXPECT_EQ(cuMemcpyDtoH_v2(&out, device[1], 4), CUDA_SUCCESS);
  EXPECT_EQ(out, 4U);
  bytes[1] = 5;
  EXPECT_EQ(cuMemcpyBatchAsync(device, sources, bytes, 2, attributes, indices, 1, &failed, stream),
            CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(failed, 1U);
  EXPECT_EQ(cuMemcpyBatchAsync_v2(device, sources, bytes, 1, attributes, indices, 1, nullptr),
            CUDA_ERROR_INVALID_VALUE);  // not in the default stream
  indices[0] = 1;
  EXPECT_EQ(cuMemcpyBatchAsync_v2(device, sources, bytes, 1, attributes, indices, 1, stream), CUDA_ERROR_INVALID_VALUE);
}

DRIVER_TEST(Texture, ObjectsAreCheckedAndDescribed) {
  use_device();
  CUDA_RESOURCE_DESC resource = {};
  CUDA_TEXTURE_DESC texture = {};
  resource.resType = CU_RESOURCE_TYPE_ARRAY;
  resource.res.array.hArray = make_array(8, 8, 0);
  texture.filterMode = CU_TR_FILTER_MODE_LINEAR;
  CUtexObject object = 0;
  ASSERT_EQ(cuTexObjectCreate(&object, &resource, &texture, nullptr), CUDA_SUCCESS);
  CUDA_RESOURCE_DESC same = {};
  EXPECT_EQ(cuTexObjectGetResourceDesc(&same, object), CUDA_SUCCESS);
  EXPECT_EQ(same.res.array.hArray, resource.res.array.hArray);
  EXPECT_EQ(cuTexObjectDestroy(object), CUDA_SUCCESS);
  EXPECT_EQ(cuTexObjectDestroy(object), CUDA_ERROR_INVALID_VALUE);
  CUsurfObject surface = 0;
  EXPECT_EQ(cuSurfObjectCreate(&surface, &resource), CUDA_ERROR_INVALID_VALUE);  // not made for surfaces
  resource.res.array.hArray = make_array(8, 8, 0, CUDA_ARRAY3D_SURFACE_LDST);
  EXPECT_EQ(cuSurfObjectCreate(&surface, &resource), CUDA_SUCCESS);
  EXPECT_EQ(cuSurfObjectDestroy(surface), CUDA_SUCCESS);
  CUdeviceptr memory = 0;
  ASSERT_EQ(cuMemAlloc_v2(&memory, 4096), CUDA_SUCCESS);
  resource = {};
  resource.resType = CU_RESOURCE_TYPE_LINEAR;
  resource.res.linear.devPtr = memory;
  resource.res.linear.format = CU_AD_FORMAT_UNSIGNED_INT32;
  resource.res.linear.numChannels = 1;
  resource.res.linear.sizeInBytes = 4096;
  texture.flags = CU_TRSF_READ_AS_INTEGER;
  EXPECT_EQ(cuTexObjectCreate(&object, &resource, &texture, nullptr), CUDA_ERROR_INVALID_VALUE);  // linear integers
  texture.filterMode = CU_TR_FILTER_MODE_POINT;
  EXPECT_EQ(cuTexObjectCreate(&object, &resource, &texture, nullptr), CUDA_SUCCESS);
  resource.res.linear.sizeInBytes = 4097;
  EXPECT_EQ(cuTexObjectCreate(&object, &resource, &texture, nullptr), CUDA_ERROR_INVALID_VALUE);
  resource.resType = CU_RESOURCE_TYPE_MIPMAPPED_ARRAY;
  EXPECT_EQ(cuTexObjectCreate(&object, &resource, &texture, nullptr), CUDA_ERROR_NOT_SUPPORTED);
}

}  // namespace
