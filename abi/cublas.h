/* The part of cuBLAS that this project calls, from version 12 on (libcublas.so.12, libcublas.so.13): our own declarations of
 * a public binary interface, with every function under the exact symbol the library exports. Matrices are column-major:
 * element (row, column) is at row + column * ld. C and C++. */
#pragma once

#include "abi/cuda_types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One line per result code: X(name, value). */
#define CUBLAS_ABI_RESULTS(X)           \
  X(CUBLAS_STATUS_SUCCESS, 0)           \
  X(CUBLAS_STATUS_NOT_INITIALIZED, 1)   \
  X(CUBLAS_STATUS_ALLOC_FAILED, 3)      \
  X(CUBLAS_STATUS_INVALID_VALUE, 7)     \
  X(CUBLAS_STATUS_ARCH_MISMATCH, 8)     \
  X(CUBLAS_STATUS_MAPPING_ERROR, 11)    \
  X(CUBLAS_STATUS_EXECUTION_FAILED, 13) \
  X(CUBLAS_STATUS_INTERNAL_ERROR, 14)   \
  X(CUBLAS_STATUS_NOT_SUPPORTED, 15)    \
  X(CUBLAS_STATUS_LICENSE_ERROR, 16)

typedef enum cublasStatus_t {
#define CUBLAS_ABI_RESULT_VALUE(name, value) name = value,
  CUBLAS_ABI_RESULTS(CUBLAS_ABI_RESULT_VALUE)
#undef CUBLAS_ABI_RESULT_VALUE
} cublasStatus_t;

typedef struct cublasContext* cublasHandle_t;

typedef enum cublasOperation_t { CUBLAS_OP_N = 0, CUBLAS_OP_T = 1, CUBLAS_OP_C = 2 } cublasOperation_t;

/* Of elements; a part of CUDA's list. */
typedef enum cudaDataType { CUDA_R_32F = 0, CUDA_R_64F = 1, CUDA_C_32F = 4, CUDA_C_64F = 5 } cudaDataType;

/* What is computed in; alpha and beta are of that precision, complex where the elements are. 32F takes full products in
 * the handle's default mode: TF32 is another value of this list. */
typedef enum cublasComputeType_t {
  CUBLAS_COMPUTE_32F = 68,
  CUBLAS_COMPUTE_64F = 70,
  CUBLAS_COMPUTE_32F_FAST_TF32 = 77
} cublasComputeType_t;

typedef enum cublasMath_t { CUBLAS_DEFAULT_MATH = 0 } cublasMath_t;
typedef enum cublasGemmAlgo_t { CUBLAS_GEMM_DEFAULT = -1 } cublasGemmAlgo_t;

/* In the calling thread's current context. */
cublasStatus_t cublasCreate_v2(cublasHandle_t* handle);
cublasStatus_t cublasDestroy_v2(cublasHandle_t handle);
cublasStatus_t cublasGetVersion_v2(cublasHandle_t handle, int* version); /* 12.9.3: 120903 */
const char* cublasGetStatusName(cublasStatus_t status);
cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode);
/* Takes the handle's own workspace again. */
cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, CUstream stream);
/* Device memory, aligned to 256 bytes; of one stream. */
cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t handle, void* workspace, size_t bytes);
/* C = alpha op(A) op(B) + beta C, op(A) being m x k; alpha and beta in host memory. C is not read where beta is 0. */
cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b, int m, int n, int k,
                            const void* alpha, const void* a, cudaDataType a_type, int lda, const void* b,
                            cudaDataType b_type, int ldb, const void* beta, void* c, cudaDataType c_type, int ldc,
                            cublasComputeType_t compute, cublasGemmAlgo_t algorithm);
/* The same for each of `count` matrices; strides in elements, from one matrix to the next. */
cublasStatus_t cublasGemmStridedBatchedEx(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b, int m,
                                          int n, int k, const void* alpha, const void* a, cudaDataType a_type, int lda,
                                          long long stride_a, const void* b, cudaDataType b_type, int ldb,
                                          long long stride_b, const void* beta, void* c, cudaDataType c_type, int ldc,
                                          long long stride_c, int count, cublasComputeType_t compute,
                                          cublasGemmAlgo_t algorithm);

#ifdef __cplusplus
}
#endif
