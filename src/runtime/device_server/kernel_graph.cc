#include "runtime/device_server/kernel_graph.h"

#include <algorithm>

namespace fairlead {

// In as few launches as kNodes allow, and those as equal as can be.
std::uint32_t KernelGraph::iterations_of_one(std::size_t kernels, std::uint32_t iterations) {
  const auto most = std::max<std::uint32_t>(1, kNodes / static_cast<std::uint32_t>(std::max<std::size_t>(1, kernels)));
  const std::uint32_t launches = (iterations + most - 1) / most;
  return iterations / std::max<std::uint32_t>(1, launches);
}

Result<std::unique_ptr<KernelGraph>> KernelGraph::create(const CudaContext& cuda,
                                                         std::vector<CUDA_KERNEL_NODE_PARAMS_v1> kernels,
                                                         const std::vector<std::vector<std::uint32_t>>& before,
                                                         std::uint32_t iterations) {
  const GraphCalls* calls = cuda.graphs();
  if (calls == nullptr) return fail(Errc::kUnavailable, "the driver has no graphs of kernels");
  const std::uint32_t unrolled = iterations_of_one(kernels.size(), iterations);
  std::unique_ptr<KernelGraph> graph(new KernelGraph(*calls, std::move(kernels), unrolled));
  if (Status built = cuda.check(graph->build(before), "instantiate a graph"); !built) return fail(built.error());
  return graph;
}

KernelGraph::~KernelGraph() {
  if (executable_ != nullptr) calls_.destroy_executable(executable_);
  if (graph_ != nullptr) calls_.destroy(graph_);
}

CUresult KernelGraph::build(const std::vector<std::vector<std::uint32_t>>& before) {
  std::vector<bool> followed(kernels_.size(), false);
  for (const auto& earlier : before) {
    for (const std::uint32_t kernel : earlier) followed[kernel] = true;
  }
  CUresult code = calls_.create(&graph_, 0);
  CUgraphNode previous = nullptr;
  for (std::uint32_t i = 0; i < iterations_ && code == CUDA_SUCCESS; ++i) {
    if (i > 0) code = join_iteration(followed, previous);
    if (code == CUDA_SUCCESS) code = add_iteration(before, previous);
  }
  if (code == CUDA_SUCCESS) code = calls_.instantiate(&executable_, graph_, 0);
  return code;
}

CUresult KernelGraph::add_iteration(const std::vector<std::vector<std::uint32_t>>& before, CUgraphNode previous) {
  const std::size_t first = nodes_.size();
  std::vector<CUgraphNode> after;
  for (std::size_t k = 0; k < kernels_.size(); ++k) {
    after.clear();
    for (const std::uint32_t kernel : before[k]) after.push_back(nodes_[first + kernel]);
    if (after.empty() && previous != nullptr) after.push_back(previous);
    CUgraphNode node = nullptr;
    const CUresult code = calls_.add_kernel(&node, graph_, after.data(), after.size(), &kernels_[k]);
    if (code != CUDA_SUCCESS) return code;
    nodes_.push_back(node);
  }
  return CUDA_SUCCESS;
}

// What the next iteration follows: the only kernel that nothing follows in the last one, or an empty node behind them all,
// so that there are not as many edges as ends times beginnings.
CUresult KernelGraph::join_iteration(const std::vector<bool>& followed, CUgraphNode& joined) {
  std::vector<CUgraphNode> ends;
  for (std::size_t k = 0; k < kernels_.size(); ++k) {
    if (!followed[k]) ends.push_back(nodes_[nodes_.size() - kernels_.size() + k]);
  }
  if (ends.size() > 1) return calls_.add_empty(&joined, graph_, ends.data(), ends.size());
  joined = ends.front();
  return CUDA_SUCCESS;
}

CUresult KernelGraph::update(std::size_t kernel) {
  CUresult code = CUDA_SUCCESS;
  for (std::size_t node = kernel; node < nodes_.size() && code == CUDA_SUCCESS; node += kernels_.size()) {
    code = calls_.set_kernel(executable_, nodes_[node], &kernels_[kernel]);
  }
  return code;
}

}  // namespace fairlead
