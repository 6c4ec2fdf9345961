// A context on one device, typed, for a process that runs kernels itself (the device server): memory mapped into a range
// of addresses, modules, streams, events. What is called once for each kernel or copy is inline and returns the driver's
// own code; describe() makes an Error of it.
//
// Threads: one thread at a time, but for host functions, which the driver calls on a thread of its own.
#pragma once

#include <memory>
#include <string>

#include "abi/cuda.h"
#include "base/result.h"
#include "base/units.h"
#include "gpu/graph_calls.h"
#include "model/kernel_task.h"

namespace fairlead {

class CudaContext {
 public:
  // library_dir as in CudaDriver::load(). Holds the device's primary context until the process ends.
  static Result<std::unique_ptr<CudaContext>> open(const std::string& library_dir, int ordinal);
  ~CudaContext();
  CudaContext(const CudaContext&) = delete;
  CudaContext& operator=(const CudaContext&) = delete;

  struct Device {
    std::string name;
    std::uint32_t architecture = 0;  // 80: sm_80
    CUdevice number = 0;             // as the driver has it
  };
  const Device& device() const;
  const DeviceLimits& limits() const;
  const SharedLibrary& driver() const;  // to look for what not every one has
  Result<Bytes> free_memory() const;

  // Device memory under addresses that were reserved before. `alignment`: a power of two. `hint`: where, if it can be; 0:
  // anywhere.
  Result<CUdeviceptr> reserve_addresses(Bytes bytes, Bytes alignment, CUdeviceptr hint = 0);
  Bytes mapping_granularity() const;
  Status map_memory(CUdeviceptr address, Bytes bytes);  // of the granularity; zeroed by nobody; kResourceExhausted
  // The same in parts: memory that is mapped at one address now and at another later, always as a whole.
  Result<CUmemGenericAllocationHandle> create_memory(Bytes bytes);  // kResourceExhausted
  Status map(CUdeviceptr address, Bytes bytes, CUmemGenericAllocationHandle memory);
  Status unmap(CUdeviceptr address, Bytes bytes);  // REQUIRES: nothing on the device uses it
  void release_memory(CUmemGenericAllocationHandle memory);

  // Host memory that copies reach at full speed.
  Result<void*> allocate_pinned(Bytes bytes);
  void free_pinned(void* memory);
  bool pin(void* memory, Bytes bytes, bool read_only);  // false: this driver does not; copies work all the same
  void unpin(void* memory);

  // kInvalidArgument with the compiler's own words; kResourceExhausted.
  Result<CUmodule> load_module(const std::string& image);
  void unload_module(CUmodule module);
  // With `dynamic_shared` bytes of shared memory allowed at its launch, and its code on the device: where the driver loads
  // lazily the first launch would wait for that, and the device with it.
  Result<CUfunction> find_kernel(CUmodule module, const std::string& name, std::uint32_t dynamic_shared);

  const GraphCalls* graphs() const;  // null: the driver lacks some of them

  Result<CUstream> make_stream();
  Result<CUevent> make_event(bool timed);
  void destroy_event(CUevent event);
  Duration elapsed(CUevent begin, CUevent end) const;  // 0 when either was not recorded

  Status synchronize();
  Status synchronize(CUstream stream);
  Status check(CUresult code, std::string_view what) const;
  std::string describe(CUresult code) const;  // "an illegal memory access was encountered (CUDA_ERROR_..., 700)"

  // ---- hot
  CUresult launch(CUfunction function, const Dim3& grid, const Dim3& block, std::uint32_t shared, CUstream stream,
                  void** parameters) const {
    return calls_.launch(function, grid[0], grid[1], grid[2], block[0], block[1], block[2], shared, stream, parameters,
                         nullptr);
  }
  CUresult copy_in(CUdeviceptr target, const void* source, std::size_t bytes, CUstream stream) const {
    return calls_.copy_in(target, source, bytes, stream);
  }
  CUresult copy_out(void* target, CUdeviceptr source, std::size_t bytes, CUstream stream) const {
    return calls_.copy_out(target, source, bytes, stream);
  }
  CUresult copy_within(CUdeviceptr target, CUdeviceptr source, std::size_t bytes, CUstream stream) const {
    return calls_.copy_within(target, source, bytes, stream);
  }
  CUresult fill_zero(CUdeviceptr target, std::size_t bytes, CUstream stream) const {
    return calls_.fill(target, 0, bytes, stream);
  }
  CUresult record(CUevent event, CUstream stream) const { return calls_.record(event, stream); }
  CUresult wait(CUstream stream, CUevent event) const { return calls_.wait(stream, event, 0); }
  CUresult query(CUevent event) const { return calls_.query(event); }
  CUresult call_host(CUstream stream, CUhostFn function, void* data) const {
    return calls_.call_host(stream, function, data);
  }

 private:
  friend class StreamWords;
  friend class Occupancy;

  struct Hot {
    decltype(cuLaunchKernel)* launch = nullptr;
    decltype(cuMemcpyHtoDAsync_v2)* copy_in = nullptr;
    decltype(cuMemcpyDtoHAsync_v2)* copy_out = nullptr;
    decltype(cuMemcpyDtoDAsync_v2)* copy_within = nullptr;
    decltype(cuMemsetD8Async)* fill = nullptr;
    decltype(cuEventRecord)* record = nullptr;
    decltype(cuStreamWaitEvent)* wait = nullptr;
    decltype(cuEventQuery)* query = nullptr;
    decltype(cuLaunchHostFunc)* call_host = nullptr;
  };
  struct Library;

  explicit CudaContext(std::unique_ptr<Library> library);
  Status start(int ordinal);
  Status bind_hot();
  Status read_limits();

  std::unique_ptr<Library> library_;
  Hot calls_;
};

// Words of host memory that streams wait for and set. Threads: as CudaContext's, which must outlive it.
class StreamWords {
 public:
  explicit StreamWords(const CudaContext& cuda);
  bool there() const { return wait_ != nullptr && set_ != nullptr; }  // false: the driver lacks them

  // As CudaContext::pin(), which ends with unpin(); gives the memory's address for streams. kUnavailable.
  Result<CUdeviceptr> pin(void* memory, Bytes bytes) const;
  // REQUIRES, both: there(). At least `value`, as a cyclic number.
  CUresult wait(CUstream stream, CUdeviceptr word, std::uint32_t value) const {
    return wait_(stream, word, value, CU_STREAM_WAIT_VALUE_GEQ);
  }
  // After all that is before it on the stream can be seen.
  CUresult set(CUstream stream, CUdeviceptr word, std::uint32_t value) const {
    return set_(stream, word, value, CU_STREAM_WRITE_VALUE_DEFAULT);
  }

 private:
  const CudaContext& cuda_;
  decltype(cuStreamWaitValue32_v2)* wait_ = nullptr;
  decltype(cuStreamWriteValue32_v2)* set_ = nullptr;
  decltype(cuMemHostGetDevicePointer_v2)* device_pointer_ = nullptr;
};

// How many blocks a device holds together.
class Occupancy {
 public:
  explicit Occupancy(const CudaContext& cuda);
  // Of the kernel; where the driver cannot say, no fewer than that.
  std::uint64_t blocks_at_once(CUfunction function, std::uint32_t threads, std::uint32_t dynamic_shared) const;
  std::uint64_t multiprocessors() const { return multiprocessors_; }  // at least 1

 private:
  decltype(cuOccupancyMaxActiveBlocksPerMultiprocessor)* of_one_ = nullptr;  // null: the driver lacks it
  std::uint64_t multiprocessors_ = 1, threads_of_one_ = 0;
};

}  // namespace fairlead
