// Error codes, contexts, attributes, modules, the resolver: what the documentation of the driver API states.
#include <thread>

#include "softgpu/conformance/fields.h"
#include "softgpu/conformance/inputs.h"
#include "softgpu/conformance/test.h"

namespace softgpu::conformance {
namespace {

void bad_devices(Test& test) {
  CUdevice device = 0;
  int value = 0;
  const auto no_attribute = static_cast<CUdevice_attribute>(5000);
  test.expect_code("cuDeviceGet of device 1000", driver().cuDeviceGet(&device, 1000), CUDA_ERROR_INVALID_DEVICE);
  test.expect_code("cuDeviceGet of device -1", driver().cuDeviceGet(&device, -1), CUDA_ERROR_INVALID_DEVICE);
  test.expect_code("cuDeviceGet into null", driver().cuDeviceGet(nullptr, 0), CUDA_ERROR_INVALID_VALUE);
  test.expect_code("an attribute that does not exist", driver().cuDeviceGetAttribute(&value, no_attribute, 0),
                   CUDA_ERROR_INVALID_VALUE);
  test.expect_code("cuInit with a flag", driver().cuInit(1), CUDA_ERROR_INVALID_VALUE);
}

void bad_allocations(Test& test) {
  CUdeviceptr address = 0;
  test.expect_code("cuMemAlloc of no bytes", driver().cuMemAlloc(&address, 0), CUDA_ERROR_INVALID_VALUE);
  test.expect_code("cuMemAlloc into null", driver().cuMemAlloc(nullptr, 4), CUDA_ERROR_INVALID_VALUE);
  test.expect_code("cuMemAlloc of an exabyte", driver().cuMemAlloc(&address, std::size_t{1} << 60),
                   CUDA_ERROR_OUT_OF_MEMORY);
  test.expect_code("cuMemFree of null", driver().cuMemFree(0), CUDA_SUCCESS);
  test.expect_code("cuMemFree of no allocation", driver().cuMemFree(0x1000), CUDA_ERROR_INVALID_VALUE);
  test.expect_code("cuMemAlloc", driver().cuMemAlloc(&address, 1 << 20), CUDA_SUCCESS);
  test.expect_code("cuMemFree", driver().cuMemFree(address), CUDA_SUCCESS);
  test.expect_code("cuMemFree twice", driver().cuMemFree(address), CUDA_ERROR_INVALID_VALUE);
}

void bad_launches(Test& test) {
  const CUfunction function = test.function("store_index");
  const auto out = test.zeros<unsigned>(64);
  if (!test.ok()) return;
  int n = 64;
  CUdeviceptr address = out.address;
  void* parameters[] = {&n, &address};
  const auto launch = [&](CUfunction which, unsigned grid, unsigned block_x, unsigned block_z, unsigned shared) {
    return driver().cuLaunchKernel(which, grid, 1, 1, block_x, 1, block_z, shared, nullptr, parameters, nullptr);
  };
  test.expect_code("a good launch", launch(function, 1, 64, 1, 0), CUDA_SUCCESS);
  test.expect_code("no blocks", launch(function, 0, 64, 1, 0), CUDA_ERROR_INVALID_VALUE);
  test.expect_code("no threads", launch(function, 1, 0, 1, 0), CUDA_ERROR_INVALID_VALUE);
  test.expect_code("1025 threads", launch(function, 1, 1025, 1, 0), CUDA_ERROR_INVALID_VALUE);
  test.expect_code("65 threads in z", launch(function, 1, 1, 65, 0), CUDA_ERROR_INVALID_VALUE);
  test.expect_code("a gigabyte of shared memory", launch(function, 1, 64, 1, 1 << 30), CUDA_ERROR_INVALID_VALUE);
  test.expect_code("no function", launch(nullptr, 1, 64, 1, 0), CUDA_ERROR_INVALID_HANDLE);
  test.expect_code("more blocks at once than fit",
                   driver().cuLaunchCooperativeKernel(function, 1000000, 1, 1, 64, 1, 1, 0, nullptr, parameters),
                   CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
  std::vector<unsigned> want(64);
  for (unsigned i = 0; i < 64; ++i) want[i] = i;
  test.equal("only the good one ran", test.download(out), want);
}

void error_names(Test& test) {
  const char* text = "unchanged";
  test.expect_code("a name", driver().cuGetErrorName(CUDA_ERROR_ILLEGAL_ADDRESS, &text), CUDA_SUCCESS);
  test.expect(text != nullptr && std::string(text) == "CUDA_ERROR_ILLEGAL_ADDRESS", "CUDA_ERROR_ILLEGAL_ADDRESS");
  test.expect_code("a text", driver().cuGetErrorString(CUDA_ERROR_OUT_OF_MEMORY, &text), CUDA_SUCCESS);
  test.expect(text != nullptr && std::string(text) == "out of memory", "out of memory");
  test.expect_code("no such error", driver().cuGetErrorName(static_cast<CUresult>(12345), &text),
                   CUDA_ERROR_INVALID_VALUE);
  test.expect(text == nullptr, "the name of no error is null");
}

void contexts(Test& test) {
  CUcontext primary = nullptr, own = nullptr, current = nullptr;
  test.check(driver().cuCtxGetCurrent(&primary), "cuCtxGetCurrent");
  test.expect_code("cuCtxCreate", driver().cuCtxCreate_v2(&own, 0, 0), CUDA_SUCCESS);
  driver().cuCtxGetCurrent(&current);
  test.expect(current == own, "a created context is current");
  test.expect_code("cuCtxPopCurrent", driver().cuCtxPopCurrent(&current), CUDA_SUCCESS);
  test.expect(current == own, "pop gives what was current");
  driver().cuCtxGetCurrent(&current);
  test.expect(current == primary, "the context below is current again");
  test.expect_code("cuCtxPushCurrent", driver().cuCtxPushCurrent(own), CUDA_SUCCESS);
  CUdeviceptr address = 0;
  test.expect_code("cuMemAlloc in it", driver().cuMemAlloc(&address, 256), CUDA_SUCCESS);
  test.expect_code("cuCtxDestroy", driver().cuCtxDestroy(own), CUDA_SUCCESS);
  driver().cuCtxGetCurrent(&current);
  test.expect(current == primary, "destroying the current context pops it");
}

void no_context(Test& test) {
  CUresult allocate = CUDA_SUCCESS, synchronize = CUDA_SUCCESS, get = CUDA_ERROR_UNKNOWN;
  CUcontext current = nullptr;
  std::thread other([&] {
    CUdeviceptr address = 0;
    get = driver().cuCtxGetCurrent(&current);
    allocate = driver().cuMemAlloc(&address, 4);
    synchronize = driver().cuCtxSynchronize();
  });
  other.join();
  test.expect_code("cuCtxGetCurrent", get, CUDA_SUCCESS);
  test.expect(current == nullptr, "a new thread has no context");
  test.expect_code("cuMemAlloc", allocate, CUDA_ERROR_INVALID_CONTEXT);
  test.expect_code("cuCtxSynchronize", synchronize, CUDA_ERROR_INVALID_CONTEXT);
}

// What the programming guide gives for all compute capabilities from 7.0 on.
void device_limits(Test& test) {
  const auto expect = [&](const char* what, CUdevice_attribute attribute, long long want) {
    test.expect_value(what, test.attribute(attribute), want);
  };
  expect("threads per block", CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1024);
  expect("block x", CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, 1024);
  expect("block y", CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, 1024);
  expect("block z", CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, 64);
  expect("grid x", CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, 2147483647);
  expect("grid y", CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, 65535);
  expect("grid z", CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, 65535);
  expect("warp", CU_DEVICE_ATTRIBUTE_WARP_SIZE, 32);
  expect("constant memory", CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY, 65536);
  expect("shared memory per block", CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, 49152);
  expect("registers per block", CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK, 65536);
  expect("unified addresses", CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 1);
  expect("cooperative launch", CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH, 1);
}

void context_limits(Test& test) {
  std::size_t stack = 0, changed = 0;
  test.expect_code("cuCtxGetLimit", driver().cuCtxGetLimit(&stack, CU_LIMIT_STACK_SIZE), CUDA_SUCCESS);
  test.expect(stack >= 1024, "at least 1 KiB of stack");
  test.expect_code("cuCtxSetLimit", driver().cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 8192), CUDA_SUCCESS);
  driver().cuCtxGetLimit(&changed, CU_LIMIT_STACK_SIZE);
  test.expect_value("stack", static_cast<long long>(changed), 8192);
  driver().cuCtxSetLimit(CU_LIMIT_STACK_SIZE, stack);
  test.expect_code("no such limit", driver().cuCtxGetLimit(&stack, static_cast<CUlimit>(77)), CUDA_ERROR_INVALID_VALUE);
  test.observe("a limit of contexts for graphics", name_of(driver().cuCtxGetLimit(&stack, CU_LIMIT_CIG_ENABLED)));
}

void bad_modules(Test& test) {
  CUmodule module = nullptr;
  const std::string head = ".version 6.3\n.target sm_70\n.address_size 64\n";
  const auto load = [&](const std::string& text) { return driver().cuModuleLoadData(&module, text.c_str()); };
  test.expect_code("a syntax error", load(head + ".visible .entry k() { this is not ptx; }"), CUDA_ERROR_INVALID_PTX);
  test.expect_code("an unknown register", load(head + ".visible .entry k() { add.u32 %r1, %r2, %r3; ret; }"),
                   CUDA_ERROR_INVALID_PTX);
  test.expect_code("a version of the future", load(".version 99.9\n.target sm_70\n.address_size 64\n"),
                   CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
  test.expect_code("a missing file", driver().cuModuleLoad(&module, "/nowhere/kernels.ptx"), CUDA_ERROR_FILE_NOT_FOUND);
  test.expect_code("null", driver().cuModuleLoadData(&module, nullptr), CUDA_ERROR_INVALID_VALUE);
  char log[512] = "";
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void* values[] = {log, reinterpret_cast<void*>(sizeof log)};
  const std::string bad = head + ".visible .entry k() { nonsense; }";
  test.expect_code("with a log", driver().cuModuleLoadDataEx(&module, bad.c_str(), 2, options, values),
                   CUDA_ERROR_INVALID_PTX);
  test.expect(log[0] != '\0', "the log says why");
}

void modules(Test& test) {
  CUmodule second = nullptr;
  CUfunction function = nullptr;
  CUdeviceptr address = 0;
  std::size_t bytes = 0;
  const auto out = test.zeros<int>(4);
  test.launch("bump", {1, 4}, out);
  test.equal("initial values plus 1", test.download(out), {11, 21, 31, 41});
  test.launch("bump", {1, 4}, out);
  test.equal("a variable keeps its value", test.download(out), {12, 22, 32, 42});
  if (!test.check(driver().cuModuleLoadData(&second, ptx_of("driver")), "cuModuleLoadData")) return;
  test.expect_code("cuModuleGetGlobal", driver().cuModuleGetGlobal(&address, &bytes, second, "initialised"),
                   CUDA_SUCCESS);
  test.expect_value("its bytes", static_cast<long long>(bytes), 16);
  test.equal("a second module has its own", test.download(Buffer<int>{address, 4}), {10, 20, 30, 40});
  test.expect_code("no such variable", driver().cuModuleGetGlobal(&address, &bytes, second, "nothing"),
                   CUDA_ERROR_NOT_FOUND);
  test.expect_code("no such function", driver().cuModuleGetFunction(&function, second, "nothing"),
                   CUDA_ERROR_NOT_FOUND);
  test.expect_code("cuModuleUnload", driver().cuModuleUnload(second), CUDA_SUCCESS);
}

void function_attributes(Test& test) {
  const CUfunction function = test.function("bounded");
  if (!test.ok()) return;
  const auto expect = [&](const char* what, CUfunction_attribute attribute, int want) {
    int value = -1;
    test.check(driver().cuFuncGetAttribute(&value, attribute, function), what);
    test.expect_value(what, value, want);
  };
  expect("threads per block", CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 128);
  expect("static shared memory", CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, 256);
  expect("PTX version", CU_FUNC_ATTRIBUTE_PTX_VERSION, 70);
  const auto out = test.zeros<int>(256);
  CUdeviceptr address = out.address;
  void* parameters[] = {&address};
  // NVIDIA documents that the launch fails, not with which code.
  test.expect(driver().cuLaunchKernel(function, 1, 1, 1, 256, 1, 1, 0, nullptr, parameters, nullptr) != CUDA_SUCCESS,
              "more threads than its bound are refused");
  int blocks = 0;
  test.expect_code("occupancy", driver().cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, function, 128, 0),
                   CUDA_SUCCESS);
  test.expect(blocks >= 1 && blocks <= 32, "one to 32 blocks fit");
  test.expect_code("occupancy of no threads",
                   driver().cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, function, 0, 0),
                   CUDA_ERROR_INVALID_VALUE);
}

void resolver(Test& test) {
  const auto resolve = [&](const char* name, int version, cuuint64_t flags, CUdriverProcAddressQueryResult want) {
    void* function = nullptr;
    auto status = CU_GET_PROC_ADDRESS_SUCCESS;
    driver().cuGetProcAddress(name, &function, version, flags, &status);
    test.expect_value((std::string(name) + "@" + std::to_string(version)).c_str(), status, want);
    test.expect((function != nullptr) == (want == CU_GET_PROC_ADDRESS_SUCCESS), "null exactly when not found");
    return function;
  };
  void* first = resolve("cuMemAlloc", 2000, 0, CU_GET_PROC_ADDRESS_SUCCESS);
  void* second = resolve("cuMemAlloc", 3020, 0, CU_GET_PROC_ADDRESS_SUCCESS);
  test.expect(first != second, "cuMemAlloc changed with 3.2");
  test.expect(second == reinterpret_cast<void*>(driver().cuMemAlloc), "the resolver and dlsym agree");
  void* legacy = resolve("cuMemcpy", 7000, CU_GET_PROC_ADDRESS_LEGACY_STREAM, CU_GET_PROC_ADDRESS_SUCCESS);
  void* per_thread =
      resolve("cuMemcpy", 7000, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, CU_GET_PROC_ADDRESS_SUCCESS);
  test.expect(legacy != per_thread, "the per-thread default stream has entry points of its own");
  resolve("cuLaunchKernelEx", 11060, 0, CU_GET_PROC_ADDRESS_SUCCESS);
  resolve("cuLaunchKernelEx", 7000, 0, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
  resolve("cuDoesNotExist", 12000, 0, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
}

// A name stands for another function in each version of CUDA that changed it.
void resolver_versions(Test& test) {
  struct Row {
    const char* name;
    int version;
    const char* symbol;
  };
  constexpr Row kRows[] = {
      {"cuCtxCreate", 2000, "cuCtxCreate"},
      {"cuCtxCreate", 3020, "cuCtxCreate_v2"},
      {"cuCtxCreate", 11040, "cuCtxCreate_v3"},
      {"cuStreamDestroy", 2000, "cuStreamDestroy"},
      {"cuStreamDestroy", 4000, "cuStreamDestroy_v2"},
      {"cuStreamBeginCapture", 10000, "cuStreamBeginCapture"},
      {"cuStreamBeginCapture", 10010, "cuStreamBeginCapture_v2"},
      {"cuGraphInstantiate", 10000, "cuGraphInstantiate"},
      {"cuGraphInstantiate", 11000, "cuGraphInstantiate_v2"},
      {"cuGraphExecUpdate", 10020, "cuGraphExecUpdate"},
      {"cuGraphExecUpdate", 12000, "cuGraphExecUpdate_v2"},
      {"cuMemPrefetchAsync", 8000, "cuMemPrefetchAsync"},
      {"cuMemPrefetchAsync", 12020, "cuMemPrefetchAsync_v2"},
      {"cuStreamWaitValue32", 8000, "cuStreamWaitValue32"},
      {"cuStreamWaitValue32", 11070, "cuStreamWaitValue32_v2"},
      {"cuGetProcAddress", 11030, "cuGetProcAddress"},
      {"cuGetProcAddress", 12000, "cuGetProcAddress_v2"},
  };
  int driver_version = 0;
  driver().cuDriverGetVersion(&driver_version);
  for (const Row& row : kRows) {
    void* function = nullptr;
    auto status = CU_GET_PROC_ADDRESS_SUCCESS;
    if (row.version > driver_version) continue;
    driver().cuGetProcAddress(row.name, &function, row.version, 0, &status);
    const std::string what = std::string(row.name) + "@" + std::to_string(row.version) + " is " + row.symbol;
    test.expect(function != nullptr && function == driver_symbol(row.symbol), what.c_str());
  }
}

constexpr Case kCases[] = {
    {"bad_devices", nullptr, bad_devices},
    {"bad_allocations", nullptr, bad_allocations},
    {"bad_launches", "driver", bad_launches},
    {"error_names", nullptr, error_names},
    {"contexts", nullptr, contexts},
    {"no_context", nullptr, no_context},
    {"device_limits", nullptr, device_limits},
    {"context_limits", nullptr, context_limits},
    {"bad_modules", nullptr, bad_modules},
    {"modules", "driver", modules},
    {"function_attributes", "driver", function_attributes},
    {"resolver", nullptr, resolver},
    {"resolver_versions", nullptr, resolver_versions},
};

}  // namespace

const Field kDriver{"driver", kCases};

}  // namespace softgpu::conformance
