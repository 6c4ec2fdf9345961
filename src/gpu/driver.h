// What the CUDA driver says about itself and its devices. Loading it proves that functions could use it; it opens no
// context and holds no device memory.
//
// Threads: thread-safe, as the driver is.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/units.h"

namespace fairlead {

class CudaDriver {
 public:
  struct Device {
    std::string name;
    Bytes memory{0};
    int compute_major = 0;  // compute capability
    int compute_minor = 0;
  };

  // library_dir: folder with libcuda.so.1; empty: where the system's loader looks. kUnavailable when there is no library
  // or no device, with what to do.
  static Result<std::unique_ptr<CudaDriver>> load(const std::string& library_dir);
  ~CudaDriver();
  CudaDriver(const CudaDriver&) = delete;
  CudaDriver& operator=(const CudaDriver&) = delete;

  // The newest CUDA version it runs: "13.0".
  Result<std::string> version() const;
  // In CUDA's order, as CUDA_VISIBLE_DEVICES numbers them.
  Result<std::vector<Device>> devices() const;
  const std::string& library_path() const;

 private:
  struct Library;
  explicit CudaDriver(std::unique_ptr<Library> library);
  std::unique_ptr<Library> library_;
};

}  // namespace fairlead
