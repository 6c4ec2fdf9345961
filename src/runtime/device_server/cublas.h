// cuBLAS, loaded at run time, for the matrix products of kernel tasks. It is NVIDIA's and may be absent: then the built-in
// library's own kernels do them.
//
// It computes in the calling thread's current context, which has to be the device's primary one, as CudaContext's is. What
// it computes in is the elements' type: no TF32, so that a result differs from the own kernel's by rounding only.
//
// Threads: the device server's loop.
#pragma once

#include <memory>
#include <string>

#include "abi/cublas.h"
#include "abi/cuda.h"
#include "base/result.h"
#include "runtime/device_server/gemm_call.h"

namespace fairlead {

class Cublas {
 public:
  // Of each stream, in the call's own scratch memory: results of one tenant are never in another's. NVIDIA's advice for
  // most devices.
  static constexpr std::uint64_t kWorkspaceBytes = 4 << 20;

  // library: a file; empty: the newest that the system's loader finds. REQUIRES: a context is current. kUnavailable: there
  // is none, or not one that works here, and what to do.
  static Result<std::unique_ptr<Cublas>> open(const std::string& library);
  // Whether a process can load it, without keeping it: it takes 150 MB. The same errors.
  static Status check_library(const std::string& library);
  ~Cublas();
  Cublas(const Cublas&) = delete;
  Cublas& operator=(const Cublas&) = delete;

  const std::string& description() const { return description_; }  // "cuBLAS 12.9.3 (/usr/lib/libcublas.so.12)"

  struct Place {
    CUdeviceptr left = 0, right = 0, c = 0;
    CUdeviceptr workspace = 0;  // kWorkspaceBytes of it, of this stream only
  };
  // Queues it.
  cublasStatus_t multiply(const GemmCall& call, const Place& place, CUstream stream);
  std::string describe(cublasStatus_t status) const;  // "CUBLAS_STATUS_NOT_SUPPORTED"
  // Whether nothing of the call was queued.
  static bool is_refusal(cublasStatus_t status);

 private:
  struct Library;
  explicit Cublas(std::unique_ptr<Library> library);

  std::unique_ptr<Library> library_;
  cublasHandle_t handle_ = nullptr;
  std::string description_;
};

}  // namespace fairlead
