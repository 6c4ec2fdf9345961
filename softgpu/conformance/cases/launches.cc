// Launches at the limits of the device, their parameters and attributes, what is said of kernels. The documentation of
// cuLaunch*, cuFunc* and cuOccupancy*.
#include "softgpu/conformance/fields.h"
#include "softgpu/conformance/scene.h"

namespace softgpu::conformance {
namespace {

int blocks_per_multiprocessor(Test& test, CUfunction function, int threads, std::size_t shared) {
  int blocks = 0;
  if (test.ok()) {
    test.check(driver().cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, function, threads, shared), "occupancy");
  }
  return blocks;
}

int function_attribute(Test& test, CUfunction function, CUfunction_attribute attribute) {
  int value = -1;
  if (test.ok()) test.check(driver().cuFuncGetAttribute(&value, attribute, function), "cuFuncGetAttribute");
  return value;
}

// As many blocks as the occupancy promises run together; one more is refused. The shared memory keeps their number small.
void cooperative_limit(Test& test) {
  if (test.attribute(CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH) == 0) return test.skip("no cooperative launches");
  const CUfunction function = test.function("meet_all_blocks");
  const int shared = test.attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK);
  const int per_sm = blocks_per_multiprocessor(test, function, 32, static_cast<std::size_t>(shared));
  const unsigned most = static_cast<unsigned>(per_sm * test.attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT));
  test.expect(most > 0, "a block fits");
  if (!test.ok()) return;
  const auto arrived = test.zeros<unsigned>(1), out = test.zeros<unsigned>(most + 1);
  Shape shape{most, 32, static_cast<unsigned>(shared)};
  shape.cooperative = true;
  test.launch("meet_all_blocks", shape, arrived, out);
  std::vector<unsigned> want(most + 1, most);
  want.back() = 0;
  test.synchronize();
  test.expect(test.download(out) == want, "all blocks met");
  CUdeviceptr first = arrived.address, second = out.address;
  void* parameters[] = {&first, &second};
  test.expect_code("one block more",
                   driver().cuLaunchCooperativeKernel(function, most + 1, 1, 1, 32, 1, 1, static_cast<unsigned>(shared),
                                                      nullptr, parameters),
                   CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
}

// A small kernel is limited by threads, or by shared memory with what the system reserves of it.
void occupancy(Test& test) {
  const CUfunction function = test.function("reverse_words");
  const int threads = test.attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR);
  const int blocks = test.attribute(CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR);
  const int shared = test.attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
  const int reserved = test.attribute(CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK);
  for (const int size : {32, 128, 512, 1024}) {
    const int got = blocks_per_multiprocessor(test, function, size, 0);
    test.expect(got == std::min(threads / size, blocks), "as many blocks as have threads");
  }
  const int used = 16 << 10;
  test.expect(blocks_per_multiprocessor(test, function, 64, used) == std::min(blocks, shared / (used + reserved)),
              "as many blocks as have shared memory");
  int grid = 0, block = 0;
  test.expect_code("cuOccupancyMaxPotentialBlockSize",
                   driver().cuOccupancyMaxPotentialBlockSize(&grid, &block, function, nullptr, 0, 0), CUDA_SUCCESS);
  test.expect(grid == blocks_per_multiprocessor(test, function, block, 0) *
                          test.attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT),
              "the grid fills the device");
  std::size_t bytes = 0;
  test.expect_code("cuOccupancyAvailableDynamicSMemPerBlock",
                   driver().cuOccupancyAvailableDynamicSMemPerBlock(&bytes, function, 2, 256), CUDA_SUCCESS);
  test.expect(bytes > 0, "two blocks have shared memory");
}

// Above 48 KiB a kernel must ask for dynamic shared memory.
void large_shared_memory(Test& test) {
  const CUfunction function = test.function("reverse_words");
  const int most = test.attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
  if (most <= 48 << 10) return test.skip("no more than 48 KiB");
  const unsigned bytes = 60 << 10, n = bytes / 4;
  const auto out = test.zeros<unsigned>(n);
  CUdeviceptr address = out.address;
  int count = static_cast<int>(n);
  void* parameters[] = {&count, &address};
  const auto launch = [&] {
    return driver().cuLaunchKernel(function, 1, 1, 1, 256, 1, 1, bytes, nullptr, parameters, nullptr);
  };
  test.expect_code("without asking", launch(), CUDA_ERROR_INVALID_VALUE);
  test.expect_code("more than there is",
                   driver().cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, most + 1),
                   CUDA_ERROR_INVALID_VALUE);
  test.expect_code("cuFuncSetAttribute",
                   driver().cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, bytes),
                   CUDA_SUCCESS);
  test.expect_value("as set", function_attribute(test, function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES),
                    bytes);
  test.expect_code("launch", launch(), CUDA_SUCCESS);
  std::vector<unsigned> want(n);
  for (unsigned i = 0; i < n; ++i) want[i] = 3 * (n - 1 - i);
  test.equal("reversed", test.download(out), want);
}

struct Parameters {
  char letter;
  double number;
  short triple[3];
};
struct Packed {
  char letter;
  Parameters parameters;
  CUdeviceptr out;
  float last;
};

// One buffer with the parameters at their natural alignment, instead of pointers to each.
void parameters_in_a_buffer(Test& test) {
  const CUfunction function = test.function("mixed_parameters");
  const auto out = test.zeros<unsigned long long>(5);
  Packed packed{'a', {'b', 1000, {1, 2, 3}}, out.address, 77};
  std::size_t bytes = offsetof(Packed, last) + sizeof packed.last;
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &packed, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes, CU_LAUNCH_PARAM_END};
  test.expect_code("extra", driver().cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, extra),
                   CUDA_SUCCESS);
  test.equal("values", test.download(out), {'a', 'b', 1000, 6, 77});
  void* parameters[] = {&packed.letter, &packed.parameters, &packed.out, &packed.last};
  test.expect_code("both forms", driver().cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, extra),
                   CUDA_ERROR_INVALID_VALUE);
  int version = 0;
  driver().cuDriverGetVersion(&version);
  if (version < 12040) return;  // cuFuncGetParamInfo came with 12.4
  std::size_t offset = 0, size = 0;
  test.expect_code("cuFuncGetParamInfo", driver().cuFuncGetParamInfo(function, 1, &offset, &size), CUDA_SUCCESS);
  test.expect_value("offset", static_cast<long long>(offset), offsetof(Packed, parameters));
  test.expect_value("size", static_cast<long long>(size), sizeof(Parameters));
  test.expect_code("no such parameter", driver().cuFuncGetParamInfo(function, 4, &offset, &size),
                   CUDA_ERROR_INVALID_VALUE);
}

void attributes_of_functions(Test& test) {
  const CUfunction local = test.function("with_local_memory"), plain = test.function("mixed_parameters");
  test.expect(function_attribute(test, local, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES) >= 160, "its array is local memory");
  test.expect(function_attribute(test, local, CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES) >= 32,
              "its table is constant memory");
  const int registers = function_attribute(test, local, CU_FUNC_ATTRIBUTE_NUM_REGS);
  test.expect(registers >= 1 && registers <= 255, "1 to 255 registers");
  const int capability = 10 * test.attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) +
                         test.attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  test.expect(function_attribute(test, plain, CU_FUNC_ATTRIBUTE_BINARY_VERSION) == capability,
              "translated for this device");
  test.expect_value("static shared memory", function_attribute(test, plain, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES), 0);
  int value = 0;
  test.expect_code("an unknown attribute",
                   driver().cuFuncGetAttribute(&value, static_cast<CUfunction_attribute>(999), plain),
                   CUDA_ERROR_INVALID_VALUE);
  test.expect_code("one that is read only", driver().cuFuncSetAttribute(plain, CU_FUNC_ATTRIBUTE_NUM_REGS, 5),
                   CUDA_ERROR_INVALID_VALUE);
  const auto out = test.zeros<int>(32);
  test.launch("with_local_memory", {1, 32}, 3, out);
  std::vector<int> want;
  for (int i = 0; i < 32; ++i) want.push_back(i * 7 % 40 * 3 + (1 << i % 8));
  test.equal("values", test.download(out), want);
}

CUresult launch_with(Test& test, CUstream stream, std::vector<CUlaunchAttribute> attributes, unsigned blocks,
                     CUdeviceptr first, CUdeviceptr second) {
  CUlaunchConfig config{};
  config.gridDimX = blocks, config.gridDimY = config.gridDimZ = 1;
  config.blockDimX = 32, config.blockDimY = config.blockDimZ = 1;
  config.hStream = stream;
  config.attrs = attributes.data(), config.numAttrs = static_cast<unsigned>(attributes.size());
  void* parameters[] = {&first, &second};
  return driver().cuLaunchKernelEx(&config, test.function("meet_all_blocks"), parameters, nullptr);
}

void launch_attributes(Test& test) {
  int version = 0;
  driver().cuDriverGetVersion(&version);
  if (version < 11080) return test.skip("cuLaunchKernelEx came with CUDA 11.8");
  Scene scene(test);
  const CUstream stream = scene.stream(CU_STREAM_NON_BLOCKING);
  const auto arrived = test.zeros<unsigned>(1), out = test.zeros<unsigned>(8);
  CUlaunchAttribute cooperative{}, priority{}, cluster{};
  cooperative.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE, cooperative.value.cooperative = 1;
  priority.id = CU_LAUNCH_ATTRIBUTE_PRIORITY, priority.value.priority = 0;
  cluster.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, cluster.value.clusterDim = {2, 1, 1};
  test.expect_code("none", launch_with(test, stream, {}, 1, arrived.address, out.address), CUDA_SUCCESS);
  test.check(driver().cuMemsetD32Async(arrived.address, 0, 1, stream), "cuMemsetD32Async");
  test.expect_code("cooperative, with a priority",
                   launch_with(test, stream, {cooperative, priority}, 8, arrived.address, out.address), CUDA_SUCCESS);
  test.expect_code("cuStreamSynchronize", driver().cuStreamSynchronize(stream), CUDA_SUCCESS);
  test.equal("all met", test.download(out), std::vector<unsigned>(8, 8));
  test.expect_code("cooperative, too large",
                   launch_with(test, stream, {cooperative}, 1u << 20, arrived.address, out.address),
                   CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
  if (test.attribute(CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH) == 0) {
    test.expect(launch_with(test, stream, {cluster}, 8, arrived.address, out.address) != CUDA_SUCCESS,
                "a device without clusters refuses them");
  }
}

constexpr Case kCases[] = {
    {"cooperative_limit", "launches", cooperative_limit},
    {"occupancy", "launches", occupancy},
    {"large_shared_memory", "launches", large_shared_memory},
    {"parameters_in_a_buffer", "launches", parameters_in_a_buffer},
    {"attributes_of_functions", "launches", attributes_of_functions},
    {"launch_attributes", "launches", launch_attributes},
};

}  // namespace

const Field kLaunches{"launches", kCases};

}  // namespace softgpu::conformance
