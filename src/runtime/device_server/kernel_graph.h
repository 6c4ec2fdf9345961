// A task's kernels as one executable graph of the driver: a call changes the parameters of those whose buffers are elsewhere
// than before, and submits them all at once.
//
// A graph holds as many iterations of the task as make about kNodes nodes, so that a task of one kernel and many iterations
// gains, too, and one of thousands of kernels has no larger graph than itself. What is left over is launched kernel by
// kernel: of 3 kernels, 100 times, three launches of 33 iterations (99 nodes), and one iteration without the graph.
//
// Threads: the device server's loop.
#pragma once

#include <memory>
#include <vector>

#include "gpu/context.h"

namespace fairlead {

class KernelGraph {
 public:
  static constexpr std::uint32_t kNodes = 128;
  // How many of a task's iterations one launch does.
  static std::uint32_t iterations_of_one(std::size_t kernels, std::uint32_t iterations);

  // kernels[k].kernelParams stay what they point to for the graph's life. before[k]: the earlier kernels that k follows; an
  // iteration follows all of the one before it. kUnavailable: the driver has no graphs, or its words.
  static Result<std::unique_ptr<KernelGraph>> create(const CudaContext& cuda,
                                                     std::vector<CUDA_KERNEL_NODE_PARAMS_v1> kernels,
                                                     const std::vector<std::vector<std::uint32_t>>& before,
                                                     std::uint32_t iterations);
  ~KernelGraph();  // REQUIRES: no launch of it is on the device
  KernelGraph(const KernelGraph&) = delete;
  KernelGraph& operator=(const KernelGraph&) = delete;

  std::uint32_t iterations() const { return iterations_; }
  // Its parameters are what kernelParams point to now. After an error the graph is of no use: some iterations have them.
  CUresult update(std::size_t kernel);
  CUresult launch(CUstream stream) const { return calls_.launch(executable_, stream); }

 private:
  KernelGraph(const GraphCalls& calls, std::vector<CUDA_KERNEL_NODE_PARAMS_v1> kernels, std::uint32_t iterations)
      : calls_(calls), kernels_(std::move(kernels)), iterations_(iterations) {}
  CUresult build(const std::vector<std::vector<std::uint32_t>>& before);
  CUresult add_iteration(const std::vector<std::vector<std::uint32_t>>& before, CUgraphNode previous);
  CUresult join_iteration(const std::vector<bool>& followed, CUgraphNode& joined);

  const GraphCalls& calls_;
  const std::vector<CUDA_KERNEL_NODE_PARAMS_v1> kernels_;
  const std::uint32_t iterations_;
  CUgraph graph_ = nullptr;  // kept: changes name its nodes
  CUgraphExec executable_ = nullptr;
  std::vector<CUgraphNode> nodes_;  // iteration by iteration
};

}  // namespace fairlead
