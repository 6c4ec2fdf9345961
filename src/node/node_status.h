// What people see of the node (NodeStatus), put together from those who know. Threads: the core thread's.
#pragma once

#include <string>
#include <vector>

#include "edge/node_service.h"
#include "node/functions.h"
#include "node/gpu_monitor.h"
#include "node/shares.h"
#include "node/tenants.h"
#include "runtime/device_servers/device_servers.h"
#include "runtime/models/model_host.h"

namespace fairlead {

std::string node_version();

Bytes resident_memory();  // of this process; 0: not known

// By name.
std::vector<FunctionStatus> function_status(const Functions& functions, const Core& core,
                                            const std::vector<InstanceView>& instances, const Shares& shares);
std::vector<TenantStatus> tenant_status(const Functions& functions, const Core& core, const Tenants& tenants);
// `views` and `samples`: of the same devices in the same order.
std::vector<GpuStatus> gpu_status(const std::vector<GpuView>& views, const GpuMonitor& monitor);
std::vector<DeviceServerStatus> device_server_status(const std::vector<DeviceServers::View>& views);
std::vector<ModelStatus> model_status(const std::vector<ModelHost::View>& views);

}  // namespace fairlead
