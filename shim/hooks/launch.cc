// Launches: kernels, cooperative ones, those of CUDA 3, graphs, host functions.
#include "shim/hooks/graph_memory.h"
#include "shim/hooks/hook.h"

KERNEL_BOTH(cuLaunchKernel,
            (CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx, unsigned int by,
             unsigned int bz, unsigned int shared, CUstream stream, void** parameters, void** extra),
            (f, gx, gy, gz, bx, by, bz, shared, stream, parameters, extra))
KERNEL_BOTH(cuLaunchCooperativeKernel,
            (CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx, unsigned int by,
             unsigned int bz, unsigned int shared, CUstream stream, void** parameters),
            (f, gx, gy, gz, bx, by, bz, shared, stream, parameters))
KERNEL(cuLaunchKernelEx, config != nullptr ? config->hStream : nullptr,
       (const CUlaunchConfig* config, CUfunction f, void** parameters, void** extra), (config, f, parameters, extra))
KERNEL(cuLaunchKernelEx_ptsz, fairlead::shim::per_thread(config != nullptr ? config->hStream : nullptr),
       (const CUlaunchConfig* config, CUfunction f, void** parameters, void** extra), (config, f, parameters, extra))
// On several devices at once: not measured, since the streams belong to several contexts.
HOOK cuLaunchCooperativeKernelMultiDevice(void* launches, unsigned int count, unsigned int flags) {
  const fairlead::shim::Passage passage;
  if (passage.slot() != nullptr) fairlead::shim::count_launch(passage.slot());
  return FAIRLEAD_REAL(cuLaunchCooperativeKernelMultiDevice)(launches, count, flags);
}
KERNEL(cuLaunch, nullptr, (CUfunction f), (f))
KERNEL(cuLaunchGrid, nullptr, (CUfunction f, int width, int height), (f, width, height))
KERNEL(cuLaunchGridAsync, stream, (CUfunction f, int width, int height, CUstream stream), (f, width, height, stream))

GATED_BOTH(cuLaunchHostFunc, _ptsz, (CUstream stream, CUhostFn function, void* data), (stream, function, data))
GATED_BOTH(cuStreamAddCallback, _ptsz, (CUstream stream, CUstreamCallback callback, void* data, unsigned int flags),
           (stream, callback, data, flags))

namespace {

CUresult launch_graph(decltype(&cuGraphLaunch) real, CUgraphExec graph, CUstream stream, CUstream on_stream) {
  CUresult result = CUDA_SUCCESS;
  {
    const fairlead::shim::Passage passage;
    fairlead::shim::pass_kernel(passage, on_stream);
    result = real(graph, stream);
  }
  fairlead::shim::count_graph_memory();
  return result;
}

}  // namespace

HOOK cuGraphLaunch(CUgraphExec graph, CUstream stream) {
  return launch_graph(FAIRLEAD_REAL(cuGraphLaunch), graph, stream, stream);
}
HOOK cuGraphLaunch_ptsz(CUgraphExec graph, CUstream stream) {
  return launch_graph(FAIRLEAD_REAL(cuGraphLaunch_ptsz), graph, stream, fairlead::shim::per_thread(stream));
}
QUEUED_BOTH(cuGraphUpload, (CUgraphExec graph, CUstream stream), (graph, stream))
