// Libraries, their kernels in and out of contexts, functions and occupancy.
#include "softgpu/driver/driver_testing.h"

namespace {

using softgpu::testing::Environment;
using softgpu::testing::kTestPtx;
using softgpu::testing::use_device;

CUlibrary test_library() {
  CUlibrary library = nullptr;
  EXPECT_EQ(cuLibraryLoadData(&library, kTestPtx, nullptr, nullptr, 0, nullptr, nullptr, 0), CUDA_SUCCESS);
  return library;
}

CUkernel kernel_of(CUlibrary library, const char* name) {
  CUkernel kernel = nullptr;
  EXPECT_EQ(cuLibraryGetKernel(&kernel, library, name), CUDA_SUCCESS);
  return kernel;
}

DRIVER_TEST(Library, IsKnownWithoutAContext) {
  CUlibrary library = nullptr;
  EXPECT_EQ(cuLibraryLoadData(&library, kTestPtx, nullptr, nullptr, 0, nullptr, nullptr, 0),
            CUDA_ERROR_NOT_INITIALIZED);
  ASSERT_EQ(cuInit(0), CUDA_SUCCESS);
  library = test_library();
  unsigned count = 0;
  EXPECT_EQ(cuLibraryGetKernelCount(&count, library), CUDA_SUCCESS);
  EXPECT_EQ(count, 6U);
  std::vector<CUkernel> kernels(count);
  EXPECT_EQ(cuLibraryEnumerateKernels(kernels.data(), count, library), CUDA_SUCCESS);
  const CUkernel kernel = kernel_of(library, "store_index");
  const char* name = nullptr;
  std::size_t offset = 0;
  std::size_t size = 0;
  CUlibrary owner = nullptr;
  EXPECT_EQ(cuKernelGetName(&name, kernel), CUDA_SUCCESS);
  EXPECT_STREQ(name, "store_index");
  EXPECT_EQ(cuKernelGetLibrary(&owner, kernel), CUDA_SUCCESS);
  EXPECT_EQ(owner, library);
  EXPECT_EQ(cuKernelGetParamInfo(kernel, 1, &offset, &size), CUDA_SUCCESS);
  EXPECT_EQ(offset, 8U);
  EXPECT_EQ(size, 4U);
  EXPECT_EQ(cuKernelGetParamInfo(kernel, 2, &offset, &size), CUDA_ERROR_INVALID_VALUE);
  CUfunction function = nullptr;
  CUmodule module = nullptr;
  EXPECT_EQ(cuKernelGetFunction(&function, kernel), CUDA_ERROR_INVALID_CONTEXT);
  EXPECT_EQ(cuLibraryGetModule(&module, library), CUDA_ERROR_INVALID_CONTEXT);
  int value = 0;  // attributes name their device
  EXPECT_EQ(cuKernelGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, kernel, 0), CUDA_SUCCESS);
  EXPECT_EQ(value, 1024);
  EXPECT_EQ(cuKernelGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, kernel, 1),
            CUDA_ERROR_INVALID_DEVICE);
  EXPECT_EQ(cuLibraryUnload(library), CUDA_SUCCESS);
  EXPECT_EQ(cuKernelGetName(&name, kernel), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(cuLibraryGetKernelCount(&count, library), CUDA_ERROR_INVALID_HANDLE);
}

DRIVER_TEST(Library, RefusesBadImagesAndOptionsWithOrWithoutAContext) {
  ASSERT_EQ(cuInit(0), CUDA_SUCCESS);
  const char* broken = ".version 7.0\n.target sm_70\n.address_size 64\n.entry k() {\n bogus.u32 %r1;\n ret;\n}\n";
  for (int round = 0; round < 2; ++round) {
    CUlibrary library = nullptr;
    char log[256] = "";
    CUjit_option jit[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void* values[] = {log, reinterpret_cast<void*>(sizeof log)};
    EXPECT_EQ(cuLibraryLoadData(&library, broken, jit, values, 2, nullptr, nullptr, 0), CUDA_ERROR_INVALID_PTX);
    EXPECT_NE(std::string(log).find("line 5"), std::string::npos) << log;
    EXPECT_EQ(cuLibraryLoadData(&library, "hello", nullptr, nullptr, 0, nullptr, nullptr, 0), CUDA_ERROR_INVALID_IMAGE);
    EXPECT_EQ(cuLibraryLoadFromFile(&library, "/nonexistent", nullptr, nullptr, 0, nullptr, nullptr, 0),
              CUDA_ERROR_FILE_NOT_FOUND);
    CUlibraryOption option = CU_LIBRARY_NUM_OPTIONS;
    EXPECT_EQ(cuLibraryLoadData(&library, kTestPtx, nullptr, nullptr, 0, &option, nullptr, 1),
              CUDA_ERROR_INVALID_VALUE);
    use_device();
  }
}

DRIVER_TEST(Library, KernelsOutliveTheContextTheyRanIn) {
  ASSERT_EQ(cuInit(0), CUDA_SUCCESS);
  const CUlibrary library = test_library();
  const CUkernel kernel = kernel_of(library, "add_one");
  for (int round = 0; round < 3; ++round) {
    CUcontext context = nullptr;
    CUdeviceptr word = 0;
    unsigned value = 0;
    ASSERT_EQ(cuCtxCreate_v2(&context, 0, 0), CUDA_SUCCESS);
    ASSERT_EQ(cuMemAlloc_v2(&word, 4), CUDA_SUCCESS);
    cuMemsetD32_v2(word, 7, 1);
    void* parameters[] = {&word};
    EXPECT_EQ(cuLaunchKernel(reinterpret_cast<CUfunction>(kernel), 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr),
              CUDA_SUCCESS);
    EXPECT_EQ(cuMemcpyDtoH_v2(&value, word, 4), CUDA_SUCCESS);
    EXPECT_EQ(value, 8U);
    EXPECT_EQ(cuCtxDestroy_v2(context), CUDA_SUCCESS);
  }
  EXPECT_EQ(cuLibraryUnload(library), CUDA_SUCCESS);
}

DRIVER_TEST(Library, ASettingOfAKernelHoldsForTheDevice) {
  ASSERT_EQ(cuInit(0), CUDA_SUCCESS);
  const CUlibrary library = test_library();
  const CUkernel kernel = kernel_of(library, "empty");
  constexpr auto kAttribute = CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
  EXPECT_EQ(cuKernelSetAttribute(kAttribute, 90 << 10, kernel, 0), CUDA_SUCCESS);
  EXPECT_EQ(cuKernelSetAttribute(kAttribute, 97 << 10, kernel, 0), CUDA_ERROR_INVALID_VALUE);
  use_device();
  CUfunction function = nullptr;
  int value = 0;
  EXPECT_EQ(cuKernelGetFunction(&function, kernel), CUDA_SUCCESS);
  EXPECT_EQ(cuFuncGetAttribute(&value, kAttribute, function), CUDA_SUCCESS);
  EXPECT_EQ(value, 90 << 10);
  EXPECT_EQ(cuKernelSetAttribute(kAttribute, 80 << 10, kernel, 0), CUDA_SUCCESS);
  EXPECT_EQ(cuFuncGetAttribute(&value, kAttribute, function), CUDA_SUCCESS);
  EXPECT_EQ(value, 80 << 10);
  EXPECT_EQ(cuKernelSetCacheConfig(kernel, CU_FUNC_CACHE_PREFER_L1, 0), CUDA_SUCCESS);
  EXPECT_EQ(cuKernelSetCacheConfig(kernel, static_cast<CUfunc_cache>(4), 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuKernelSetCacheConfig(kernel, CU_FUNC_CACHE_PREFER_L1, 5), CUDA_ERROR_INVALID_DEVICE);
}

DRIVER_TEST(Library, FindsVariablesByKind) {
  use_device();
  const char* text =
      ".version 7.0\n.target sm_70\n.address_size 64\n.visible .global .align 8 .b8 plain[24];\n"
      ".visible .global .attribute(.managed) .align 4 .b32 shared = 9;\n.visible .entry k() { ret; }\n";
  CUlibrary library = nullptr;
  CUdeviceptr address = 0;
  std::size_t bytes = 0;
  void* function = nullptr;
  ASSERT_EQ(cuLibraryLoadData(&library, text, nullptr, nullptr, 0, nullptr, nullptr, 0), CUDA_SUCCESS);
  EXPECT_EQ(cuLibraryGetGlobal(&address, &bytes, library, "plain"), CUDA_SUCCESS);
  EXPECT_EQ(bytes, 24U);
  EXPECT_EQ(cuLibraryGetGlobal(&address, &bytes, library, "absent"), CUDA_ERROR_NOT_FOUND);
  EXPECT_EQ(cuLibraryGetManaged(&address, &bytes, library, "plain"), CUDA_ERROR_NOT_FOUND);
  ASSERT_EQ(cuLibraryGetManaged(&address, &bytes, library, "shared"), CUDA_SUCCESS);
  EXPECT_EQ(bytes, 4U);
  EXPECT_EQ(*reinterpret_cast<int*>(address), 9);
  EXPECT_EQ(cuLibraryGetUnifiedFunction(&function, library, "k"), CUDA_ERROR_NOT_FOUND);
  CUmodule module = nullptr;
  CUtexref texture = nullptr;
  CUsurfref surface = nullptr;
  EXPECT_EQ(cuLibraryGetModule(&module, library), CUDA_SUCCESS);
  EXPECT_EQ(cuModuleUnload(module), CUDA_ERROR_NOT_PERMITTED);
  EXPECT_EQ(cuModuleGetTexRef(&texture, module, "plain"), CUDA_ERROR_NOT_FOUND);
  EXPECT_EQ(cuModuleGetSurfRef(&surface, module, nullptr), CUDA_ERROR_INVALID_VALUE);
}

// Counts a variable that starts at 9, and one that starts at 0 and is larger than a page.
constexpr char kManagedPtx[] = R"(
.version 7.0
.target sm_70
.address_size 64
.visible .global .attribute(.managed) .align 4 .u32 counter = 9;
.visible .global .attribute(.managed) .align 4 .b8 large[2800000];
.visible .entry count() {
  .reg .b32 %r<3>;
  ld.global.u32 %r1, [counter];
  add.u32 %r1, %r1, 1;
  st.global.u32 [counter], %r1;
  ld.global.u32 %r2, [large];
  add.u32 %r2, %r2, 1;
  st.global.u32 [large], %r2;
  ret;
}
)";

bool is_managed(CUdeviceptr address) {
  unsigned managed = 0;
  return cuPointerGetAttribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, address) == CUDA_SUCCESS && managed != 0;
}

CUdeviceptr global_of(CUmodule module, const char* name) {
  CUdeviceptr address = 0;
  EXPECT_EQ(cuModuleGetGlobal_v2(&address, nullptr, module, name), CUDA_SUCCESS);
  return address;
}

void count_in(CUmodule module) {
  CUfunction function = nullptr;
  EXPECT_EQ(cuModuleGetFunction(&function, module, "count"), CUDA_SUCCESS);
  EXPECT_EQ(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
}

DRIVER_TEST(Module, ManagedVariablesAreTheHostsToo) {
  use_device();
  CUmodule module = nullptr;
  CUmodule other = nullptr;
  ASSERT_EQ(cuModuleLoadData(&module, kManagedPtx), CUDA_SUCCESS);
  ASSERT_EQ(cuModuleLoadData(&other, kManagedPtx), CUDA_SUCCESS);
  const CUdeviceptr counter = global_of(module, "counter");
  const CUdeviceptr large = global_of(module, "large");
  EXPECT_TRUE(is_managed(counter) && is_managed(large + 2799999));
  EXPECT_EQ(*reinterpret_cast<unsigned*>(counter), 9U);
  *reinterpret_cast<unsigned*>(counter) = 20;
  count_in(module);
  EXPECT_EQ(*reinterpret_cast<unsigned*>(counter), 21U);
  EXPECT_EQ(*reinterpret_cast<unsigned*>(large), 1U);
  EXPECT_EQ(*reinterpret_cast<unsigned*>(global_of(other, "counter")), 9U);  // modules share nothing
  EXPECT_EQ(cuMemFree_v2(counter), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuModuleUnload(module), CUDA_SUCCESS);
  EXPECT_FALSE(is_managed(counter));
  EXPECT_TRUE(is_managed(global_of(other, "counter")));
}

DRIVER_TEST_IN(Library, ManagedVariablesAreOneForAllContexts, (Environment{{"SOFTGPU_DEVICES", "2"}})) {
  use_device();
  CUcontext second = nullptr;
  CUlibrary library = nullptr;
  CUmodule module = nullptr;
  CUdeviceptr address = 0;
  CUdeviceptr there = 0;
  ASSERT_EQ(cuLibraryLoadData(&library, kManagedPtx, nullptr, nullptr, 0, nullptr, nullptr, 0), CUDA_SUCCESS);
  EXPECT_EQ(cuLibraryGetManaged(&address, nullptr, library, "counter"), CUDA_SUCCESS);
  EXPECT_EQ(cuLibraryGetModule(&module, library), CUDA_SUCCESS);
  count_in(module);
  EXPECT_EQ(cuDevicePrimaryCtxRetain(&second, 1), CUDA_SUCCESS);
  EXPECT_EQ(cuCtxSetCurrent(second), CUDA_SUCCESS);
  EXPECT_EQ(cuLibraryGetManaged(&there, nullptr, library, "counter"), CUDA_SUCCESS);
  EXPECT_EQ(there, address);
  EXPECT_EQ(cuLibraryGetModule(&module, library), CUDA_SUCCESS);
  count_in(module);
  EXPECT_EQ(*reinterpret_cast<unsigned*>(address), 11U);  // loading it again did not reset it
  EXPECT_EQ(cuDevicePrimaryCtxRelease_v2(0), CUDA_SUCCESS);
  EXPECT_EQ(*reinterpret_cast<unsigned*>(address), 11U);  // it is no context's
  EXPECT_EQ(cuLibraryUnload(library), CUDA_SUCCESS);
  EXPECT_FALSE(is_managed(address));
}

void expect_loading(CUmoduleLoadingMode expected_mode, CUfunctionLoadingState when_enumerated) {
  use_device();
  CUmoduleLoadingMode mode = CU_MODULE_EAGER_LOADING;
  CUfunctionLoadingState state = CU_FUNCTION_LOADING_STATE_LOADED;
  CUmodule module = nullptr;
  CUfunction functions[6] = {};
  unsigned count = 0;
  EXPECT_EQ(cuModuleGetLoadingMode(&mode), CUDA_SUCCESS);
  EXPECT_EQ(mode, expected_mode);
  ASSERT_EQ(cuModuleLoadData(&module, kTestPtx), CUDA_SUCCESS);
  EXPECT_EQ(cuModuleGetFunctionCount(&count, module), CUDA_SUCCESS);
  EXPECT_EQ(count, 6U);
  ASSERT_EQ(cuModuleEnumerateFunctions(functions, 6, module), CUDA_SUCCESS);
  EXPECT_EQ(cuFuncIsLoaded(&state, functions[0]), CUDA_SUCCESS);
  EXPECT_EQ(state, when_enumerated);
  EXPECT_EQ(cuFuncLoad(functions[0]), CUDA_SUCCESS);
  EXPECT_EQ(cuFuncIsLoaded(&state, functions[0]), CUDA_SUCCESS);
  EXPECT_EQ(state, CU_FUNCTION_LOADING_STATE_LOADED);
}

DRIVER_TEST(Loading, IsLazyByDefault) {
  expect_loading(CU_MODULE_LAZY_LOADING, CU_FUNCTION_LOADING_STATE_UNLOADED);
}
DRIVER_TEST_IN(Loading, IsEagerWhenAsked, (Environment{{"CUDA_MODULE_LOADING", "EAGER"}})) {
  expect_loading(CU_MODULE_EAGER_LOADING, CU_FUNCTION_LOADING_STATE_LOADED);
}

DRIVER_TEST(Function, AnswersEveryAttribute) {
  use_device();
  const CUfunction function = softgpu::testing::test_function("store_index");
  for (int attribute = 0; attribute < CU_FUNC_ATTRIBUTE_MAX; ++attribute) {
    int value = -7;
    EXPECT_EQ(cuFuncGetAttribute(&value, static_cast<CUfunction_attribute>(attribute), function), CUDA_SUCCESS);
    EXPECT_GE(value, -1) << attribute;
  }
  int value = 0;
  EXPECT_EQ(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_PTX_VERSION, function), CUDA_SUCCESS);
  EXPECT_EQ(value, 70);
  EXPECT_EQ(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_BINARY_VERSION, function), CUDA_SUCCESS);
  EXPECT_EQ(value, 70);
  EXPECT_EQ(cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_NUM_REGS, 1), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, 101),
            CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuFuncSetCacheConfig(function, static_cast<CUfunc_cache>(9)), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuFuncSetSharedMemConfig(function, static_cast<CUsharedconfig>(9)), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_NUM_REGS, nullptr), CUDA_ERROR_INVALID_HANDLE);
}

CUlaunchConfig config_of(unsigned threads, CUlaunchAttribute* cluster) {
  CUlaunchConfig config = {};
  config.gridDimX = config.gridDimY = config.gridDimZ = config.blockDimY = config.blockDimZ = 1;
  config.blockDimX = threads;
  config.attrs = cluster;
  config.numAttrs = cluster != nullptr ? 1 : 0;
  return config;
}

DRIVER_TEST_IN(Occupancy, CountsClustersWhereThereAreAny, (Environment{{"SOFTGPU_PROFILE", "h100-80"}})) {
  use_device();
  const CUfunction function = softgpu::testing::test_function("empty");
  CUlaunchAttribute cluster = {};
  cluster.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
  cluster.value.clusterDim = {4, 2, 1};
  CUlaunchConfig config = config_of(1024, &cluster);
  int value = 0;
  EXPECT_EQ(cuOccupancyMaxPotentialClusterSize(&value, function, &config), CUDA_SUCCESS);
  EXPECT_EQ(value, 8);
  EXPECT_EQ(cuOccupancyMaxActiveClusters(&value, function, &config), CUDA_SUCCESS);
  EXPECT_EQ(value, 132 * 2 / 8);
  cluster.value.clusterDim = {16, 1, 1};
  EXPECT_EQ(cuOccupancyMaxActiveClusters(&value, function, &config), CUDA_ERROR_INVALID_CLUSTER_SIZE);
  EXPECT_EQ(cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1), CUDA_SUCCESS);
  EXPECT_EQ(cuOccupancyMaxActiveClusters(&value, function, &config), CUDA_SUCCESS);
  EXPECT_EQ(value, 132 * 2 / 16);
  config.blockDimX = 0;
  EXPECT_EQ(cuOccupancyMaxActiveClusters(&value, function, &config), CUDA_ERROR_INVALID_VALUE);
}

DRIVER_TEST(Occupancy, HasNoClustersBelowHopper) {
  use_device();
  const CUfunction function = softgpu::testing::test_function("empty");
  const CUlaunchConfig config = config_of(64, nullptr);
  int value = 0;
  EXPECT_EQ(cuOccupancyMaxPotentialClusterSize(&value, function, &config), CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(cuOccupancyMaxActiveClusters(&value, function, nullptr), CUDA_ERROR_INVALID_VALUE);
}

// 164 KiB per SM, of which each block costs 1 KiB more than it asks for.
DRIVER_TEST_IN(Occupancy, TheSystemTakesSharedMemoryOfEachBlock, (Environment{{"SOFTGPU_PROFILE", "a100-40"}})) {
  use_device();
  const CUfunction function = softgpu::testing::test_function("empty");
  int blocks = 0;
  EXPECT_EQ(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, function, 64, 16 << 10), CUDA_SUCCESS);
  EXPECT_EQ(blocks, 9);
  std::size_t bytes = 0;
  EXPECT_EQ(cuOccupancyAvailableDynamicSMemPerBlock(&bytes, function, 2, 64), CUDA_SUCCESS);
  EXPECT_EQ(bytes, std::size_t{81} << 10);
}

DRIVER_TEST(Occupancy, DynamicSharedMemoryLeavesRoomForTheBlocks) {
  use_device();
  const CUfunction function = softgpu::testing::test_function("empty");
  std::size_t bytes = 0;
  int blocks = 0;
  for (const int wanted : {1, 2, 3, 8}) {
    ASSERT_EQ(cuOccupancyAvailableDynamicSMemPerBlock(&bytes, function, wanted, 128), CUDA_SUCCESS);
    EXPECT_EQ(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, function, 128, bytes), CUDA_SUCCESS);
    EXPECT_EQ(blocks, wanted);
    EXPECT_EQ(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, function, 128, bytes + 1), CUDA_SUCCESS);
    EXPECT_LT(blocks, wanted);
  }
  EXPECT_EQ(cuOccupancyAvailableDynamicSMemPerBlock(&bytes, function, 0, 128), CUDA_ERROR_INVALID_VALUE);
}

}  // namespace
