// `fairlead device-server --try-modules`: loads modules on the GPU and ends, so that what makes the driver's compiler crash
// or never end does that to nobody else. Started by the node (module_trials.h): it gets one wire::ModuleTrial and says of
// each module, in their order, whether the driver took it.
#pragma once

#include "runtime/device_server/device_server.h"

namespace fairlead {

// Returns the process's exit status: 0 when every module has got an answer.
int try_modules(const DeviceServerOptions& options);

}  // namespace fairlead
