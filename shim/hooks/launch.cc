// Launches: kernels, cooperative ones, those of CUDA 3, graphs, host functions.
#include "shim/hooks/graph_memory.h"
#include "shim/hooks/hook.h"

// What a kernel is known by: its function and grid.
#define GRID_KEY fairlead::shim::piece_key(f, std::uint64_t{gx} * gy * gz, std::uint64_t{bx} * by * bz)

KERNEL_BOTH(cuLaunchKernel, GRID_KEY,
            (CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx, unsigned int by,
             unsigned int bz, unsigned int shared, CUstream stream, void** parameters, void** extra),
            (f, gx, gy, gz, bx, by, bz, shared, stream, parameters, extra))
KERNEL_BOTH(cuLaunchCooperativeKernel, GRID_KEY,
            (CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx, unsigned int by,
             unsigned int bz, unsigned int shared, CUstream stream, void** parameters),
            (f, gx, gy, gz, bx, by, bz, shared, stream, parameters))
namespace {

std::uint64_t config_key(const CUlaunchConfig* config, const void* f) {
  if (config == nullptr) return fairlead::shim::piece_key(f, 0, 0);
  return fairlead::shim::piece_key(f, std::uint64_t{config->gridDimX} * config->gridDimY * config->gridDimZ,
                                   std::uint64_t{config->blockDimX} * config->blockDimY * config->blockDimZ);
}

}  // namespace

KERNEL(cuLaunchKernelEx, config != nullptr ? config->hStream : nullptr, config_key(config, f),
       (const CUlaunchConfig* config, CUfunction f, void** parameters, void** extra), (config, f, parameters, extra))
KERNEL(cuLaunchKernelEx_ptsz, fairlead::shim::per_thread(config != nullptr ? config->hStream : nullptr),
       config_key(config, f), (const CUlaunchConfig* config, CUfunction f, void** parameters, void** extra),
       (config, f, parameters, extra))
// On several devices at once: the streams belong to several contexts.
namespace {

struct LaunchOnDevice {  // CUDA_LAUNCH_PARAMS
  CUfunction function;
  unsigned int grid[3], block[3], shared;
  CUstream stream;
  void** parameters;
};

}  // namespace

HOOK cuLaunchCooperativeKernelMultiDevice(void* launches, unsigned int count, unsigned int flags) {
  const fairlead::shim::Passage passage;
  if (passage.slot() != nullptr) {
    fairlead::shim::count_launch(passage.slot());
    const auto* const each = static_cast<const LaunchOnDevice*>(launches);
    for (unsigned int i = 0; each != nullptr && i < count; ++i) fairlead::shim::note_work_elsewhere(each[i].stream);
  }
  return FAIRLEAD_REAL(cuLaunchCooperativeKernelMultiDevice)(launches, count, flags);
}
KERNEL(cuLaunch, nullptr, fairlead::shim::piece_key(f, 1, 1), (CUfunction f), (f))
KERNEL(cuLaunchGrid, nullptr, fairlead::shim::piece_key(f, std::uint64_t(width) * height, 1),
       (CUfunction f, int width, int height), (f, width, height))
KERNEL(cuLaunchGridAsync, stream, fairlead::shim::piece_key(f, std::uint64_t(width) * height, 1),
       (CUfunction f, int width, int height, CUstream stream), (f, width, height, stream))

GATED_BOTH(cuLaunchHostFunc, _ptsz, (CUstream stream, CUhostFn function, void* data), (stream, function, data))
GATED_BOTH(cuStreamAddCallback, _ptsz, (CUstream stream, CUstreamCallback callback, void* data, unsigned int flags),
           (stream, callback, data, flags))

namespace {

CUresult launch_graph(decltype(&cuGraphLaunch) real, CUgraphExec graph, CUstream stream, CUstream on_stream) {
  CUresult result = CUDA_SUCCESS;
  {
    const fairlead::shim::Passage passage;
    const bool is_leashed =
        fairlead::shim::pass_kernel(passage, on_stream, [&] { return fairlead::shim::piece_key(graph, 0, 0); });
    result = real(graph, stream);
    if (is_leashed) fairlead::shim::leash_launched(on_stream);
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
