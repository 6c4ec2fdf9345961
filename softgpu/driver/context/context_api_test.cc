// Contexts, modules, functions.
#include <atomic>
#include <cstring>
#include <string>
#include <thread>

#include "softgpu/driver/driver_testing.h"

namespace {

using softgpu::testing::kTestPtx;
using softgpu::testing::run_kernel;
using softgpu::testing::test_function;
using softgpu::testing::test_module;
using softgpu::testing::use_device;

DRIVER_TEST(Context, StackPushesAndPops) {
  ASSERT_EQ(cuInit(0), CUDA_SUCCESS);
  CUcontext first = nullptr;
  CUcontext second = nullptr;
  CUcontext current = nullptr;
  ASSERT_EQ(cuCtxCreate_v2(&first, 0, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuCtxCreate_v4(&second, nullptr, 0, 0), CUDA_SUCCESS);
  cuCtxGetCurrent(&current);
  EXPECT_EQ(current, second);
  EXPECT_EQ(cuCtxPopCurrent_v2(&current), CUDA_SUCCESS);
  EXPECT_EQ(current, second);
  cuCtxGetCurrent(&current);
  EXPECT_EQ(current, first);
  EXPECT_EQ(cuCtxDestroy_v2(first), CUDA_SUCCESS);
  EXPECT_EQ(cuCtxDestroy_v2(first), CUDA_ERROR_CONTEXT_IS_DESTROYED);
  cuCtxGetCurrent(&current);
  EXPECT_EQ(current, nullptr);
  EXPECT_EQ(cuCtxPopCurrent_v2(nullptr), CUDA_ERROR_INVALID_CONTEXT);
  EXPECT_EQ(cuCtxSetCurrent(reinterpret_cast<CUcontext>(&current)), CUDA_ERROR_INVALID_CONTEXT);
}

DRIVER_TEST(Context, OfThreadsThatDestroyItOneDoes) {
  CUcontext primary = use_device();
  for (int i = 0; i < 20; ++i) {
    CUcontext context = nullptr;
    ASSERT_EQ(cuCtxCreate_v2(&context, 0, 0), CUDA_SUCCESS);
    std::atomic<int> ready{0};
    const auto destroy = [&] {
      ++ready;
      while (ready != 2) std::this_thread::yield();
      const CUresult result = cuCtxDestroy_v2(context);
      EXPECT_TRUE(result == CUDA_SUCCESS || result == CUDA_ERROR_CONTEXT_IS_DESTROYED);
    };
    std::thread other(destroy);
    destroy();
    other.join();
    cuCtxSetCurrent(primary);  // what the other thread destroyed stays current here
  }
  EXPECT_EQ(run_kernel("empty", nullptr), CUDA_SUCCESS);
  EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
}

DRIVER_TEST(Context, CostsMemoryAndGivesEverythingBack) {
  std::size_t free_before = 0;
  std::size_t free_inside = 0;
  std::size_t total = 0;
  use_device();
  cuMemGetInfo_v2(&free_before, &total);
  CUcontext context = nullptr;
  CUdeviceptr address = 0;
  ASSERT_EQ(cuCtxCreate_v2(&context, 0, 0), CUDA_SUCCESS);
  EXPECT_EQ(cuMemAlloc_v2(&address, 32 << 20), CUDA_SUCCESS);
  test_module();
  cuMemGetInfo_v2(&free_inside, &total);
  EXPECT_LE(free_inside + (36 << 20), free_before);
  EXPECT_EQ(cuCtxDestroy_v2(context), CUDA_SUCCESS);
  cuMemGetInfo_v2(&free_inside, &total);
  EXPECT_EQ(free_inside, free_before);
}

DRIVER_TEST(Context, PrimaryIsCountedAndCanBeReset) {
  unsigned flags = 0;
  int active = 1;
  ASSERT_EQ(cuInit(0), CUDA_SUCCESS);
  EXPECT_EQ(cuDevicePrimaryCtxGetState(0, &flags, &active), CUDA_SUCCESS);
  EXPECT_EQ(active, 0);
  EXPECT_EQ(cuDevicePrimaryCtxRelease_v2(0), CUDA_ERROR_INVALID_CONTEXT);
  const CUcontext context = use_device();
  CUcontext again = nullptr;
  EXPECT_EQ(cuDevicePrimaryCtxRetain(&again, 0), CUDA_SUCCESS);
  EXPECT_EQ(again, context);
  CUdeviceptr address = 0;
  ASSERT_EQ(cuMemAlloc_v2(&address, 100), CUDA_SUCCESS);
  EXPECT_EQ(cuDevicePrimaryCtxReset_v2(0), CUDA_SUCCESS);
  EXPECT_EQ(cuMemFree_v2(address), CUDA_ERROR_CONTEXT_IS_DESTROYED);
  EXPECT_EQ(cuDevicePrimaryCtxRetain(&again, 0), CUDA_SUCCESS);
  EXPECT_EQ(cuMemAlloc_v2(&address, 100), CUDA_SUCCESS);
  EXPECT_EQ(cuCtxDestroy_v2(context), CUDA_ERROR_INVALID_CONTEXT);
}

DRIVER_TEST(Context, LimitsAreKept) {
  use_device();
  std::size_t value = 0;
  EXPECT_EQ(cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 1 << 24), CUDA_SUCCESS);
  EXPECT_EQ(cuCtxGetLimit(&value, CU_LIMIT_MALLOC_HEAP_SIZE), CUDA_SUCCESS);
  EXPECT_EQ(value, 1U << 24);
  EXPECT_EQ(cuCtxGetLimit(&value, CU_LIMIT_CIG_ENABLED), CUDA_ERROR_UNSUPPORTED_LIMIT);
  for (const CUlimit unknown : {CU_LIMIT_MAX, static_cast<CUlimit>(77), static_cast<CUlimit>(-1)}) {
    EXPECT_EQ(cuCtxGetLimit(&value, unknown), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuCtxSetLimit(unknown, 1), CUDA_ERROR_INVALID_VALUE);
  }
}

DRIVER_TEST(Module, FindsFunctionsAndGlobals) {
  use_device();
  CUfunction function = nullptr;
  CUdeviceptr address = 0;
  std::size_t bytes = 0;
  EXPECT_NE(test_function("empty"), nullptr);
  EXPECT_EQ(cuModuleGetFunction(&function, test_module(), "absent"), CUDA_ERROR_NOT_FOUND);
  EXPECT_EQ(cuModuleGetGlobal_v2(&address, &bytes, test_module(), "table"), CUDA_SUCCESS);
  EXPECT_EQ(bytes, 64U);
  EXPECT_EQ(cuMemsetD8_v2(address, 1, bytes), CUDA_SUCCESS);
  EXPECT_EQ(cuModuleGetGlobal_v2(&address, &bytes, test_module(), "absent"), CUDA_ERROR_NOT_FOUND);
  function = test_function("empty");
  CUmodule module = test_module();
  EXPECT_EQ(cuModuleUnload(module), CUDA_SUCCESS);
  EXPECT_EQ(cuModuleUnload(module), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr), CUDA_ERROR_INVALID_HANDLE);
}

DRIVER_TEST(Module, RefusesBadImagesAndExplainsInTheJitLog) {
  use_device();
  CUmodule module = nullptr;
  EXPECT_EQ(cuModuleLoadData(&module, "hello"), CUDA_ERROR_INVALID_IMAGE);
  EXPECT_EQ(cuModuleLoadData(&module,
                             "\x7f"
                             "ELF cubin"),
            CUDA_ERROR_NO_BINARY_FOR_GPU);
  EXPECT_EQ(cuModuleLoadData(&module, nullptr), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuModuleLoad(&module, "/nonexistent.ptx"), CUDA_ERROR_FILE_NOT_FOUND);
  const std::string text = ".version 7.0\n.target sm_70\n.address_size 64\n.entry k() {\n bogus.u32 %r1;\n ret;\n}\n";
  char log[256] = "";
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void* values[] = {log, reinterpret_cast<void*>(sizeof log)};
  EXPECT_EQ(cuModuleLoadDataEx(&module, text.c_str(), 2, options, values), CUDA_ERROR_INVALID_PTX);
  EXPECT_NE(std::string(log).find("line 5"), std::string::npos) << log;
  EXPECT_NE(std::string(log).find("bogus"), std::string::npos) << log;
}

DRIVER_TEST(Library, KernelsLaunchInTheCurrentContext) {
  use_device();
  CUlibrary library = nullptr;
  CUkernel kernel = nullptr;
  CUfunction function = nullptr;
  CUdeviceptr word = 0;
  unsigned value = 1;
  ASSERT_EQ(cuLibraryLoadData(&library, kTestPtx, nullptr, nullptr, 0, nullptr, nullptr, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuLibraryGetKernel(&kernel, library, "add_one"), CUDA_SUCCESS);
  EXPECT_EQ(cuLibraryGetKernel(&kernel, library, "absent"), CUDA_ERROR_NOT_FOUND);
  ASSERT_EQ(cuLibraryGetKernel(&kernel, library, "add_one"), CUDA_SUCCESS);
  EXPECT_EQ(cuKernelGetFunction(&function, kernel), CUDA_SUCCESS);
  CUcontext other = nullptr;
  ASSERT_EQ(cuCtxCreate_v2(&other, 0, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuMemAlloc_v2(&word, 4), CUDA_SUCCESS);
  cuMemsetD32_v2(word, 41, 1);
  void* parameters[] = {&word};
  EXPECT_EQ(cuLaunchKernel(reinterpret_cast<CUfunction>(kernel), 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr),
            CUDA_SUCCESS);
  EXPECT_EQ(cuMemcpyDtoH_v2(&value, word, 4), CUDA_SUCCESS);
  EXPECT_EQ(value, 42U);
  EXPECT_EQ(cuLibraryUnload(library), CUDA_SUCCESS);
  EXPECT_EQ(cuLibraryUnload(library), CUDA_ERROR_INVALID_HANDLE);
}

DRIVER_TEST(Function, AttributesAndOccupancyFollowTheProfile) {
  use_device();
  CUfunction function = test_function("store_index");
  int value = 0;
  int grid = 0;
  EXPECT_EQ(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, function), CUDA_SUCCESS);
  EXPECT_EQ(value, 1024);
  EXPECT_EQ(cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 96 << 10), CUDA_SUCCESS);
  EXPECT_EQ(cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 97 << 10),
            CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX, function), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuOccupancyMaxActiveBlocksPerMultiprocessor(&value, function, 256, 0), CUDA_SUCCESS);
  EXPECT_EQ(value, 8);
  EXPECT_EQ(cuOccupancyMaxActiveBlocksPerMultiprocessor(&value, function, 32, 48 << 10), CUDA_SUCCESS);
  EXPECT_EQ(value, 2);
  EXPECT_EQ(cuOccupancyMaxPotentialBlockSize(&grid, &value, function, nullptr, 0, 0), CUDA_SUCCESS);
  EXPECT_EQ(grid * value, 80 * 2048);
}

}  // namespace
