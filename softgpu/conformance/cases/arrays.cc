// CUDA arrays, copies of boxes, fills of rectangles. The documentation of cuArray*, cuMemcpy3D and cuMemsetD2D*.
#include "softgpu/conformance/fields.h"
#include "softgpu/conformance/inputs.h"
#include "softgpu/conformance/test.h"

namespace softgpu::conformance {
namespace {

class Array {
 public:
  Array(Test& test, std::size_t width, std::size_t height, std::size_t depth, unsigned channels = 1) {
    const CUDA_ARRAY3D_DESCRIPTOR shape{width, height, depth, CU_AD_FORMAT_UNSIGNED_INT32, channels, 0};
    test.check(driver().cuArray3DCreate(&array_, &shape), "cuArray3DCreate");
  }
  ~Array() {
    if (array_ != nullptr) driver().cuArrayDestroy(array_);
  }
  Array(const Array&) = delete;
  Array& operator=(const Array&) = delete;
  CUarray get() const { return array_; }

 private:
  CUarray array_ = nullptr;
};

// Host -> array -> device memory with wider rows and slices -> host, a part of the box each time.
void boxes(Test& test) {
  const std::size_t width = 10, height = 6, depth = 5, pitch = 64, rows = 8;
  const auto data = words(width * height * depth, 1);
  const Array array(test, width, height, depth);
  const auto wide = test.zeros<unsigned>(pitch / 4 * rows * depth);
  if (!test.ok()) return;
  CUDA_MEMCPY3D in{};
  in.srcMemoryType = CU_MEMORYTYPE_HOST, in.srcHost = data.data(), in.srcPitch = width * 4, in.srcHeight = height;
  in.dstMemoryType = CU_MEMORYTYPE_ARRAY, in.dstArray = array.get();
  in.WidthInBytes = width * 4, in.Height = height, in.Depth = depth;
  test.expect_code("host to array", driver().cuMemcpy3D(&in), CUDA_SUCCESS);
  CUDA_MEMCPY3D out{};
  out.srcMemoryType = CU_MEMORYTYPE_ARRAY, out.srcArray = array.get();
  out.srcXInBytes = 8, out.srcY = 1, out.srcZ = 2;
  out.dstMemoryType = CU_MEMORYTYPE_DEVICE, out.dstDevice = wide.address, out.dstPitch = pitch, out.dstHeight = rows;
  out.dstXInBytes = 4, out.dstY = 3, out.dstZ = 1;
  out.WidthInBytes = 20, out.Height = 4, out.Depth = 3;
  test.expect_code("a part of it to the device", driver().cuMemcpy3DAsync(&out, nullptr), CUDA_SUCCESS);
  std::vector<unsigned> want(wide.count);
  for (std::size_t z = 0; z < 3; ++z) {
    for (std::size_t y = 0; y < 4; ++y) {
      std::memcpy(&want[((1 + z) * rows + 3 + y) * (pitch / 4) + 1], &data[((2 + z) * height + 1 + y) * width + 2], 20);
    }
  }
  test.equal("box", test.download(wide), want);
  out.srcZ = 3;
  test.expect_code("beyond the array", driver().cuMemcpy3D(&out), CUDA_ERROR_INVALID_VALUE);
  out.srcZ = 2, out.dstPitch = 16;
  test.expect_code("a pitch below the width", driver().cuMemcpy3D(&out), CUDA_ERROR_INVALID_VALUE);
}

void rows_of_arrays(Test& test) {
  const auto data = words(64, 2);
  const Array first(test, 64, 0, 0), second(test, 64, 0, 0);
  const auto memory = test.zeros<unsigned>(64);
  std::vector<unsigned> back(16), want(data.begin() + 8, data.begin() + 24);
  if (!test.ok()) return;
  test.expect_code("cuMemcpyHtoA", driver().cuMemcpyHtoA(first.get(), 0, data.data(), 256), CUDA_SUCCESS);
  test.expect_code("cuMemcpyAtoA", driver().cuMemcpyAtoA(second.get(), 64, first.get(), 32, 64), CUDA_SUCCESS);
  test.expect_code("cuMemcpyAtoH", driver().cuMemcpyAtoH(back.data(), second.get(), 64, 64), CUDA_SUCCESS);
  test.equal("between arrays", back, want);
  test.expect_code("cuMemcpyAtoD", driver().cuMemcpyAtoD(memory.address, first.get(), 0, 256), CUDA_SUCCESS);
  test.equal("to the device", test.download(memory), data);
  test.expect_code("cuMemcpyDtoA", driver().cuMemcpyDtoA(second.get(), 0, memory.address + 128, 64), CUDA_SUCCESS);
  test.expect_code("cuMemcpyAtoH", driver().cuMemcpyAtoH(back.data(), second.get(), 0, 64), CUDA_SUCCESS);
  test.equal("from the device", back, std::vector<unsigned>(data.begin() + 32, data.begin() + 48));
  test.expect_code("beyond the end", driver().cuMemcpyHtoA(first.get(), 200, data.data(), 64),
                   CUDA_ERROR_INVALID_VALUE);
}

void descriptors(Test& test) {
  const Array array(test, 12, 7, 3, 2);
  CUDA_ARRAY3D_DESCRIPTOR got{};
  if (!test.ok()) return;
  test.expect_code("cuArray3DGetDescriptor", driver().cuArray3DGetDescriptor(&got, array.get()), CUDA_SUCCESS);
  test.expect_value("width", static_cast<long long>(got.Width), 12);
  test.expect_value("height", static_cast<long long>(got.Height), 7);
  test.expect_value("depth", static_cast<long long>(got.Depth), 3);
  test.expect_value("channels", got.NumChannels, 2);
  test.expect_value("format", got.Format, CU_AD_FORMAT_UNSIGNED_INT32);
  CUarray none = nullptr;
  CUDA_ARRAY_DESCRIPTOR flat{8, 8, CU_AD_FORMAT_FLOAT, 3};
  test.expect_code("three channels", driver().cuArrayCreate(&none, &flat), CUDA_ERROR_INVALID_VALUE);
  flat = {0, 8, CU_AD_FORMAT_FLOAT, 1};
  test.expect_code("no width", driver().cuArrayCreate(&none, &flat), CUDA_ERROR_INVALID_VALUE);
}

void rectangles_of_words(Test& test) {
  const std::size_t pitch = 48, rows = 6;
  const auto memory = test.zeros<unsigned char>(pitch * rows);
  const CUdeviceptr at = memory.address;
  test.expect_code("cuMemsetD2D16", driver().cuMemsetD2D16(at + 2, pitch, 0x1234, 5, 3), CUDA_SUCCESS);
  test.expect_code("cuMemsetD2D32", driver().cuMemsetD2D32(at + 16, pitch, 0xdeadbeef, 2, 6), CUDA_SUCCESS);
  test.expect_code("cuMemsetD2D8", driver().cuMemsetD2D8(at + 40, pitch, 0x5a, 8, 2), CUDA_SUCCESS);
  test.expect_code("off its alignment", driver().cuMemsetD2D16(at + 1, pitch, 1, 1, 1), CUDA_ERROR_INVALID_VALUE);
  std::vector<unsigned char> want(pitch * rows);
  const unsigned short half = 0x1234;
  const unsigned word = 0xdeadbeef;
  for (std::size_t y = 0; y < rows; ++y) {
    unsigned char* row = &want[y * pitch];
    for (std::size_t x = 0; y < 3 && x < 5; ++x) std::memcpy(row + 2 + 2 * x, &half, 2);
    for (std::size_t x = 0; x < 2; ++x) std::memcpy(row + 16 + 4 * x, &word, 4);
    if (y < 2) std::memset(row + 40, 0x5a, 8);
  }
  test.equal("bytes", test.download(memory), want);
}

// cuMemcpy2DUnaligned takes any pitch, and both sides may be arrays.
void rectangles_of_arrays(Test& test) {
  const std::size_t width = 9, height = 4;
  const auto data = words(width * height, 3);
  const Array array(test, width, height, 0);
  if (!test.ok()) return;
  std::vector<unsigned> back(5 * 2, 1), want;
  CUDA_MEMCPY2D in{};
  in.srcMemoryType = CU_MEMORYTYPE_HOST, in.srcHost = data.data(), in.srcPitch = width * 4;
  in.dstMemoryType = CU_MEMORYTYPE_ARRAY, in.dstArray = array.get();
  in.WidthInBytes = width * 4, in.Height = height;
  test.expect_code("to the array", driver().cuMemcpy2D(&in), CUDA_SUCCESS);
  CUDA_MEMCPY2D out{};
  out.srcMemoryType = CU_MEMORYTYPE_ARRAY, out.srcArray = array.get(), out.srcXInBytes = 12, out.srcY = 1;
  out.dstMemoryType = CU_MEMORYTYPE_HOST, out.dstHost = back.data(), out.dstPitch = 20;
  out.WidthInBytes = 20, out.Height = 2;
  test.expect_code("cuMemcpy2DUnaligned", driver().cuMemcpy2DUnaligned(&out), CUDA_SUCCESS);
  for (std::size_t y = 1; y < 3; ++y) want.insert(want.end(), &data[y * width + 3], &data[y * width + 8]);
  test.equal("rectangle", back, want);
}

// Host memory by its kinds: what is registered or mapped has a device address, and says how it was allocated.
void host_memory(Test& test) {
  void* memory = nullptr;
  unsigned flags = 0;
  CUdeviceptr device = 0;
  test.expect_code("cuMemHostAlloc",
                   driver().cuMemHostAlloc(&memory, 8192, CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP),
                   CUDA_SUCCESS);
  if (!test.ok()) return;
  test.expect_code("cuMemHostGetFlags", driver().cuMemHostGetFlags(&flags, memory), CUDA_SUCCESS);
  test.expect((flags & CU_MEMHOSTALLOC_PORTABLE) != 0 && (flags & CU_MEMHOSTALLOC_DEVICEMAP) != 0, "as allocated");
  test.expect_code("an address inside",
                   driver().cuMemHostGetDevicePointer(&device, static_cast<char*>(memory) + 4096, 0), CUDA_SUCCESS);
  test.expect_code("a fill from the device", driver().cuMemsetD32(device, 0xabcd, 4), CUDA_SUCCESS);
  test.synchronize();
  test.expect_value("the host sees it", static_cast<const unsigned*>(memory)[1027], 0xabcd);
  unsigned local = 0;
  test.expect_code("ordinary memory has no flags", driver().cuMemHostGetFlags(&flags, &local),
                   CUDA_ERROR_INVALID_VALUE);
  test.expect_code("unknown flags", driver().cuMemHostRegister(&local, 4, 0x100), CUDA_ERROR_INVALID_VALUE);
  test.expect_code("cuMemFreeHost", driver().cuMemFreeHost(memory), CUDA_SUCCESS);
}

constexpr Case kCases[] = {
    {"boxes", nullptr, boxes},
    {"rows_of_arrays", nullptr, rows_of_arrays},
    {"descriptors", nullptr, descriptors},
    {"rectangles_of_words", nullptr, rectangles_of_words},
    {"rectangles_of_arrays", nullptr, rectangles_of_arrays},
    {"host_memory", nullptr, host_memory},
};

}  // namespace

const Field kArrays{"arrays", kCases};

}  // namespace softgpu::conformance
