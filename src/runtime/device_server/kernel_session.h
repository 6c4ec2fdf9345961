// A registered kernel task: modules loaded, entry points found, arguments laid out once, and, where it has many launches,
// all of them instantiated as one graph. A call only writes the addresses of its buffers into them and launches.
//
// With cuBLAS, matrix products of the built-in library that it can do (gemm_call.h) are its calls. A session that has one is
// launched kernel by kernel: what cuBLAS launches is not known before, so that a graph could not be changed.
//
// Of kernels whose twins are in the modules (gpu/fence/block_ranges.h) a part of the blocks can be launched by itself (call_steps.h).
//
// Threads: the device server's loop.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "decide/residency/object_cache.h"
#include "gpu/context.h"
#include "model/kernel_task.h"
#include "runtime/device_server/cublas.h"
#include "runtime/device_server/gemm_call.h"
#include "runtime/device_server/kernel_graph.h"
#include "runtime/device_server/launch_plan.h"

namespace fairlead {

inline std::uint64_t blocks_of(const Dim3& grid) {
  return std::uint64_t{grid[0]} * grid[1] * grid[2];
}

// The streams and events that one call at a time runs on.
class LaunchLane {
 public:
  static Result<std::unique_ptr<LaunchLane>> create(CudaContext& cuda);
  static constexpr std::uint32_t kStreams = 4;
  using Streams = std::array<CUstream, kStreams>;
  static Result<std::unique_ptr<LaunchLane>> create(CudaContext& cuda, const Streams& streams);

  CUstream main() const { return streams_[0]; }
  CUstream stream(std::uint32_t index) const { return streams_[index]; }
  CUevent fork() const { return fork_; }
  CUevent join(std::uint32_t index) const { return joins_[index]; }
  Status need_events(CudaContext& cuda, std::uint32_t count);
  CUevent event(std::uint32_t index) const { return events_[index]; }
  const Streams& streams() const { return streams_; }  // whoever has made them destroys them
  void destroy_events(CudaContext& cuda);              // REQUIRES: no call comes any more
  // The call on it waits for its session's next place, and nothing of it is on the device.
  void rest(bool rests) { rests_ = rests; }
  bool rests() const { return rests_; }

 private:
  Streams streams_{};
  bool rests_ = false;
  std::array<CUevent, kStreams> joins_{};
  CUevent fork_ = nullptr;
  std::vector<CUevent> events_;
};

enum class Launching : std::uint8_t {
  kGraphs,  // of the driver, for tasks of kMinGraphLaunches and more
  kPlain,   // kernel by kernel: to compare with
};

class KernelSession {
 public:
  // Below, a graph gains too little to be worth its instantiation (docs/explanation/kernel-tasks.md has the numbers).
  static constexpr std::uint64_t kMinGraphLaunches = 8;

  // modules[m] is that of task.modules[m]. Errors name the kernel. A graph that the driver refuses is none. cublas outlives
  // the session; null: none. twins[k]: kernel k has a twin in its module; empty: none has.
  static Result<std::unique_ptr<KernelSession>> create(CudaContext& cuda, KernelTask task,
                                                       const std::vector<CUmodule>& modules,
                                                       Launching launching = Launching::kGraphs,
                                                       Cublas* cublas = nullptr, const std::vector<bool>& twins = {});

  // As it was given, and with one temporary more for each stream that cuBLAS works on.
  const KernelTask& task() const { return task_; }
  static constexpr Bytes kMostWorkspace{LaunchLane::kStreams * Cublas::kWorkspaceBytes};  // those together
  // Scratch memory of every call: offset of each temporary (others: 0), and their sum.
  const std::vector<std::uint64_t>& temporary_offsets() const { return temporary_offsets_; }
  Bytes temporary_bytes() const { return temporary_bytes_; }

  // Queues all kernels. addresses[b] is that of buffer b. The first error ends it; some kernels may run then.
  // REQUIRES: the call before is over, since the driver runs an executable graph once at a time.
  CUresult launch(CudaContext& cuda, LaunchLane& lane, const std::vector<CUdeviceptr>& addresses);
  // Instead, part by part: addresses first, and again whenever a buffer may have moved. Then so many blocks of a kernel, all of them or,
  // where it has a twin, some. One after the other on one stream, as nothing here orders them.
  void place_buffers(const std::vector<CUdeviceptr>& addresses);
  CUresult launch_blocks(CudaContext& cuda, std::size_t kernel, std::uint64_t first, std::uint64_t count,
                         CUstream stream, const std::vector<CUdeviceptr>& addresses);
  bool has_twin(std::size_t kernel) const { return kernels_[kernel].twin != nullptr; }
  // How many of the kernel's blocks the device holds together.
  std::uint64_t blocks_at_once(const Occupancy& occupancy, std::size_t kernel) const;

  // Of its kernels that run at once, at most (residency/kernel_width.h). With cuBLAS, whose kernels are its own affair, the largest number.
  // REQUIRES: no kernel launches others.
  std::uint64_t most_blocks() const;

  const LaunchPlan& plan() const { return plan_; }
  bool has_graph() const { return graph_ != nullptr; }
  // Launched kernel by kernel from now on: on the SMs of the stream that it is launched into, which a graph's kernels are not.
  void forget_graph() { graph_.reset(); }
  std::size_t cublas_calls() const;  // of one iteration

 private:
  struct Kernel {
    CUfunction function = nullptr;
    CUfunction twin = nullptr;         // null: it is launched as a whole
    std::uint32_t first_argument = 0;  // in parameters_
    std::optional<GemmCall> product;   // cuBLAS does it
    std::uint32_t workspace = 0;       // then: a buffer of task_
  };
  struct Patch {
    std::uint32_t kernel = 0;
    std::uint32_t at = 0;  // in values_
    std::uint32_t buffer = 0;
    std::uint64_t offset = 0;
  };

  Status resolve(CudaContext& cuda, const std::vector<CUmodule>& modules, const std::vector<bool>& twins);
  void lay_out_arguments();
  void find_products();
  void lay_out_temporaries();
  void instantiate(CudaContext& cuda, const std::vector<std::vector<std::uint32_t>>& before);
  void rekey(const std::vector<CUdeviceptr>& addresses);
  void give_up_graph(const std::string& why);
  CUresult launch_graph(CudaContext& cuda, LaunchLane& lane, std::uint32_t& left);
  CUresult launch_once(CudaContext& cuda, LaunchLane& lane, const std::vector<CUdeviceptr>& addresses);
  CUresult launch_kernel(CudaContext& cuda, std::size_t kernel, CUstream stream, void** parameters);
  CUresult multiply(CudaContext& cuda, std::size_t kernel, CUstream stream, const std::vector<CUdeviceptr>& addresses);

  KernelTask task_;
  Cublas* cublas_ = nullptr;
  LaunchPlan plan_;
  std::vector<Kernel> kernels_;
  std::string values_;  // of all arguments
  std::vector<std::uint32_t> value_offsets_;
  std::vector<void*> parameters_;       // into values_
  std::vector<Patch> patches_;          // in the order of their kernels
  std::vector<std::uint32_t> changed_;  // kernels whose arguments the last rekey() has changed
  std::unique_ptr<KernelGraph> graph_;  // its parameters are those of the last call; null: kernel by kernel
  bool graph_is_stale_ = false;         // no, they are not: place_buffers() came between
  std::vector<std::uint64_t> temporary_offsets_;
  Bytes temporary_bytes_{0};
};

}  // namespace fairlead
