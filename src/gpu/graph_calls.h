// The driver's entry points for graphs of kernels, which not every driver has: cuGraphInstantiateWithFlags came with 11.4.
// The forms without _v2 are those that all of them know; abi/cuda.h gives their names to the newer ones.
#pragma once

#include "abi/cuda.h"
#include "gpu/shared_library.h"

namespace fairlead {

struct GraphCalls {
  decltype(cuGraphCreate)* create = nullptr;
  decltype(cuGraphDestroy)* destroy = nullptr;
  CUresult (*add_kernel)(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies, size_t count,
                         const CUDA_KERNEL_NODE_PARAMS_v1* parameters) = nullptr;
  decltype(cuGraphAddEmptyNode)* add_empty = nullptr;
  decltype(cuGraphInstantiateWithFlags)* instantiate = nullptr;
  decltype(cuGraphExecDestroy)* destroy_executable = nullptr;
  CUresult (*set_kernel)(CUgraphExec executable, CUgraphNode node,
                         const CUDA_KERNEL_NODE_PARAMS_v1* parameters) = nullptr;
  decltype(cuGraphLaunch)* launch = nullptr;

  Status bind(const SharedLibrary& library) {
    for (const Status& status :
         {library.bind(create, "cuGraphCreate"), library.bind(destroy, "cuGraphDestroy"),
          library.bind(add_kernel, "cuGraphAddKernelNode"), library.bind(add_empty, "cuGraphAddEmptyNode"),
          library.bind(instantiate, "cuGraphInstantiateWithFlags"),
          library.bind(destroy_executable, "cuGraphExecDestroy"),
          library.bind(set_kernel, "cuGraphExecKernelNodeSetParams"), library.bind(launch, "cuGraphLaunch")}) {
      if (!status) return status;
    }
    return {};
  }
};

}  // namespace fairlead
