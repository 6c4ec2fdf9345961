// The command line of a device server, described once: the node writes it, `fairlead device-server` reads it. It is no
// interface for people.
#pragma once

#include <string>
#include <vector>

#include "base/setting.h"
#include "runtime/device_server/device_server.h"

namespace fairlead {

const SettingTable<DeviceServerOptions>& device_server_settings();

// The words after `fairlead device-server` that give these options.
std::vector<std::string> device_server_arguments(const DeviceServerOptions& options);

// A word more, which a process has that only tries modules (module_trial.h).
inline constexpr const char* kTryModules = "--try-modules";

}  // namespace fairlead
