#include "softgpu/conformance/test.h"

#include <cstdio>

namespace softgpu::conformance {
namespace {

bool means_refused(CUresult result) {
  switch (result) {
    case CUDA_ERROR_NOT_SUPPORTED:
    case CUDA_ERROR_INVALID_PTX:
    case CUDA_ERROR_UNSUPPORTED_PTX_VERSION:
    case CUDA_ERROR_NO_BINARY_FOR_GPU: return true;
    default: return false;
  }
}

constexpr std::size_t kLogBytes = 4096;

}  // namespace

Test::Test(const Case& description) : description_(description) {
  if (description.capability == 0) return;
  const int capability = 10 * attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) +
                         attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  if (capability < description.capability) skip("needs sm_" + std::to_string(description.capability));
}

Test::~Test() {
  // After a fault these fail, and the context's end frees everything.
  for (const CUdeviceptr address : allocations_) driver().cuMemFree(address);
  if (module_ != nullptr) driver().cuModuleUnload(module_);
}

int Test::attribute(CUdevice_attribute attribute) const {
  CUdevice device = 0;
  int value = 0;
  driver().cuCtxGetDevice(&device);
  driver().cuDeviceGetAttribute(&value, attribute, device);
  return value;
}

CUdeviceptr Test::allocate(std::size_t bytes) {
  CUdeviceptr address = 0;
  if (ok() && check(driver().cuMemAlloc(&address, bytes), "cuMemAlloc")) allocations_.push_back(address);
  return address;
}

bool Test::load() {
  if (!ok() || module_ != nullptr) return ok();
  const char* ptx = description_.kernels == nullptr ? nullptr : ptx_of(description_.kernels);
  if (ptx == nullptr) {
    fail("the case names no kernels");
    return false;
  }
  char log[kLogBytes] = "";
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void* values[] = {log, reinterpret_cast<void*>(kLogBytes)};
  const CUresult result = driver().cuModuleLoadDataEx(&module_, ptx, 2, options, values);
  if (result == CUDA_SUCCESS) return true;
  check(result, "cuModuleLoadDataEx");
  if (log[0] != '\0') result_.detail += std::string(": ") + log;
  return false;
}

CUfunction Test::function(const char* kernel) {
  CUfunction found = nullptr;
  if (load()) check(driver().cuModuleGetFunction(&found, module_, kernel), kernel);
  return found;
}

void Test::launch_with(const char* kernel, const Shape& shape, std::vector<void*> parameters) {
  const CUfunction kernel_function = function(kernel);
  if (!ok()) return;
  const Dim &grid = shape.grid, &block = shape.block;
  if (shape.cooperative) {
    check(driver().cuLaunchCooperativeKernel(kernel_function, grid.x, grid.y, grid.z, block.x, block.y, block.z,
                                             shape.dynamic_shared_bytes, shape.stream, parameters.data()),
          kernel);
  } else {
    check(driver().cuLaunchKernel(kernel_function, grid.x, grid.y, grid.z, block.x, block.y, block.z,
                                  shape.dynamic_shared_bytes, shape.stream, parameters.data(), nullptr),
          kernel);
  }
}

void Test::fail(const std::string& why) {
  if (!ok()) return;
  result_.status = Status::kFail;
  result_.detail = why;
}

void Test::skip(const std::string& why) {
  if (!ok()) return;
  result_.status = Status::kSkipped;
  result_.detail = why;
}

bool Test::check(CUresult result, const char* what) {
  if (!ok()) return false;
  if (result == CUDA_SUCCESS) return true;
  result_.status = means_refused(result) ? Status::kRefused : Status::kFail;
  result_.detail = std::string(what) + ": " + name_of(result);
  return false;
}

void Test::expect_code(const char* what, CUresult got, CUresult want) {
  if (!ok()) return;
  result_.observed.emplace_back(what, name_of(got));
  const auto code = static_cast<std::int32_t>(got);
  add_to_digest(&code, sizeof code);
  if (got == want) return;
  result_.status = got == CUDA_ERROR_NOT_SUPPORTED ? Status::kRefused : Status::kFail;
  result_.detail = std::string(what) + ": " + name_of(got) + ", documented: " + name_of(want);
}

void Test::expect_value(const char* what, long long got, long long want) {
  if (!ok()) return;
  result_.observed.emplace_back(what, std::to_string(got));
  add_to_digest(&got, sizeof got);
  if (got != want) fail(std::string(what) + ": " + std::to_string(got) + ", should be " + std::to_string(want));
}

void Test::mismatch(const char* what, std::size_t index, const std::string& got, const std::string& want) {
  fail(std::string(what) + "[" + std::to_string(index) + "] is " + got + ", should be " + want);
}

std::string Test::number(double value) {
  char buffer[40];
  std::snprintf(buffer, sizeof buffer, "%.17g", value);
  return buffer;
}

// FNV-1a, 64 bits.
void Test::add_to_digest(const void* bytes, std::size_t count) {
  std::uint64_t hash = result_.digest == 0 ? 0xcbf29ce484222325u : result_.digest;
  for (std::size_t i = 0; i < count; ++i) {
    hash = (hash ^ static_cast<const unsigned char*>(bytes)[i]) * 0x100000001b3u;
  }
  result_.digest = hash;
}

CaseResult Test::take_result() {
  if (!description_.isolated) synchronize();
  return result_;
}

}  // namespace softgpu::conformance
