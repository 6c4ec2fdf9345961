// What each of the node's own programs has in its jail (runtime/jail/jail_spec.h), and so what a stranger gets who takes one
// over with a module or an image.
//
//   device server   its GPU's files and libraries, what the driver's processes share; no network
//   module trial    the same, less memory and processors
//   model server    as a device server
//   program         a component of a pipeline without a GPU: its function's bundle and Python; no network, no device
//   skopeo          the folder that it fills, registries that the operator allows, his credentials for them
//   umoci           the folder that it fills, the ids of images; no network
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "node/gpu_access.h"
#include "node/serve_options.h"
#include "runtime/device_servers/device_servers.h"
#include "runtime/launcher.h"
#include "runtime/uid_pool.h"
#include "store/image_store.h"

namespace fairlead {

// A user of its own, written to `uid`, for as long as somebody holds what is returned; null: there is none, and `uid` stays.
std::shared_ptr<void> take_user(const std::shared_ptr<UidPool>& uids, std::uint32_t& uid);

// Has `servers` and their trials start in jails, each as a user of the host that nobody else is, from `uids`. Null, or all taken:
// servers are one user, trials another. `root_dir`: an empty folder of the node's own.
void jail_device_servers(const ServeOptions& options, const GpuAccess& gpu, const std::string& root_dir,
                         std::shared_ptr<UidPool> uids, DeviceServersOptions& servers);

// Of model servers, in jails as those of device servers.
Launcher model_server_launcher(const ServeOptions& options, const GpuAccess& gpu, const std::string& root_dir,
                               std::shared_ptr<UidPool> uids);

// The command line of an image tool in its jail. `registries`: the setting.
ImageStoreOptions::Launcher image_tool_launcher(const std::string& root_dir,
                                                const std::vector<std::string>& registries);

// What keeps strangers' work apart and is not there, for want of rights or by the setting: a sentence each. Empty: nothing.
std::vector<std::string> what_jails_lack(bool no_jail);

}  // namespace fairlead
