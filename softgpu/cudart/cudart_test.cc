// The runtime library as a program that is linked to it sees it: testdata/program.cu brings kernels and variables. One
// process, two devices of 256 MiB.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <numeric>
#include <thread>
#include <vector>

#include "softgpu/cudart/testdata/program.h"
#include "softgpu/device/testing.h"

namespace {

constexpr int kCount = 1000;

// Device memory with the test's values; freed at the end.
template <typename T>
class DeviceVector {
 public:
  explicit DeviceVector(const std::vector<T>& values) : size_(values.size()) {
    EXPECT_EQ(cudaMalloc(&address_, bytes()), cudaSuccess);
    EXPECT_EQ(cudaMemcpy(address_, values.data(), bytes(), cudaMemcpyHostToDevice), cudaSuccess);
  }
  ~DeviceVector() { EXPECT_EQ(cudaFree(address_), cudaSuccess); }
  DeviceVector(const DeviceVector&) = delete;
  DeviceVector& operator=(const DeviceVector&) = delete;
  T* data() const { return static_cast<T*>(address_); }
  std::size_t bytes() const { return size_ * sizeof(T); }
  std::vector<T> read() const {
    std::vector<T> values(size_);
    EXPECT_EQ(cudaMemcpy(values.data(), address_, bytes(), cudaMemcpyDeviceToHost), cudaSuccess);
    return values;
  }

 private:
  void* address_ = nullptr;
  std::size_t size_;
};

std::vector<float> ramp() {
  std::vector<float> values(kCount);
  std::iota(values.begin(), values.end(), 0.0F);
  return values;
}

// Saxpy in the stream; true when every element is right.
bool saxpy_is_right(cudaStream_t stream) {
  const DeviceVector<float> x(ramp());
  const DeviceVector<float> y(std::vector<float>(kCount, 1.0F));
  const DeviceVector<float> out(std::vector<float>(kCount, -1.0F));
  launch_saxpy(2.0F, x.data(), y.data(), out.data(), kCount, stream);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  const std::vector<float> result = out.read();
  int wrong = 0;
  for (int i = 0; i < kCount; ++i) wrong += result[static_cast<std::size_t>(i)] != 2.0F * static_cast<float>(i) + 1.0F;
  return wrong == 0;
}

TEST(Launch, RunsInEveryKindOfStream) {
  cudaStream_t stream = nullptr;
  EXPECT_TRUE(saxpy_is_right(nullptr));
  EXPECT_TRUE(saxpy_is_right(cudaStreamLegacy));
  EXPECT_TRUE(saxpy_is_right(cudaStreamPerThread));
  ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  EXPECT_TRUE(saxpy_is_right(stream));
  EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
  bool right = false;
  std::thread([&] { right = saxpy_is_right(nullptr); }).join();  // a thread with no context yet
  EXPECT_TRUE(right);
}

TEST(Launch, HasDynamicSharedMemory) {
  const DeviceVector<int> out({0});
  launch_sum(out.data());
  EXPECT_EQ(out.read()[0], 255 * 256 / 2);
}

TEST(Launch, ByAddressWithAttributesAndCooperatively) {
  const DeviceVector<float> x(ramp());
  const DeviceVector<float> out(std::vector<float>(kCount, -1.0F));
  float a = 3;
  const float* in = x.data();
  float* target = out.data();
  int count = kCount;
  void* arguments[] = {&a, &in, &in, &target, &count};
  EXPECT_EQ(cudaLaunchKernel(saxpy_symbol(), dim3(16), dim3(64), arguments, 0, nullptr), cudaSuccess);
  EXPECT_EQ(out.read()[10], 40.0F);
  cudaLaunchConfig_t config = {dim3(16), dim3(64), 0, nullptr, nullptr, 0};
  a = 4;
  EXPECT_EQ(cudaLaunchKernelExC(&config, saxpy_symbol(), arguments), cudaSuccess);
  EXPECT_EQ(out.read()[10], 50.0F);
  a = 5;
  EXPECT_EQ(cudaLaunchCooperativeKernel(saxpy_symbol(), dim3(16), dim3(64), arguments, 0, nullptr), cudaSuccess);
  EXPECT_EQ(out.read()[10], 60.0F);
  cudaKernel_t kernel = nullptr;
  a = 6;
  EXPECT_EQ(__cudaGetKernel(&kernel, saxpy_symbol()), cudaSuccess);
  EXPECT_EQ(__cudaLaunchKernel(kernel, dim3(16), dim3(64), arguments, 0, nullptr), cudaSuccess);
  EXPECT_EQ(out.read()[10], 70.0F);
}

TEST(Launch, RefusesWhatCannotRun) {
  void* arguments[] = {nullptr};
  EXPECT_EQ(cudaLaunchKernel(saxpy_symbol(), dim3(0), dim3(64), arguments, 0, nullptr), cudaErrorInvalidConfiguration);
  EXPECT_EQ(cudaLaunchKernel(saxpy_symbol(), dim3(1), dim3(4096), arguments, 0, nullptr),
            cudaErrorInvalidConfiguration);
  EXPECT_EQ(cudaLaunchKernel(&kCount, dim3(1), dim3(1), arguments, 0, nullptr), cudaErrorInvalidDeviceFunction);
  EXPECT_EQ(cudaLaunchKernelExC(nullptr, saxpy_symbol(), arguments), cudaErrorInvalidValue);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidValue);
  dim3 grid;
  std::size_t bytes = 0;
  cudaStream_t stream = nullptr;
  EXPECT_EQ(__cudaPopCallConfiguration(&grid, &grid, &bytes, &stream), cudaErrorMissingConfiguration);
  EXPECT_EQ(cudaGetLastError(), cudaErrorMissingConfiguration);
}

TEST(Symbols, AreCopiedToAndFrom) {
  int words[8] = {};
  std::size_t bytes = 0;
  void* address = nullptr;
  EXPECT_EQ(cudaGetSymbolSize(&bytes, table_symbol()), cudaSuccess);
  EXPECT_EQ(bytes, sizeof words);
  EXPECT_EQ(cudaGetSymbolAddress(&address, table_symbol()), cudaSuccess);
  EXPECT_NE(address, nullptr);
  launch_bump();
  EXPECT_EQ(cudaMemcpyFromSymbol(words, table_symbol(), sizeof words, 0, cudaMemcpyDeviceToHost), cudaSuccess);
  EXPECT_EQ(words[0], 11);
  EXPECT_EQ(words[7], 18);
  const int step = 100;
  EXPECT_EQ(cudaMemcpyToSymbol(increment_symbol(), &step, sizeof step, 0, cudaMemcpyHostToDevice), cudaSuccess);
  launch_bump();
  EXPECT_EQ(cudaMemcpyFromSymbol(words, table_symbol(), 4, 28, cudaMemcpyDeviceToHost), cudaSuccess);
  EXPECT_EQ(words[0], 118);
  EXPECT_EQ(cudaMemcpyFromSymbol(words, table_symbol(), 8, 28, cudaMemcpyDeviceToHost), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpyToSymbol(&kCount, &step, 4, 0, cudaMemcpyHostToDevice), cudaErrorInvalidSymbol);
  EXPECT_EQ(cudaMemcpyToSymbol(table_symbol(), &step, 4, 0, cudaMemcpyDeviceToHost), cudaErrorInvalidMemcpyDirection);
  cudaGetLastError();
}

TEST(Memory, IsAllocatedFilledAndCopied) {
  void* address = nullptr;
  std::size_t pitch = 0;
  ASSERT_EQ(cudaMallocPitch(&address, &pitch, 100, 4), cudaSuccess);
  EXPECT_GE(pitch, 100U);
  EXPECT_EQ(cudaMemset2D(address, pitch, 7, 100, 4), cudaSuccess);
  std::vector<unsigned char> rows(400);
  EXPECT_EQ(cudaMemcpy2D(rows.data(), 100, address, pitch, 100, 4, cudaMemcpyDeviceToHost), cudaSuccess);
  EXPECT_EQ(std::count(rows.begin(), rows.end(), 7), 400);
  EXPECT_EQ(cudaMemcpy2D(rows.data(), 50, address, pitch, 100, 4, cudaMemcpyDeviceToHost), cudaErrorInvalidPitchValue);
  EXPECT_EQ(cudaFree(address), cudaSuccess);
  EXPECT_EQ(cudaFree(nullptr), cudaSuccess);
  EXPECT_EQ(cudaMalloc(&address, 0), cudaSuccess);
  EXPECT_EQ(address, nullptr);
  EXPECT_EQ(cudaMalloc(&address, std::size_t{1} << 40), cudaErrorMemoryAllocation);
  EXPECT_EQ(cudaMemcpy(rows.data(), rows.data(), 1, static_cast<cudaMemcpyKind>(9)), cudaErrorInvalidMemcpyDirection);
  cudaGetLastError();
}

TEST(Memory, DefaultKindSeesWhereAddressesLie) {
  const DeviceVector<int> device({1, 2, 3});
  int host[3] = {};
  EXPECT_EQ(cudaMemcpy(host, device.data(), sizeof host, cudaMemcpyDefault), cudaSuccess);
  EXPECT_EQ(host[2], 3);
  host[0] = 9;
  EXPECT_EQ(cudaMemcpy(device.data(), host, sizeof host, cudaMemcpyDefault), cudaSuccess);
  EXPECT_EQ(device.read()[0], 9);
  int other[3] = {};
  EXPECT_EQ(cudaMemcpy(other, host, sizeof host, cudaMemcpyHostToHost), cudaSuccess);
  EXPECT_EQ(other[0], 9);
}

TEST(Memory, PointersSayWhatTheyAre) {
  const DeviceVector<int> device({1});
  void* pinned = nullptr;
  int plain = 0;
  cudaPointerAttributes attributes;
  EXPECT_EQ(cudaPointerGetAttributes(&attributes, device.data()), cudaSuccess);
  EXPECT_EQ(attributes.type, cudaMemoryTypeDevice);
  EXPECT_EQ(attributes.device, 0);
  EXPECT_EQ(attributes.devicePointer, device.data());
  ASSERT_EQ(cudaMallocHost(&pinned, 64), cudaSuccess);
  EXPECT_EQ(cudaPointerGetAttributes(&attributes, pinned), cudaSuccess);
  EXPECT_EQ(attributes.type, cudaMemoryTypeHost);
  EXPECT_EQ(attributes.hostPointer, pinned);
  EXPECT_EQ(cudaFreeHost(pinned), cudaSuccess);
  EXPECT_EQ(cudaPointerGetAttributes(&attributes, &plain), cudaSuccess);
  EXPECT_EQ(attributes.type, cudaMemoryTypeUnregistered);
  EXPECT_EQ(attributes.device, -1);
}

TEST(Memory, StreamOrderedAllocationsHoldData) {
  cudaStream_t stream = nullptr;
  void* address = nullptr;
  int word = 0;
  ASSERT_EQ(cudaStreamCreate(&stream), cudaSuccess);
  EXPECT_EQ(cudaMallocAsync(&address, 64, stream), cudaSuccess);
  EXPECT_EQ(cudaMemsetAsync(address, 1, 64, stream), cudaSuccess);
  EXPECT_EQ(cudaMemcpyAsync(&word, address, 4, cudaMemcpyDeviceToHost, stream), cudaSuccess);
  EXPECT_EQ(cudaFreeAsync(address, stream), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  EXPECT_EQ(word, 0x01010101);
  EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
}

TEST(Stream, EventsOrderAndTime) {
  cudaStream_t stream = nullptr;
  cudaEvent_t begin = nullptr;
  cudaEvent_t end = nullptr;
  float milliseconds = -1;
  ASSERT_EQ(cudaStreamCreate(&stream), cudaSuccess);
  ASSERT_EQ(cudaEventCreate(&begin), cudaSuccess);
  ASSERT_EQ(cudaEventCreate(&end), cudaSuccess);
  EXPECT_EQ(cudaEventRecord(begin, stream), cudaSuccess);
  int calls = 0;
  EXPECT_EQ(cudaLaunchHostFunc(
                stream, [](void* data) { ++*static_cast<int*>(data); }, &calls),
            cudaSuccess);
  const auto callback = [](cudaStream_t, cudaError_t status, void* data) {
    *static_cast<int*>(data) += status == cudaSuccess ? 10 : 1000;
  };
  EXPECT_EQ(cudaStreamAddCallback(stream, callback, &calls, 0), cudaSuccess);
  EXPECT_EQ(cudaEventRecord(end, stream), cudaSuccess);
  EXPECT_EQ(cudaStreamWaitEvent(nullptr, end, 0), cudaSuccess);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_EQ(calls, 11);
  EXPECT_EQ(cudaEventQuery(end), cudaSuccess);
  EXPECT_EQ(cudaEventElapsedTime(&milliseconds, begin, end), cudaSuccess);
  EXPECT_GE(milliseconds, 0.0F);
  EXPECT_EQ(cudaEventDestroy(begin), cudaSuccess);
  EXPECT_EQ(cudaEventDestroy(end), cudaSuccess);
  EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
  EXPECT_EQ(cudaStreamDestroy(nullptr), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidResourceHandle);
}

TEST(Stream, PerThreadFormsUseTheThreadsOwn) {
  using CopyAsync = cudaError_t (*)(void*, const void*, std::size_t, cudaMemcpyKind, cudaStream_t);
  using Copy = cudaError_t (*)(void*, const void*, std::size_t, cudaMemcpyKind);
  const auto copy_async = reinterpret_cast<CopyAsync>(::dlsym(RTLD_DEFAULT, "cudaMemcpyAsync_ptsz"));
  const auto copy = reinterpret_cast<Copy>(::dlsym(RTLD_DEFAULT, "cudaMemcpy_ptds"));
  ASSERT_NE(copy_async, nullptr);
  ASSERT_NE(copy, nullptr);
  const DeviceVector<int> device({5});
  int word = 0;
  EXPECT_EQ(copy(&word, device.data(), 4, cudaMemcpyDeviceToHost), cudaSuccess);
  EXPECT_EQ(word, 5);
  word = 6;
  EXPECT_EQ(copy_async(device.data(), &word, 4, cudaMemcpyHostToDevice, nullptr), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(cudaStreamPerThread), cudaSuccess);
  EXPECT_EQ(device.read()[0], 6);
}

TEST(Device, PropertiesAreTheDriversAttributes) {
  cudaDeviceProp properties;
  int value = 0;
  ASSERT_EQ(cudaGetDeviceProperties(&properties, 1), cudaSuccess);
  EXPECT_STREQ(properties.name, "NVIDIA A100-SXM4-40GB");
  EXPECT_EQ(properties.major * 10 + properties.minor, 80);
  EXPECT_EQ(properties.multiProcessorCount, 108);
  EXPECT_EQ(properties.totalGlobalMem, (40ULL << 30) / 64);
  EXPECT_EQ(properties.warpSize, 32);
  EXPECT_EQ(properties.maxThreadsDim[2], 64);
  EXPECT_EQ(properties.sharedMemPerBlockOptin, 163U << 10);
  EXPECT_EQ(cudaDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, 1), cudaSuccess);
  EXPECT_EQ(properties.l2CacheSize, value);
  EXPECT_EQ(cudaGetDeviceProperties(&properties, 2), cudaErrorInvalidDevice);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidDevice);
  static_assert(sizeof(cudaDeviceProp) == 1008 && offsetof(cudaDeviceProp, hostNumaId) == 768);
}

TEST(Device, IsChosenPerThread) {
  int device = -1;
  int count = 0;
  EXPECT_EQ(cudaGetDeviceCount(&count), cudaSuccess);
  EXPECT_EQ(count, 2);
  ASSERT_EQ(cudaSetDevice(1), cudaSuccess);
  EXPECT_EQ(cudaGetDevice(&device), cudaSuccess);
  EXPECT_EQ(device, 1);
  EXPECT_TRUE(saxpy_is_right(nullptr));
  cudaPointerAttributes attributes;
  {
    const DeviceVector<int> here({1});
    EXPECT_EQ(cudaPointerGetAttributes(&attributes, here.data()), cudaSuccess);
    EXPECT_EQ(attributes.device, 1);
    std::thread([&] { EXPECT_EQ(cudaGetDevice(&device), cudaSuccess); }).join();
    EXPECT_EQ(device, 0);
    ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
    const DeviceVector<int> there({2});
    EXPECT_EQ(cudaMemcpyPeer(here.data(), 1, there.data(), 0, 4), cudaSuccess);
    EXPECT_EQ(here.read()[0], 2);
  }
  EXPECT_EQ(cudaSetDevice(2), cudaErrorInvalidDevice);
  EXPECT_EQ(cudaSetDevice(-1), cudaErrorInvalidDevice);
  EXPECT_EQ(cudaGetDevice(&device), cudaSuccess);
  EXPECT_EQ(device, 0);
  cudaGetLastError();
}

TEST(Function, AttributesAndOccupancyAreTheDrivers) {
  cudaFuncAttributes attributes;
  int blocks = 0;
  const char* name = nullptr;
  ASSERT_EQ(cudaFuncGetAttributes(&attributes, saxpy_symbol()), cudaSuccess);
  EXPECT_EQ(attributes.maxThreadsPerBlock, 1024);
  EXPECT_EQ(attributes.binaryVersion, 80);
  EXPECT_GT(attributes.numRegs, 0);
  EXPECT_EQ(cudaFuncSetAttribute(saxpy_symbol(), cudaFuncAttributeMaxDynamicSharedMemorySize, 100 << 10), cudaSuccess);
  EXPECT_EQ(cudaFuncGetAttributes(&attributes, saxpy_symbol()), cudaSuccess);
  EXPECT_EQ(attributes.maxDynamicSharedSizeBytes, 100 << 10);
  EXPECT_EQ(cudaFuncSetAttribute(saxpy_symbol(), cudaFuncAttributeMaxDynamicSharedMemorySize, 1 << 20),
            cudaErrorInvalidValue);
  EXPECT_EQ(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, saxpy_symbol(), 256, 0), cudaSuccess);
  EXPECT_EQ(blocks, 8);
  EXPECT_EQ(cudaFuncGetName(&name, saxpy_symbol()), cudaSuccess);
  EXPECT_STREQ(name, "_Z5saxpyfPKfS0_Pfi");
  EXPECT_EQ(cudaFuncGetAttributes(&attributes, nullptr), cudaErrorInvalidDeviceFunction);
  cudaGetLastError();
}

TEST(Library, LoadsCodeOfTheProgramsOwn) {
  const char* text =
      ".version 7.0\n.target sm_70\n.address_size 64\n.visible .global .b32 word = 5;\n"
      ".visible .entry nothing() { ret; }\n";
  cudaLibrary_t library = nullptr;
  cudaKernel_t kernel = nullptr;
  void* address = nullptr;
  std::size_t bytes = 0;
  unsigned count = 0;
  int word = 0;
  ASSERT_EQ(cudaLibraryLoadData(&library, text, nullptr, nullptr, 0, nullptr, nullptr, 0), cudaSuccess);
  EXPECT_EQ(cudaLibraryGetKernelCount(&count, library), cudaSuccess);
  EXPECT_EQ(count, 1U);
  EXPECT_EQ(cudaLibraryGetKernel(&kernel, library, "nothing"), cudaSuccess);
  EXPECT_EQ(__cudaLaunchKernel(kernel, dim3(1), dim3(1), nullptr, 0, nullptr), cudaSuccess);
  EXPECT_EQ(cudaLibraryGetGlobal(&address, &bytes, library, "word"), cudaSuccess);
  EXPECT_EQ(cudaMemcpy(&word, address, sizeof word, cudaMemcpyDeviceToHost), cudaSuccess);
  EXPECT_EQ(word, 5);
  EXPECT_EQ(cudaLibraryUnload(library), cudaSuccess);
  EXPECT_EQ(cudaLibraryUnload(library), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaLibraryLoadData(&library, "hello", nullptr, nullptr, 0, nullptr, nullptr, 0),
            cudaErrorInvalidKernelImage);
  cudaGetLastError();
}

TEST(Graph, ACapturedLaunchRunsAsOftenAsItIsLaunched) {
  cudaStream_t stream = nullptr;
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;
  std::size_t nodes = 0;
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), cudaSuccess);
  EXPECT_EQ(cudaStreamIsCapturing(stream, &status), cudaSuccess);
  EXPECT_EQ(status, cudaStreamCaptureStatusActive);
  EXPECT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
  const DeviceVector<float> ones(std::vector<float>(kCount, 1.0F));
  const DeviceVector<float> sum(std::vector<float>(kCount, 0.0F));
  ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), cudaSuccess);
  launch_saxpy(1.0F, ones.data(), sum.data(), sum.data(), kCount, stream);
  ASSERT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
  EXPECT_EQ(cudaGraphGetNodes(graph, nullptr, &nodes), cudaSuccess);
  EXPECT_EQ(nodes, 1U);
  ASSERT_EQ(cudaGraphInstantiate(&executable, graph, 0), cudaSuccess);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(cudaGraphLaunch(executable, stream), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  EXPECT_EQ(sum.read()[kCount - 1], 3.0F);
  EXPECT_EQ(cudaGraphExecDestroy(executable), cudaSuccess);
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
  EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
}

TEST(Memory, ManagedIsSharedWithTheHost) {
  void* address = nullptr;
  ASSERT_EQ(cudaMallocManaged(&address, kCount * sizeof(float), cudaMemAttachGlobal), cudaSuccess);
  auto* values = static_cast<float*>(address);
  std::fill(values, values + kCount, 2.0F);
  launch_saxpy(1.0F, values, values, values, kCount, nullptr);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_EQ(values[kCount - 1], 4.0F);
  cudaPointerAttributes attributes;
  EXPECT_EQ(cudaPointerGetAttributes(&attributes, address), cudaSuccess);
  EXPECT_EQ(attributes.type, cudaMemoryTypeManaged);
  EXPECT_EQ(cudaFree(address), cudaSuccess);
}

TEST(Errors, AreKeptPerThreadUntilTaken) {
  EXPECT_EQ(cudaSetDevice(9), cudaErrorInvalidDevice);
  EXPECT_EQ(cudaFree(nullptr), cudaSuccess);  // a success does not take it away
  EXPECT_EQ(cudaPeekAtLastError(), cudaErrorInvalidDevice);
  cudaError_t other = cudaErrorUnknown;
  std::thread([&] { other = cudaGetLastError(); }).join();
  EXPECT_EQ(other, cudaSuccess);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidDevice);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  EXPECT_STREQ(cudaGetErrorName(cudaErrorIllegalAddress), "cudaErrorIllegalAddress");
  EXPECT_STREQ(cudaGetErrorString(cudaErrorIllegalAddress), "illegal address");
  EXPECT_STREQ(cudaGetErrorString(cudaSuccess), "no error");
  EXPECT_STREQ(cudaGetErrorName(static_cast<cudaError_t>(12345)), "unrecognized error code");
}

TEST(Errors, AFaultSticksUntilTheDeviceIsReset) {
  launch_wild_store();
  EXPECT_EQ(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
  EXPECT_EQ(cudaGetLastError(), cudaErrorIllegalAddress);
  void* address = nullptr;
  EXPECT_EQ(cudaMalloc(&address, 4), cudaErrorIllegalAddress);
  EXPECT_EQ(cudaGetLastError(), cudaErrorIllegalAddress);
  EXPECT_EQ(cudaDeviceReset(), cudaSuccess);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  EXPECT_TRUE(saxpy_is_right(nullptr));  // the code comes back with the next use
  int words[8] = {};
  EXPECT_EQ(cudaMemcpyFromSymbol(words, table_symbol(), sizeof words, 0, cudaMemcpyDeviceToHost), cudaSuccess);
  EXPECT_EQ(words[0], 1);  // and its variables have their first values
}

TEST(Entry, PointsAndVersionsAreTheDrivers) {
  int version = 0;
  void* function = nullptr;
  cudaDriverEntryPointQueryResult status = CU_GET_PROC_ADDRESS_SUCCESS;
  EXPECT_EQ(cudaRuntimeGetVersion(&version), cudaSuccess);
  EXPECT_EQ(version, 13000);
  EXPECT_EQ(cudaDriverGetVersion(&version), cudaSuccess);
  EXPECT_EQ(version, 13000);
  EXPECT_EQ(cudaGetDriverEntryPointByVersion("cuMemAlloc", &function, 12000, 0, &status), cudaSuccess);
  EXPECT_NE(function, nullptr);
  EXPECT_EQ(cudaGetDriverEntryPoint("cuNonsense", &function, 0, &status), cudaSuccess);
  EXPECT_EQ(status, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
  EXPECT_EQ(cudaGetDriverEntryPoint("cuNonsense", &function, 0, nullptr), cudaErrorSymbolNotFound);
  EXPECT_EQ(cudaProfilerStart(), cudaSuccess);
  EXPECT_EQ(cudaProfilerStop(), cudaSuccess);
  cudaGetLastError();
}

TEST(Symbols, OfTheAbiAllExistInTheLibrarysVersion) {
  void* library = ::dlopen("libcudart.so.13", RTLD_NOW | RTLD_NOLOAD);
  ASSERT_NE(library, nullptr);
  std::ifstream names(SOFTGPU_CUDART_SYMBOLS);
  int count = 0;
  for (std::string name; std::getline(names, name); ++count) {
    EXPECT_NE(::dlvsym(library, name.c_str(), "libcudart.so.13"), nullptr) << name;
  }
  EXPECT_EQ(count, 422);
  const auto absent = reinterpret_cast<cudaError_t (*)(void*)>(::dlsym(library, "cudaImportExternalMemory"));
  EXPECT_EQ(absent(nullptr), cudaErrorNotSupported);
  EXPECT_EQ(cudaGetLastError(), cudaErrorNotSupported);
}

}  // namespace

int main(int count, char** arguments) {
  ::testing::InitGoogleTest(&count, arguments);
  const softgpu::testing::TemporaryHome home(
      {{"SOFTGPU_PROFILE", "a100-40"}, {"SOFTGPU_DEVICES", "2"}, {"SOFTGPU_MEMORY_SCALE", "64"}});
  return RUN_ALL_TESTS();
}
