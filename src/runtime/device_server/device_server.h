// `fairlead device-server`: the process that owns one GPU's (or slice's) context for one isolation domain and runs its
// kernel tasks. Started and replaced by the node (device_servers.h); it ends when the node's socket does.
#pragma once

#include <string>

#include "runtime/device_server/device_objects.h"
#include "runtime/device_server/kernel_session.h"
#include "runtime/device_server/module_order.h"

namespace fairlead {

struct DeviceServerOptions {
  int socket = 3;            // inherited, to the node
  std::string library_dir;   // of the GPU; "": the system's. CUDA_VISIBLE_DEVICES says which is its first
  ObjectCacheOptions cache;  // device 0: as much as is free at the start, less a reserve
  AddressSpaces spaces = AddressSpaces::kOne;  // kPerTenant: the domain is all tenants
  Launching launching = Launching::kGraphs;
  ModuleLimits modules;
  std::string cublas = "off";  // "auto": where there is one that works; or a file, which must
  bool trials = false;         // the node tries each module (module_trials.h) before it is loaded
};

// Returns the process's exit status: 0 when the node has gone, 1 when the GPU could not be opened or was lost.
int device_server(const DeviceServerOptions& options);

}  // namespace fairlead
