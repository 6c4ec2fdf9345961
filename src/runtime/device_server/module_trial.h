// `fairlead device-server --try-modules`: fences modules for their tenant's range, loads them on the GPU and ends, so that
// what makes the fence or the driver's compiler crash, take much memory or never end does that to nobody else. Started by
// the node (module_trials.h), with one wire::ModuleTrial; wire/device_frames.h has the conversation.
//
// Memory: 8 GiB more than the process began with, and as much beside the driver. Time: the node's to bound.
#pragma once

#include "runtime/device_server/device_server.h"

namespace fairlead {

// Returns the process's exit status: 0 when the modules were loaded or it was said why not.
int try_modules(const DeviceServerOptions& options);

}  // namespace fairlead
