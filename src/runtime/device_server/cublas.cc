#include "runtime/device_server/cublas.h"

#include <array>

#include "gpu/shared_library.h"

namespace fairlead {
namespace {

constexpr const char* kAdvice =
    "install cuBLAS 12 or 13 (it comes with the CUDA toolkit), name its file with --cublas, or use the built-in "
    "kernels "
    "with --cublas off";
constexpr std::array<const char*, 2> kNames{"libcublas.so.13", "libcublas.so.12"};

struct Precision {
  cudaDataType elements;
  cublasComputeType_t compute;
};
Precision precision_of(GemmCall::Element element) {
  switch (element) {
    case GemmCall::Element::kF64: return {CUDA_R_64F, CUBLAS_COMPUTE_64F};
    case GemmCall::Element::kC64: return {CUDA_C_32F, CUBLAS_COMPUTE_32F};
    case GemmCall::Element::kF32: break;
  }
  return {CUDA_R_32F, CUBLAS_COMPUTE_32F};
}

cublasOperation_t operation(const GemmCall::Matrix& matrix) {
  return matrix.transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
}

Result<SharedLibrary> load(const std::string& library) {
  if (!library.empty()) return SharedLibrary::load("", library, kAdvice);
  auto loaded = SharedLibrary::load("", kNames[0], kAdvice);
  for (std::size_t i = 1; i < kNames.size() && !loaded; ++i) loaded = SharedLibrary::load("", kNames[i], kAdvice);
  return loaded;
}

}  // namespace

struct Cublas::Library {
  explicit Library(SharedLibrary file) : shared(std::move(file)) {}

  Status bind() {
    for (const Status& status :
         {shared.bind(create, "cublasCreate_v2"), shared.bind(destroy, "cublasDestroy_v2"),
          shared.bind(version, "cublasGetVersion_v2"), shared.bind(status_name, "cublasGetStatusName"),
          shared.bind(set_math, "cublasSetMathMode"), shared.bind(set_stream, "cublasSetStream_v2"),
          shared.bind(set_workspace, "cublasSetWorkspace_v2"), shared.bind(gemm, "cublasGemmEx"),
          shared.bind(gemm_batched, "cublasGemmStridedBatchedEx")}) {
      if (!status) return status;
    }
    return {};
  }

  SharedLibrary shared;
  decltype(cublasCreate_v2)* create = nullptr;
  decltype(cublasDestroy_v2)* destroy = nullptr;
  decltype(cublasGetVersion_v2)* version = nullptr;
  decltype(cublasGetStatusName)* status_name = nullptr;
  decltype(cublasSetMathMode)* set_math = nullptr;
  decltype(cublasSetStream_v2)* set_stream = nullptr;
  decltype(cublasSetWorkspace_v2)* set_workspace = nullptr;
  decltype(cublasGemmEx)* gemm = nullptr;
  decltype(cublasGemmStridedBatchedEx)* gemm_batched = nullptr;
};

Cublas::Cublas(std::unique_ptr<Library> library) : library_(std::move(library)) {}

Cublas::~Cublas() {
  if (handle_ != nullptr) library_->destroy(handle_);
}

Status Cublas::check_library(const std::string& library) {
  void* handle = dlopen(library.c_str(), RTLD_LAZY | RTLD_LOCAL);
  if (handle == nullptr) return fail(Errc::kUnavailable, "{}; {}", dlerror(), kAdvice);
  const bool is_cublas = dlsym(handle, "cublasGemmStridedBatchedEx") != nullptr;
  dlclose(handle);
  if (!is_cublas) return fail(Errc::kUnavailable, "{} is not cuBLAS; {}", library, kAdvice);
  return {};
}

Result<std::unique_ptr<Cublas>> Cublas::open(const std::string& library) {
  auto shared = load(library);
  if (!shared) return fail(shared.error());
  auto bound = std::make_unique<Library>(*std::move(shared));
  if (Status status = bound->bind(); !status)
    return fail(status.error().code, "{}; {}", status.error().message, kAdvice);
  std::unique_ptr<Cublas> cublas(new Cublas(std::move(bound)));
  const Library& calls = *cublas->library_;
  int version = 0;
  cublasStatus_t status = calls.create(&cublas->handle_);
  if (status == CUBLAS_STATUS_SUCCESS) status = calls.version(cublas->handle_, &version);
  if (status == CUBLAS_STATUS_SUCCESS) status = calls.set_math(cublas->handle_, CUBLAS_DEFAULT_MATH);
  if (status != CUBLAS_STATUS_SUCCESS) {
    return fail(Errc::kUnavailable, "{} does not start on this GPU: {}; {}", calls.shared.path(),
                cublas->describe(status), kAdvice);
  }
  cublas->description_ =
      fmt::format("cuBLAS {}.{}.{} ({})", version / 10000, version / 100 % 100, version % 100, calls.shared.path());
  return cublas;
}

cublasStatus_t Cublas::multiply(const GemmCall& call, const Place& place, CUstream stream) {
  const auto at = [](CUdeviceptr address) { return reinterpret_cast<void*>(address); };
  const auto [type, compute] = precision_of(call.element);
  cublasStatus_t status = library_->set_stream(handle_, stream);
  if (status == CUBLAS_STATUS_SUCCESS) status = library_->set_workspace(handle_, at(place.workspace), kWorkspaceBytes);
  if (status != CUBLAS_STATUS_SUCCESS) return status;
  const auto op_left = operation(call.left);
  const auto op_right = operation(call.right);
  if (call.batches == 1) {
    return library_->gemm(handle_, op_left, op_right, call.m, call.n, call.k, call.alpha.data(), at(place.left), type,
                          call.left.ld, at(place.right), type, call.right.ld, call.beta.data(), at(place.c), type,
                          call.c.ld, compute, CUBLAS_GEMM_DEFAULT);
  }
  return library_->gemm_batched(handle_, op_left, op_right, call.m, call.n, call.k, call.alpha.data(), at(place.left),
                                type, call.left.ld, call.left.batch, at(place.right), type, call.right.ld,
                                call.right.batch, call.beta.data(), at(place.c), type, call.c.ld, call.c.batch,
                                call.batches, compute, CUBLAS_GEMM_DEFAULT);
}

std::string Cublas::describe(cublasStatus_t status) const {
  return library_->status_name(status);
}

bool Cublas::is_refusal(cublasStatus_t status) {
  return status == CUBLAS_STATUS_NOT_SUPPORTED || status == CUBLAS_STATUS_INVALID_VALUE ||
         status == CUBLAS_STATUS_ARCH_MISMATCH || status == CUBLAS_STATUS_ALLOC_FAILED ||
         status == CUBLAS_STATUS_NOT_INITIALIZED;
}

}  // namespace fairlead
