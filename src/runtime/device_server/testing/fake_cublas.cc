// cuBLAS of the tests: the entry points that the device server calls, computed by the CPU from the memory of whatever CUDA
// driver the process has loaded. It is as strict as the documentation: a leading dimension that is too short, a workspace
// that is missing or was set before the stream are refused. Half of what it is lent as a workspace it fills with garbage.
//
// A file FILE.calls beside it gets a line for each product.
#include <dlfcn.h>

#include <complex>
#include <cstdio>
#include <string>
#include <type_traits>
#include <vector>

#include "abi/cublas.h"
#include "abi/cuda.h"

#pragma GCC visibility push(default)

namespace {

struct Driver {
  decltype(cuStreamSynchronize)* synchronize = find<decltype(cuStreamSynchronize)>("cuStreamSynchronize");
  decltype(cuMemcpyDtoH_v2)* copy_out = find<decltype(cuMemcpyDtoH_v2)>("cuMemcpyDtoH_v2");
  decltype(cuMemcpyHtoD_v2)* copy_in = find<decltype(cuMemcpyHtoD_v2)>("cuMemcpyHtoD_v2");
  decltype(cuMemsetD8_v2)* fill = find<decltype(cuMemsetD8_v2)>("cuMemsetD8_v2");

  template <typename Function>
  static Function* find(const char* name) {
    return reinterpret_cast<Function*>(dlsym(dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD), name));
  }
};

const Driver& driver() {
  static const Driver loaded;
  return loaded;
}

CUdeviceptr address(const void* pointer) {
  return reinterpret_cast<CUdeviceptr>(pointer);
}

unsigned products = 0;
cublasStatus_t refusal = CUBLAS_STATUS_SUCCESS;

struct Factor {
  cublasOperation_t op;
  const void* at;
  int ld;
  long long stride;
};

struct Product {
  int m, n, k, count;
  const void *alpha, *beta;
  Factor a, b;
  void* c;
  int ldc;
  long long stride_c;
};

void note(const char* type, const Product& p) {
  ++products;
  Dl_info self{};
  if (dladdr(reinterpret_cast<const void*>(&note), &self) == 0) return;
  std::FILE* file = std::fopen((std::string(self.dli_fname) + ".calls").c_str(), "r+");
  if (file == nullptr) return;
  std::fseek(file, 0, SEEK_END);
  std::fprintf(file, "%s %d x %d over %d, %d times\n", type, p.m, p.n, p.k, p.count);
  std::fclose(file);
}

// Elements from the first to the last of `count` matrices of so many stored rows and columns.
std::size_t extent(int rows, int columns, int ld, long long stride, int count) {
  return static_cast<std::size_t>((count - 1) * stride + static_cast<long long>(columns - 1) * ld + rows);
}

template <typename T>
std::vector<T> read(const void* from, std::size_t elements) {
  std::vector<T> values(elements);
  driver().copy_out(values.data(), address(from), elements * sizeof(T));
  return values;
}

template <typename T>
cublasStatus_t multiply(const Product& p) {
  using Wide = std::conditional_t<std::is_floating_point_v<T>, double, std::complex<double>>;
  const bool ta = p.a.op != CUBLAS_OP_N;
  const bool tb = p.b.op != CUBLAS_OP_N;
  if (p.a.ld < (ta ? p.k : p.m) || p.b.ld < (tb ? p.n : p.k) || p.ldc < p.m) return CUBLAS_STATUS_INVALID_VALUE;
  const auto a = read<T>(p.a.at, extent(ta ? p.k : p.m, ta ? p.m : p.k, p.a.ld, p.a.stride, p.count));
  const auto b = read<T>(p.b.at, extent(tb ? p.n : p.k, tb ? p.k : p.n, p.b.ld, p.b.stride, p.count));
  auto c = read<T>(p.c, extent(p.m, p.n, p.ldc, p.stride_c, p.count));
  const Wide alpha(*static_cast<const T*>(p.alpha));
  const Wide beta(*static_cast<const T*>(p.beta));
  for (long long i = 0; i < p.count; ++i) {
    for (long long row = 0; row < p.m; ++row) {
      for (long long column = 0; column < p.n; ++column) {
        Wide sum{};
        for (long long l = 0; l < p.k; ++l) {
          const long long of_a = i * p.a.stride + (ta ? l + row * p.a.ld : row + l * p.a.ld);
          const long long of_b = i * p.b.stride + (tb ? column + l * p.b.ld : l + column * p.b.ld);
          sum += Wide(a[static_cast<std::size_t>(of_a)]) * Wide(b[static_cast<std::size_t>(of_b)]);
        }
        T& result = c[static_cast<std::size_t>(i * p.stride_c + row + column * p.ldc)];
        result = T(alpha * sum + (beta == Wide{} ? Wide{} : beta * Wide(result)));
      }
    }
  }
  driver().copy_in(address(p.c), c.data(), c.size() * sizeof(T));
  return CUBLAS_STATUS_SUCCESS;
}

}  // namespace

struct cublasContext {
  CUstream stream = nullptr;
  void* workspace = nullptr;
  size_t workspace_bytes = 0;
};

namespace {

cublasStatus_t run(cublasHandle_t handle, const Product& p, cudaDataType type, cublasComputeType_t compute) {
  if (refusal != CUBLAS_STATUS_SUCCESS) return refusal;
  if (p.m < 0 || p.n < 0 || p.k < 0 || p.count < 0) return CUBLAS_STATUS_INVALID_VALUE;
  if (handle->workspace == nullptr || address(handle->workspace) % 256 != 0) return CUBLAS_STATUS_INVALID_VALUE;
  const cublasComputeType_t expected = type == CUDA_R_64F ? CUBLAS_COMPUTE_64F : CUBLAS_COMPUTE_32F;
  if (compute != expected) return CUBLAS_STATUS_NOT_SUPPORTED;
  if (driver().synchronize(handle->stream) != CUDA_SUCCESS) return CUBLAS_STATUS_EXECUTION_FAILED;
  driver().fill(address(handle->workspace), 0xFF, handle->workspace_bytes / 2);
  switch (type) {
    case CUDA_R_32F: note("f32", p); return multiply<float>(p);
    case CUDA_R_64F: note("f64", p); return multiply<double>(p);
    case CUDA_C_32F: note("c64", p); return multiply<std::complex<float>>(p);
    default: return CUBLAS_STATUS_NOT_SUPPORTED;
  }
}

}  // namespace

// ---- for tests in the same process

extern "C" unsigned fake_cublas_products() {
  return products;
}
extern "C" void fake_cublas_refuse(cublasStatus_t status) {
  refusal = status;
}

// ---- cuBLAS

cublasStatus_t cublasCreate_v2(cublasHandle_t* handle) {
  if (driver().fill == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
  *handle = new cublasContext;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasDestroy_v2(cublasHandle_t handle) {
  delete handle;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasGetVersion_v2(cublasHandle_t, int* version) {
  *version = 120304;
  return CUBLAS_STATUS_SUCCESS;
}
const char* cublasGetStatusName(cublasStatus_t status) {
  switch (status) {
#define NAME(name, value) \
  case name: return #name;
    CUBLAS_ABI_RESULTS(NAME)
#undef NAME
  }
  return "an unknown status";
}
cublasStatus_t cublasSetMathMode(cublasHandle_t, cublasMath_t mode) {
  return mode == CUBLAS_DEFAULT_MATH ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
}
cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, CUstream stream) {
  *handle = {.stream = stream};
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t handle, void* workspace, size_t bytes) {
  handle->workspace = workspace;
  handle->workspace_bytes = bytes;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b, int m, int n, int k,
                            const void* alpha, const void* a, cudaDataType a_type, int lda, const void* b, cudaDataType,
                            int ldb, const void* beta, void* c, cudaDataType, int ldc, cublasComputeType_t compute,
                            cublasGemmAlgo_t) {
  return run(handle, {m, n, k, 1, alpha, beta, {op_a, a, lda, 0}, {op_b, b, ldb, 0}, c, ldc, 0}, a_type, compute);
}
cublasStatus_t cublasGemmStridedBatchedEx(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b, int m,
                                          int n, int k, const void* alpha, const void* a, cudaDataType a_type, int lda,
                                          long long stride_a, const void* b, cudaDataType, int ldb, long long stride_b,
                                          const void* beta, void* c, cudaDataType, int ldc, long long stride_c,
                                          int count, cublasComputeType_t compute, cublasGemmAlgo_t) {
  const Product p{m, n, k, count, alpha, beta, {op_a, a, lda, stride_a}, {op_b, b, ldb, stride_b}, c, ldc, stride_c};
  return run(handle, p, a_type, compute);
}

#pragma GCC visibility pop
