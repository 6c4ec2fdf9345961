// Kernel launches as they are described before they run: checked once, then submitted to a stream or kept in a graph.
#pragma once

#include <functional>
#include <map>
#include <vector>

#include "softgpu/driver/context/context.h"

namespace softgpu {

// The attributes that a launch or a kernel node carries, by identifier. Absent means the default.
using LaunchAttributes = std::map<CUlaunchAttributeID, CUlaunchAttributeValue>;

// Takes the list of a launch configuration apart. INVALID_VALUE for an identifier that does not exist or a value out of
// its range, NOT_SUPPORTED for clusters of more than one block and for nodes that device code may update.
CUresult check_attribute(CUlaunchAttributeID id, const CUlaunchAttributeValue& value);
CUresult read_attributes(const CUlaunchAttribute* list, unsigned count, LaunchAttributes& attributes);
// The value of an attribute that was not set; INVALID_VALUE for an identifier that does not exist.
CUresult default_attribute(CUlaunchAttributeID id, CUlaunchAttributeValue& value);
// Whether the launch records events, which only launches into streams do. INVALID_HANDLE when one is none.
bool records_events(const LaunchAttributes& attributes);
CUresult check_events(const LaunchAttributes& attributes);
bool is_cooperative(const LaunchAttributes& attributes);

struct KernelLaunch {
  CUfunction function = nullptr;      // of a module, resolved
  CUlaunchConfig shape = {};          // grid, block and dynamic shared memory; the rest is unused
  std::vector<std::byte> parameters;  // packed as the kernel lays them out
  LaunchAttributes attributes;
  // Of the stream that it is launched into: its context, null for a graph's node, and how many SMs its kernels may have.
  CUcontext stream_context = nullptr;
  std::uint64_t most_sms = ~std::uint64_t{0};
};

// Fills `launch` from a call's arguments. `handle` may be a kernel of a library, taken for the current context. Errors:
// INVALID_HANDLE, INVALID_VALUE (parameters, shape), LAUNCH_OUT_OF_RESOURCES, COOPERATIVE_LAUNCH_TOO_LARGE.
CUresult describe_launch(const CUlaunchConfig& shape, CUfunction handle, void** parameters, void** extra,
                         LaunchAttributes attributes, KernelLaunch& launch);

// What executes the launch. It may be called many times, one call at a time, and keeps the kernel's code alive.
// INVALID_HANDLE when the function has been unloaded meanwhile, and the errors of a shape that no longer fits.
CUresult prepare_kernel(const KernelLaunch& launch, std::function<void()>& run);

}  // namespace softgpu
